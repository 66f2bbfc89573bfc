"""Rows that tests of SQL ask, and how they do."""

from __future__ import annotations

from typing import Any

import thalweg as tw
from thalweg.flow import Flow, Stream
from thalweg.sql.compiling import compiled

POSTS = [
    (1, "eu", "jazz", 3),
    (2, "eu", "rock", 4),
    (30, "us", "jazz", None),
    (70, "us", "jazz", 1),
    (75, "us", "jazz", 8),
    (80, None, "pop", 2),
]
REGIONS = [{"code": "eu", "title": "Europe"}, {"code": "us", "title": "America"}]
#: Names that the stream has too, one with the alias before it, and two columns to be equal.
PLACES = [
    {"code": "eu", "other": "eu", "r_name": "E", "likes": 100},
    {"code": "us", "other": "uk", "r_name": "U", "likes": 200},
]
FIELDS = {"at": int, "region": str, "tag": str, "likes": int}


def asked(query: str, **more: Any) -> tuple[Flow, Stream]:
    """Compile a query on posts, regions and places."""
    flow = tw.Flow("query")
    posts = flow.source("posts", tw.items(POSTS), fields=FIELDS, time="at")
    tables = {"posts": posts, "regions": REGIONS, "places": PLACES}
    return flow, compiled(query, tables, **more)


def result(query: str, on: Any = "inline", **more: Any) -> list[tuple[Any, ...]]:
    """Give the rows of a query, sorted."""
    flow, made = asked(query, **more)
    rows: list[tuple[Any, ...]] = []
    made.sink("out", tw.call(lambda t: rows.append(tuple(t))), order="total")
    flow.run(on=on)
    return sorted(rows, key=repr)
