"""Who may talk to a server: tokens, hosts, origins, and which files it may run."""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import secrets
import socket
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from thalweg.errors import UsageError, explain
from thalweg.server.life import Refusal

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_PRIVATE = 0o600
#: Names of this very machine.
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def check_name(name: str, hint: str = "") -> str:
    """Refuse what cannot be the name of a topology; it is also the name of a folder.

    >>> check_name("word-count_2")
    'word-count_2'
    """
    if not _NAME.fullmatch(name):
        expected = "letters, digits, - and _, at most 64 of them, a letter or digit first"
        raise Refusal(explain("name", "", expected, repr(name[:80]), hint))
    return name


def allowed_file(path: str, folders: Sequence[Path]) -> Path:
    """Give the real path of a file below one of the folders; links that lead out are no way in."""
    try:
        found = Path(path).resolve(strict=True)
        is_file = found.is_file()
    except (OSError, ValueError, RuntimeError):
        is_file = False
    if not is_file:
        raise Refusal(
            explain(f"file {path!r}", "", "a file that is there", "none", "is the path right?")
        )
    if not any(found.is_relative_to(folder) for folder in folders):
        hint = "its owner names folders with: thalweg server start --allow FOLDER"
        expected = f"one below {', '.join(map(str, folders)) or 'a folder'}"
        raise Refusal(explain(f"file {path!r}", "", expected, str(found), hint), 403)
    return found


def allowed_folder(path: Path) -> Path:
    """Give the real path of a folder whose files may be run."""
    found = path.resolve()
    if not found.is_dir():
        hint = "make it first, or is the path wrong?"
        raise UsageError(explain(f"--allow {str(path)!r}", "", "a folder", "none", hint))
    return found


def make_token(path: Path) -> str:
    """Give the token of a server; it is made once, and only its owner can read it."""
    with suppress(FileExistsError):
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
        with os.fdopen(made, "w") as file:
            file.write(secrets.token_urlsafe(32))
    return read_token(path)


def read_token(path: Path) -> str:
    """Read a token; one that others could have read is none."""
    try:
        with path.open() as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            token = file.read().strip()
    except OSError as error:
        got = error.strerror or "no such file"
        raise UsageError(explain(f"token {str(path)!r}", "", "a file you can read", got)) from error
    if mode & 0o077:
        hint = f"others may know it: delete it, and start the server again; chmod 600 {path}"
        raise UsageError(explain(f"token {str(path)!r}", "", "mode 600", f"{mode:o}", hint))
    if len(token) < 32:
        hint = "delete it, and start the server again"
        raise UsageError(explain(f"token {str(path)!r}", "", "a token", "something shorter", hint))
    return token


@dataclass(frozen=True)
class Access:
    """Decides which requests are heard.

    >>> access = Access("secret" * 8, "127.0.0.1", 7788)
    >>> access.refusal("evil.example:7788", None, "Bearer " + "secret" * 8).status
    421
    >>> access.refusal("localhost:7788", None, "Bearer " + "secret" * 8)
    """

    token: str
    host: str
    port: int

    def __repr__(self) -> str:
        return f"Access({self.host}:{self.port})"  # the token is in no log

    def refusal(
        self, host: str | None, origin: str | None, authorization: str | None
    ) -> Refusal | None:
        """Say why a request is not heard; None where it is."""
        refused = self.stranger(host, origin)
        return refused or self.not_known(authorization or "")

    def stranger(self, host: str | None, origin: str | None) -> Refusal | None:
        """Say why a request is of a page elsewhere; None where it is not."""
        if not self._is_host(host):  # a page may have let its own name mean this machine
            expected, hint = f"{self.host}:{self.port}", ""
            if self._is_everywhere:
                known = " or ".join(("an address of this machine", *_own_names()))
                expected = f"{known}, with port {self.port}"
                hint = "listen at the name that is used: --host NAME, of a page --ui-host NAME"
            return Refusal(explain("header Host", "", expected, repr(host), hint), 421)
        if origin is not None and not self._is_own(origin):
            return Refusal(
                explain("header Origin", "", "none of a page elsewhere", repr(origin)), 403
            )
        return None

    def not_known(self, authorization: str) -> Refusal | None:
        """Say why a header is no token; None where it is."""
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer" or not self.opens(given.strip()):
            hint = "it is in the file 'token' in the root of the server"
            text = explain("token", "", "that of this server", "another one or none", hint)
            return Refusal(text, 401)
        return None

    def opens(self, given: str) -> bool:
        """Say whether a text is the token, in the same time for all texts."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        bound = _address(self.host)
        return self.host.lower() == "localhost" or (bound is not None and bound.is_loopback)

    @property
    def _is_everywhere(self) -> bool:
        bound = _address(self.host)
        return bound is not None and bound.is_unspecified

    def _is_own(self, origin: str) -> bool:
        scheme, _, host = origin.partition("://")
        return scheme == "http" and self._is_host(host)

    def _is_host(self, text: str | None) -> bool:
        if not text:
            return False
        name, port = _split(text)
        if port != str(self.port):
            return False
        name = name.removeprefix("[").removesuffix("]").lower()
        bound = _address(self.host)
        if name == self.host.lower():
            return True
        if self._is_everywhere:
            return name in (*_LOOPBACK, *_own_names()) or _address(name) is not None
        return name in _LOOPBACK and (bound is None or bound.is_loopback)


def _own_names() -> list[str]:
    """Give the name of this machine, and its first part.

    No name server is asked what else it is called: whoever has that could let any page in.
    """
    name = socket.gethostname().lower()
    return [each for each in dict.fromkeys((name, name.partition(".")[0])) if each]


def _split(host: str) -> tuple[str, str]:
    """Split a host and its port, which browsers leave out where it is that of HTTP.

    >>> _split("localhost:7788"), _split("[::1]"), _split("[::1]:80")
    (('localhost', '7788'), ('[::1]', '80'), ('[::1]', '80'))
    """
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and not host.endswith("]") else (host, "80")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
