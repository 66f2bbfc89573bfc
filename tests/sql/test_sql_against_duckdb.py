"""Any query that is accepted gives what DuckDB gives, with rows that lack values."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.sql.compiling import compiled

TYPES = {"k": int, "n": int, "x": float, "s": str, "t": str, "b": bool, "w": dt.datetime}
#: Texts with what LIKE and regular expressions find special.
WORDS = ["", "a", "ab", "ba", "b%", "a_", "A\\", ".*", "é", "a\nb", " a "]
TIMES = [dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, 12, 30), dt.datetime(1969, 12, 31, 23)]
REGIONS = [
    {"code": "a", "title": "A", "n": 1},
    {"code": "ab", "title": None, "n": 2},
    {"code": "ab", "title": "b%", "n": None},
    {"code": None, "title": "none", "n": 3},
]

numbers = st.integers(-3, 3)
halves = st.integers(-6, 6).map(lambda n: n / 2) | st.just(-0.0)
rows = st.lists(
    st.tuples(
        st.none() | st.integers(0, 2),
        st.none() | numbers,
        st.none() | halves,
        st.none() | st.sampled_from(WORDS),
        st.none() | st.sampled_from(WORDS),
        st.none() | st.booleans(),
        st.none() | st.sampled_from(TIMES),
    ),
    min_size=1,
    max_size=12,
)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def pairs(inner: st.SearchStrategy[str], signs: list[str]) -> st.SearchStrategy[str]:
    return st.tuples(inner, st.sampled_from(signs), inner).map(lambda t: f"({' '.join(t)})")


def called(inner: st.SearchStrategy[str], names: list[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(names), inner).map(lambda t: f"{t[0]}({t[1]})")


def chosen(values: st.SearchStrategy[str], among: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    lists = st.lists(among | st.just("NULL"), min_size=1, max_size=3).map(", ".join)
    return st.tuples(values, st.sampled_from(["IN", "NOT IN"]), lists).map(
        lambda t: f"({t[0]} {t[1]} ({t[2]}))"
    )


def some(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """One of two values: the larger one, the smaller one, or the first if it is another."""
    names = st.sampled_from(["greatest", "least", "nullif"])
    return st.tuples(names, values, values).map(lambda t: f"{t[0]}({t[1]}, {t[2]})")


Made = st.SearchStrategy[str]
PARTS = st.sampled_from(
    ["year", "quarter", "month", "week", "day", "dow", "doy", "hour", "minute", "second"]
)
written_times = st.sampled_from(
    [
        *(f"TIMESTAMP '{time}'" for time in TIMES),
        "DATE '2026-01-01'",
        "CAST('2026-01-01T12:30' AS TIMESTAMP)",
        "'1969-12-31'::DATE",
    ]
)
patterns = st.lists(st.sampled_from(["%", "_", "a", "b", "\\", ".", "é"]), max_size=4).map("".join)


@dataclass(frozen=True)
class Parts:
    """Parts of queries, by type; those of a level are made of parts of the level before."""

    conditions: Made
    ints: Made
    floats: Made
    texts: Made
    times: Made

    def next(self) -> Parts:
        """Make parts that are one level deeper."""
        return Parts(self._conditions(), self._ints(), self._floats(), self._texts(), self.times)

    def _conditions(self) -> Made:
        ints, texts = self.ints, self.texts
        return st.one_of(
            self.conditions,
            pairs(ints, ["=", "<>", "<", "<=", ">", ">="]),
            pairs(self.floats, ["=", "<>", "<", "<=", ">", ">="]),
            pairs(texts, ["=", "<>", "<", ">="]),
            st.tuples(texts, st.sampled_from(["LIKE", "NOT LIKE"]), patterns).map(
                lambda t: f"({t[0]} {t[1]} {quoted(t[2])})"
            ),
            pairs(self.times, ["=", "<>", "<", "<=", ">", ">="]),
            chosen(self.times, written_times),
            chosen(ints, numbers.map(str)),
            chosen(ints | self.floats, halves.map(str)),
            chosen(self.floats, numbers.map(str)),
            chosen(texts, st.sampled_from(WORDS).map(quoted)),
            st.tuples(ints | texts, st.sampled_from(["IS NULL", "IS NOT NULL"])).map(
                lambda t: f"({t[0]} {t[1]})"
            ),
            st.tuples(ints, st.sampled_from(["BETWEEN", "NOT BETWEEN"]), ints, ints).map(
                lambda t: f"({t[0]} {t[1]} {t[2]} AND {t[3]})"
            ),
            pairs(self.conditions | st.just("NULL"), ["AND", "OR"]),
            (self.conditions | st.just("NULL")).map(lambda c: f"(NOT {c})"),
        )

    def _ints(self) -> Made:
        return st.one_of(
            self.ints,
            pairs(self.ints, ["+", "-", "*"]),
            # By 0 it is an error, here as there.
            st.tuples(self.ints, st.sampled_from([-3, -2, 2, 5])).map(
                lambda t: f"({t[0]} % {t[1]} + {t[0]} // {t[1]})"
            ),
            called(self.ints, ["abs", "-"]),
            called(self.texts, ["length"]),
            st.tuples(self.ints, self.ints).map(lambda t: f"coalesce({t[0]}, {t[1]})"),
            self._cases(self.ints),
            called(self.ints, ["round"]),
            some(self.ints),
            st.tuples(PARTS, self.times).map(lambda t: f"extract({t[0]} FROM {t[1]})"),
            called(self.times, ["year", "month", "day", "hour", "minute", "second"]),
            st.tuples(self.conditions, self.ints, self.ints).map(
                lambda t: f"IF({t[0]}, {t[1]}, {t[2]})"
            ),
        )

    def _floats(self) -> Made:
        return st.one_of(
            self.floats,
            pairs(self.floats, ["+", "-", "*"]),
            st.tuples(self.ints, st.sampled_from(["2", "4"])).map(lambda t: f"({t[0]} / {t[1]})"),
            called(self.floats, ["floor", "ceil", "abs"]),
            called(self.ints, ["floor", "ceil"]),
            self.ints.map(lambda n: f"CAST({n} AS DOUBLE)"),
            st.tuples(self.floats, st.integers(-1, 3)).map(lambda t: f"round({t[0]}, {t[1]})"),
            some(self.floats),
        )

    def _texts(self) -> Made:
        made = called(self.texts, ["lower", "upper", "trim"])
        joined = pairs(self.texts | st.just("NULL"), ["||"])
        cut = st.tuples(self.texts, st.integers(-4, 4), st.none() | st.integers(0, 3)).map(
            lambda t: f"substr({t[0]}, {t[1]}{'' if t[2] is None else f', {t[2]}'})"
        )
        lists = st.lists(self.texts | st.just("NULL"), min_size=1, max_size=3).map(", ".join)
        both = called(lists, ["concat"])
        return st.one_of(
            self.texts, made, joined, self._cases(self.texts), cut, both, some(self.texts)
        )

    def _cases(self, values: Made) -> Made:
        made = st.tuples(self.conditions, values, self.conditions, values, st.none() | values)
        return made.map(
            lambda t: (
                f"CASE WHEN {t[0]} THEN {t[1]} WHEN {t[2]} THEN {t[3]} "
                f"{'' if t[4] is None else f'ELSE {t[4]} '}END"
            )
        )


SIMPLE = Parts(
    conditions=st.just("b"),
    ints=st.sampled_from(["k", "n"]) | numbers.map(str),
    floats=st.just("x"),
    texts=st.sampled_from(["s", "t"]) | st.sampled_from(WORDS).map(quoted),
    times=st.just("w") | written_times,
)
DEEP = SIMPLE.next().next()
conditions, ints, floats, texts = DEEP.conditions, DEEP.ints, DEEP.floats, DEEP.texts
values = ints | floats | texts | conditions | DEEP.times

aggregates = st.one_of(
    st.just("count(*)"),
    called(ints | texts | conditions, ["count"]),
    called(ints | floats, ["sum", "avg", "min", "max"]),
    called(texts, ["min", "max"]),
    st.tuples(called(ints, ["sum"]), ints).map(lambda t: f"coalesce({t[0]}, 0) * 2"),
)
keys = st.sampled_from(
    [
        "k",
        "s",
        "(b)",
        "upper(s)",
        "k + n",
        "coalesce(n, k)",
        "n > 0",
        "CASE WHEN b THEN s ELSE t END",
    ]
)


def answers(query: str, given: list[tuple[Any, ...]]) -> tuple[Counter[Any], Counter[Any]]:
    """Ask Thalweg, then DuckDB."""
    flow = tw.Flow("query")
    stream = flow.source("t", tw.items(given), fields=TYPES)
    ours: list[tuple[Any, ...]] = []
    made = compiled(query, {"t": stream, "r": REGIONS})
    made.sink("out", tw.call(lambda row: ours.append(tuple(row))))
    flow.run(on="inline")
    columns = [
        pa.array([row[i] for row in given], _ARROW[type_]) for i, type_ in enumerate(TYPES.values())
    ]
    with duckdb.connect() as database:
        database.register("t", pa.table(dict(zip(TYPES, columns, strict=True))))
        database.register("r", pa.Table.from_pylist(REGIONS))
        theirs = database.execute(query).fetchall()
    return Counter(map(_plain, ours)), Counter(map(_plain, theirs))


_ARROW = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
_ARROW |= {dt.datetime: pa.timestamp("us")}
_settings = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        round(float(v), 9) + 0.0 if isinstance(v, int | float) and not isinstance(v, bool) else v
        for v in map(_number, row)
    )


def _number(value: Any) -> Any:
    """Sums are decimals or large numbers elsewhere."""
    return float(value) if hasattr(value, "as_tuple") else value


@_settings
@given(rows, conditions, values, values)
def test_filters_and_expressions(
    given: list[tuple[Any, ...]], where: str, one: str, other: str
) -> None:
    query = f"SELECT {one} AS one, {other} AS other FROM t WHERE {where}"  # noqa: S608 (a test)
    ours, theirs = answers(query, given)
    assert ours == theirs


@_settings
@given(rows, conditions, keys, aggregates, aggregates)
def test_groups(given: list[tuple[Any, ...]], where: str, key: str, one: str, other: str) -> None:
    query = (
        f"SELECT {key} AS key, {one} AS one, {other} AS other "  # noqa: S608 (a test)
        f"FROM t WHERE {where} "
        f"GROUP BY {key} HAVING NOT (count(*) = 2 AND {one} IS NULL)"
    )
    ours, theirs = answers(query, given)
    assert ours == theirs


@_settings
@given(
    rows,
    st.sampled_from(["JOIN", "LEFT JOIN", "INNER JOIN", "LEFT OUTER JOIN"]),
    st.sampled_from(["", " AND r.n > 1", " AND q.t = r.title", " AND q.s = r.title"]),
    st.sampled_from(
        ["TRUE", "r.title IS NULL", "q.n < r.n", "r.n > 1", "q.n > 0 AND title <> 'A'"]
    ),
)
def test_joins(given: list[tuple[Any, ...]], join: str, on: str, where: str) -> None:
    columns = "SELECT q.n, r.n AS rn, code, title"
    query = f"{columns} FROM t q {join} r ON q.s = r.code{on} WHERE {where}"
    ours, theirs = answers(query, given)
    assert ours == theirs


@_settings
@given(
    rows, chosen(st.sampled_from(["x", "n", "-x", "x * 0", "n * 0"]), (numbers | halves).map(str))
)
def test_numbers_among_others(given: list[tuple[Any, ...]], where: str) -> None:
    ours, theirs = answers(f"SELECT n, x FROM t WHERE {where}", given)  # noqa: S608 (a test)
    assert ours == theirs


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n FROM t WHERE NULL",
        "SELECT n FROM t WHERE n > 0 AND NULL",
        "SELECT n FROM t WHERE n > 0 OR NULL",
        "SELECT n FROM t WHERE NOT NULL",
        "SELECT NULL AND n > 0 AS a, NULL OR n > 0 AS o, NOT (NULL) AS x, NULL OR NULL AS y FROM t",
        "SELECT CASE WHEN NULL THEN 1 WHEN n > 0 THEN 2 END AS c, IF(NULL, 1, n) AS i FROM t",
        "SELECT k, count(*) AS c FROM t GROUP BY k HAVING NULL OR count(*) > 1",
        "SELECT IF(n > 0, 1, 2) AS c, IF(b, s, NULL) AS d FROM t",
        "SELECT nullif(NULL, n) AS a, nullif(n, NULL) AS b, greatest(NULL, n) AS c FROM t",
        "SELECT concat(NULL, s, NULL) AS a, concat(NULL) AS b, concat(s, '-', t) AS c FROM t",
        "SELECT substring(s FROM 2 FOR 1) AS a, substring(s, 0, 1) AS b FROM t",
        "SELECT greatest(n, x) AS a, least(n, x, -7) AS b, greatest(s, t) AS c FROM t",
        "SELECT round(n * 15, -1) AS a, round(x / 8, 2) AS b, round(-x) AS c FROM t",
        "SELECT extract(hour FROM DATE '2026-01-31') AS a, greatest(w, DATE '2026-01-01') AS b "
        "FROM t",
        "SELECT n // 2 AS a, n // -2 AS b, -n // 2 AS c FROM t",
        *(
            f"SELECT date_trunc('{unit}', w) AS c FROM t"  # noqa: S608 (a test)
            for unit in ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
        ),
    ],
)
def test_forms_that_are_seldom_written(query: str) -> None:
    given = [
        (1, n, 0.5, "ab", "t", n > 0, at)
        for n, at in zip((-3, 0, 1, 5), (*TIMES, dt.datetime(2024, 2, 29, 23, 59, 59)), strict=True)
    ]
    given.append((2, None, None, None, None, None, None))
    ours, theirs = answers(query, given)
    assert ours == theirs


LARGE = [2**53 + 1, -(2**53) - 1, 2**62, 7]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n / 1000 AS v FROM t",
        "SELECT n * 0.5 AS v FROM t WHERE n > 0.5",
        "SELECT n FROM t WHERE n = 7.0",
        "SELECT n FROM t WHERE n IN (7, 2.5)",
        "SELECT n FROM t WHERE x IN (7, 9007199254740993)",
        "SELECT coalesce(n, 1.5) AS v FROM t",
        "SELECT CASE WHEN n > 7 THEN n ELSE x END AS v FROM t",
        "SELECT CAST(n AS DOUBLE) AS v FROM t",
        "SELECT sum(n) / count(*) AS v FROM t GROUP BY k",
        "SELECT floor(n) AS v, ceil(n + 1) AS w FROM t",
        "SELECT sqrt(abs(n)) AS v, sqrt(9007199254740993) AS w FROM t",
    ],
)
def test_whole_numbers_beyond_those_of_floats_meet_floats(query: str) -> None:
    given = [(k, n, 7.0, "", "", True, None) for k, n in enumerate(LARGE)]
    ours, theirs = answers(query, given)
    assert ours == theirs
