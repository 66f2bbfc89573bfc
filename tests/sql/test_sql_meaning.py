"""Queries mean what SQL says, also where there is no value, or are refused with a reason."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from queries import asked, result

import thalweg as tw
from thalweg.errors import ComponentError
from thalweg.sql.clauses import taken
from thalweg.sql.compiling import compiled


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("tag NOT LIKE 'ja%'", [2, 80]),
        ("NOT tag LIKE 'ja%'", [2, 80]),
        ("region NOT LIKE 'u%'", [1, 2]),
        (r"tag LIKE 'j\azz'", []),
        ("likes NOT IN (3, 4)", [70, 75, 80]),
        ("likes IN (3, NULL)", [1]),
        ("likes NOT IN (3, NULL)", []),
        ("(likes IN (3, NULL)) IS NULL", [2, 30, 70, 75, 80]),
        ("likes IN (NULL)", []),
        ("likes IN (-1, 8.0)", [75]),
        ("likes NOT BETWEEN 2 AND 3", [2, 70, 75]),
        ("(at < 2 AND (likes = 3 AND tag = 'jazz'))", [1]),
        ("TRUE", [1, 2, 30, 70, 75, 80]),
        ("trim('\t a ') = '\t a'", [1, 2, 30, 70, 75, 80]),
    ],
)
def test_conditions_know_three_truths(condition: str, expected: list[int]) -> None:
    found = result(f"SELECT at FROM posts WHERE {condition}")  # noqa: S608 (a test of SQL)
    assert sorted(at for (at,) in found) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT CASE WHEN likes > 3 THEN 'much' ELSE 'little' END AS h FROM posts WHERE at > 2",
            [("little",), ("little",), ("little",), ("much",)],
        ),
        (
            "SELECT CASE WHEN likes > 3 THEN 1 WHEN region = 'us' THEN 2 END AS h FROM posts",
            [(1,), (1,), (2,), (2,), (None,), (None,)],
        ),
        (
            "SELECT at, r.r_name FROM posts p JOIN places r ON p.region = r.code WHERE at < 31",
            [(1, "E"), (2, "E"), (30, "U")],
        ),
        (
            "SELECT at FROM posts p JOIN places r ON p.region = r.other AND p.region = r.code",
            [(1,), (2,)],
        ),
        (
            "SELECT at FROM posts p JOIN places r ON p.region = r.code AND p.tag = r.code",
            [],
        ),
        (
            "SELECT p.likes, r.likes AS theirs FROM posts p JOIN places r ON p.region = r.code "
            "WHERE p.likes > 3 AND r.likes < 150",
            [(4, 100)],
        ),
        (
            "SELECT at, r.code FROM posts p LEFT JOIN places r ON p.region = r.code "
            "AND r.likes > 150 WHERE at < 31",
            [(1, None), (2, None), (30, "us")],
        ),
        (
            "SELECT at FROM posts p LEFT JOIN regions r ON p.region = r.code WHERE r.code IS NULL",
            [(80,)],
        ),
        (
            "SELECT p.* FROM posts p JOIN places r ON region = code WHERE at = 1",
            [(1, "eu", "jazz", 3)],
        ),
        (
            "SELECT p.region AS r, count(*) AS n FROM posts p GROUP BY p.region",
            [("eu", 2), ("us", 3), (None, 1)],
        ),
        (
            "SELECT upper(tag) AS tag, count(*) AS n FROM posts GROUP BY tag HAVING tag = 'jazz'",
            [("JAZZ", 4)],
        ),
        (
            "SELECT length(tag) + 1 AS l, count(*) AS n FROM posts p GROUP BY length(p.tag)",
            [(4, 1), (5, 5)],
        ),
        ("SELECT tag FROM posts GROUP BY tag", [("jazz",), ("pop",), ("rock",)]),
        (
            "SELECT tag AS arg_1, sum(likes + 1) AS n FROM posts GROUP BY arg_1",
            [("jazz", 15), ("pop", 3), ("rock", 5)],
        ),
        (
            "SELECT tag AS agg_1, count(*) AS start FROM posts GROUP BY agg_1",
            [("jazz", 4), ("pop", 1), ("rock", 1)],
        ),
        (
            "SELECT sum(likes) AS likes FROM posts GROUP BY tag "
            "HAVING sum(likes) > 3 AND likes < 9",
            [(4,)],
        ),
        (
            "SELECT coalesce(sum(likes + 1), 0) AS s FROM posts WHERE at = 30 GROUP BY tag",
            [(0,)],
        ),
        ("SELECT 1 AS one FROM posts HAVING count(*) > 5", [(1,)]),
        ("SELECT approx_quantile(likes, 0.5) AS q FROM posts", [(3.0,)]),
        ("SELECT at AS tag, tag AS at FROM posts WHERE at = 80", [(80, "pop")]),
        ("SELECT at FROM posts WHERE tag = 'WINDOW TUMBLING 1 HOUR'", []),
        ("SELECT at FROM posts WHERE at = 1 -- WINDOW TUMBLING 1 HOUR", [(1,)]),
        ("SELECT count(*) AS n FROM posts /* window rows 3 */ WINDOW ROWS 6", [(6,)]),
        (
            "SELECT count(*) AS n FROM posts WINDOW LANDMARK 1 MINUTE GROUP BY window_end",
            [(3,), (6,)],
        ),
    ],
)
def test_queries_mean_what_sql_says(query: str, expected: list[Any]) -> None:
    assert result(query) == sorted(expected, key=repr)


def test_a_column_may_be_called_window() -> None:
    query = "SELECT window, count(*) FROM t GROUP BY window"
    assert taken(query) == (query, None)


ZONED = [dt.datetime(2026, 1, day, hour, tzinfo=dt.UTC) for day, hour in ((1, 0), (1, 12), (2, 0))]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("plain > TIMESTAMP '2026-01-01 00:00:00'", [1, 2]),
        ("plain >= DATE '2026-01-02'", [2]),
        ("plain BETWEEN DATE '2026-01-01' AND CAST('2026-01-01T12:00' AS TIMESTAMP)", [0, 1]),
        ("plain NOT IN (DATE '2026-01-01', '2026-01-02'::DATE)", [1]),
        ("plain IN (TIMESTAMP '2026-01-01 12:00:00', NULL)", [1]),
        ("zoned < TIMESTAMPTZ '2026-01-01 13:00:00+01:00'", [0]),
        ("zoned IN (TIMESTAMPTZ '2026-01-01 13:00:00+01:00')", [1]),
        ("day IN (TIMESTAMP '2026-01-01 12:00:00')", []),
        ("day = TIMESTAMP '2026-01-02 00:00:00'", [2]),
    ],
)
def test_times_are_compared_with_times_of_the_query(condition: str, expected: list[int]) -> None:
    flow, found = tw.Flow("query"), []
    rows = [(i, t.replace(tzinfo=None), t, t.date()) for i, t in enumerate(ZONED)]
    fields = {"n": int, "plain": dt.datetime, "zoned": pa.timestamp("us", "UTC"), "day": dt.date}
    given = flow.source("t", tw.items([*rows, (9, None, None, None)]), fields=fields)
    made = compiled(f"SELECT n FROM t WHERE {condition}", {"t": given})  # noqa: S608 (a test of SQL)
    made.sink("out", tw.call(lambda row: found.append(row.n)))
    flow.run(on="inline")
    assert found == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("-likes % 3", [0, -1, None, -1, -2, -2]),
        ("mod(likes, -3)", [0, 1, None, 1, 2, 2]),
        ("at % NULL", [None] * 6),
        ("coalesce(NULL, likes, NULL)", [3, 4, None, 1, 8, 2]),
        ("coalesce(NULL, NULL)", [None] * 6),
        ("coalesce((NULL), likes)", [3, 4, None, 1, 8, 2]),
        ("-9223372036854775808", [-(2**63)] * 6),
        ("region || '/' || tag", ["eu/jazz", "eu/rock", "us/jazz", "us/jazz", "us/jazz", None]),
        ("tag || NULL", [None] * 6),
    ],
)
def test_remainders_joined_texts_and_values_of_the_query(made: str, expected: list[Any]) -> None:
    found = result(f"SELECT at, {made} AS made FROM posts")  # noqa: S608 (a test of SQL)
    assert [row[1] for row in sorted(found)] == expected


def test_a_remainder_by_nothing_is_an_error() -> None:
    with pytest.raises(ComponentError, match="divide by zero"):
        result("SELECT 7 % (at - 30) AS x FROM posts")


@pytest.mark.parametrize("first", ["// 2", "/ 2"])
def test_division_of_whole_numbers_is_not_taken_for_a_cast_of_a_quotient(first: str) -> None:
    parts = [f"max({_CAST}) AS quotient", f"max({_WHOLE}) AS whole"]
    parts = parts[::-1] if first == "// 2" else parts
    query = f"SELECT tag, {', '.join(parts)} FROM posts GROUP BY tag WINDOW TUMBLING 1 HOUR"  # noqa: S608 (a test)
    row = result(query)[0][1:]
    assert sorted(row) == [2**53, 2**53 + 1]


_FOUR = f"(at - at + {4 * (2**53 + 1)})"
_CAST, _WHOLE = f"CAST({_FOUR} / 4 AS BIGINT)", f"{_FOUR} // 4"


def test_each_kind_of_division_has_a_name_and_a_key_of_its_own() -> None:
    _, made = asked("SELECT at // 4, CAST(at / 4 AS BIGINT) FROM posts")
    assert made.fields.names == ("at_4", "cast_at_4_as_bigint")
    with pytest.raises(tw.UsageError, match="a column of GROUP BY"):
        asked("SELECT CAST(at / 4 AS BIGINT) AS b, count(*) AS n FROM posts GROUP BY at // 4")
