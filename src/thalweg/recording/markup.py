"""Pieces of a page that shows texts of anybody: all of them are escaped, none of them runs.

>>> cell("<img onerror=alert(1)>")
'<bdi>&lt;img onerror=alert(1)&gt;</bdi>'
>>> cell("k" * 30)
'<bdi class="long">kkkkkkkkkkkkkkkkkkkkkkkkkkkkkk</bdi>'
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Sequence

#: A word that may be broken anywhere, so that it fits, or a text that needs some width.
_LONG = re.compile(r"\S{25}|.{200}", re.DOTALL)
#: Letters that no text should bring along: what a page cannot hold.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

STYLE = """
:root { color-scheme: light dark; --line: #8885; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; }
h2 { font-size: 1.2rem; margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
p.note { opacity: .75; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--soft);
  vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
bdi { white-space: pre-wrap; overflow-wrap: break-word; }
/* As high as texts of the page; printed, all of it is there. */
@media screen { td > bdi { display: block; line-height: 1.45; max-height: 9em; overflow-y: auto; } }
bdi.long { min-width: 16ch; max-width: 60ch; overflow-wrap: anywhere; }
:not(td) > bdi.long { display: inline-block; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .6rem; }
dt { opacity: .75; font-size: .85rem; }
dd { margin: 0; font-size: 1.2rem; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
  gap: 1rem; }
.charts figure { margin: 0; }
svg { max-width: 100%; height: auto; border-radius: .4rem; }
svg text { fill: currentColor; }
svg .back { fill: var(--soft); }
svg .grid { stroke: var(--line); }
polyline.line-6 { stroke: currentColor; }
circle.line-6, rect.line-6 { fill: currentColor; }
@media (max-width: 600px) {
  svg text { font-size: 16px; }
}
p.failed { border-left: .3rem solid #d55e00; padding-left: .8rem; }
"""


def cell(text: str) -> str:
    """Write a text of anybody; its direction does not reach beyond it."""
    shown = _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
    kind = ' class="long"' if _LONG.search(shown) else ""
    return f"<bdi{kind}>{html.escape(shown)}</bdi>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str | float | int | None]]) -> str:
    """Write a table; numbers stand at the right."""
    listed = [list(row) for row in rows]
    right = [
        all(isinstance(row[i], int | float | None) for row in listed) for i in range(len(heads))
    ]
    body = "\n".join(f"<tr>{''.join(map(_td, row))}</tr>" for row in listed)
    names = zip(heads, right, strict=True)
    top = "".join(f"<th{_class(is_right)}>{html.escape(head)}</th>" for head, is_right in names)
    return f"<table>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _td(value: str | float | int | None) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, str):
        return f"<td>{cell(value)}</td>"
    return f"<td{_class(True)}>{number(value)}</td>"


def _class(right: bool) -> str:
    return ' class="number"' if right else ""


def number(value: float) -> str:
    """Write a number for people.

    >>> number(1234567), number(0.12345), number(1234.5), number(3.0)
    ('1,234,567', '0.123', '1,234', '3')
    """
    if isinstance(value, int) or value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Write names with values."""
    items = (
        f"<div><dt>{html.escape(name)}</dt><dd>{cell(value)}</dd></div>" for name, value in pairs
    )
    return f"<dl>{''.join(items)}</dl>"


def page(title: str, body: Iterable[str]) -> str:
    """Write a whole page that needs nothing else; nothing in it runs or loads anything."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    name = html.escape(_CONTROLS.sub("", title))
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{name}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        *body,
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(lines)
