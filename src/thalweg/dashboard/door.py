"""Who may look at a dashboard, and who may act: tokens, cookies, hosts and origins."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from thalweg.errors import explain
from thalweg.server.access import Access
from thalweg.server.answering import READS, Headers, answer
from thalweg.server.life import Refusal

#: Nothing but what this server sends is loaded or run, and no other page shows this one.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
#: Headers of every answer.
SAID = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address of the page may have the token in it
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


#: The token that is needed.
_OWN = "that of this dashboard"


class _OtherToken(Refusal):
    """A token came that is not the one of this dashboard."""

    def __init__(self, text: str) -> None:
        super().__init__(text, 401)


@dataclass(frozen=True)
class Door:
    """Decides which requests are heard: on loopback all may look, and who has the token may act.

    >>> door = Door(Access("secret" * 8, "127.0.0.1", 7788))
    >>> scope = {"method": "GET", "path": "/api/records", "query_string": b""}
    >>> door.check(scope, {b"host": "127.0.0.1:7788"})
    >>> door.check(scope | {"method": "POST"}, {b"host": "127.0.0.1:7788"}).status
    401
    """

    access: Access

    @property
    def cookie(self) -> str:
        """Name of the cookie; cookies are shared by all ports of a host."""
        return f"thalweg-{self.access.port}"

    def check(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Say why a request is not heard; None where it is."""
        if not scope["path"].startswith("/"):  # OPTIONS *, say
            return Refusal(explain("target", "", "a path", repr(scope["path"][:80])))
        origin = headers.get(b"origin")
        refused = self.access.stranger(headers.get(b"host"), origin) or _from_elsewhere(
            scope, headers
        )
        if refused is not None:
            return refused
        reads = scope["method"] in READS
        if (reads and self.access.is_loopback) or self.carries_token(scope):
            return None
        if not self.is_known(headers):
            return self._unknown(scope, headers)
        if not reads and b"authorization" not in headers and origin is None:
            # A cookie comes by itself, also with what another page has sent.
            text = explain("header Origin", "", "that of this page, beside a cookie", "none")
            return Refusal(text, 403)
        return None

    def is_known(self, headers: Headers) -> bool:
        """Say whether a request brings the token: in its cookie, or for programs as a header."""
        scheme, _, given = headers.get(b"authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.access.opens(given.strip()):
            return True
        pairs = (each.strip().partition("=") for each in headers.get(b"cookie", "").split(";"))
        return any(name == self.cookie and self.access.opens(value) for name, _, value in pairs)

    def carries_token(self, scope: Scope) -> bool:
        """Say whether the address of the page itself has the token, as it was printed."""
        if scope["path"] != "/" or scope["method"] not in READS:
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        return len(given) == 1 and self.access.opens(given[0])

    def _gives_one(self, scope: Scope, headers: Headers) -> bool:
        """Say whether a request brings a token, whichever."""
        names = (each.partition("=")[0].strip() for each in headers.get(b"cookie", "").split(";"))
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        return b"authorization" in headers or self.cookie in names or given is not None

    def _unknown(self, scope: Scope, headers: Headers) -> Refusal:
        hint = "open the address that was printed when this began, with its token"
        if self._gives_one(scope, headers):
            return _OtherToken(explain("token", "", _OWN, "another one, of another run say", hint))
        return Refusal(explain("token", "", _OWN, "none", hint), 401)


#: What people read before they have the page; its styles need the token as well.
_SENTENCE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Thalweg</title>
<link rel="icon" href="/static/icon.svg" type="image/svg+xml">
<h1>{head}</h1>
<p>{text}</p>
</html>
"""
_OTHER = "The token is not that of this page"
_HEADS = {401: "This page needs its token"}
_HINT = (
    "Open the address that was printed in the terminal when this began: it ends in ?token=..., "
    "and is needed once in each browser."
)


def refused(refusal: Refusal, headers: Headers) -> Response:
    """Say a refusal: as a sentence to a browser that opens a page, as JSON to all others."""
    if "text/html" not in headers.get(b"accept", ""):
        return answer({"error": str(refusal)}, refusal.status)
    head = _HEADS.get(refusal.status, "This was refused")
    head = _OTHER if isinstance(refusal, _OtherToken) else head
    text = _HINT if refusal.status == 401 else escape(str(refusal))
    return HTMLResponse(_SENTENCE.format(head=head, text=text), refusal.status)


def let_in() -> Response:
    """Let a browser open the page by itself.

    Who came by a link of another site would be sent there without the new cookie by a redirect.
    """
    text = _SENTENCE.format(head="Thalweg", text='<a href="/">Open the page</a>')
    return HTMLResponse(text, headers={"Refresh": "0; url=/"})


def _is_page(path: str) -> bool:
    """Say whether there is a page at a path, not what a page loads.

    >>> _is_page("/"), _is_page("/topologies/shop/"), _is_page("/topologies/shop/metrics")
    (True, True, False)
    """
    before, name, rest = (path + "//").split("/", 3)[1:]
    return path == "/" or (before == "topologies" and name != "" and rest == "//")


def _from_elsewhere(scope: Scope, headers: Headers) -> Refusal | None:
    """Refuse what another page loads, as a picture or script say; a link to the page is fine."""
    site = headers.get(b"sec-fetch-site", "none")
    if site in ("none", "same-origin") or (_is_page(scope["path"]) and scope["method"] in READS):
        return None
    return Refusal(explain("request", "", "one of this page", f"one from {site!r}"), 403)
