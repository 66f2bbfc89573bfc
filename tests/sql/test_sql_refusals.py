"""What a query has that is not done is refused, and the message says what to do."""

from __future__ import annotations

import pyarrow as pa
import pytest
from queries import asked

import thalweg as tw
from thalweg.errors import TopologyError, UsageError
from thalweg.sql.compiling import compiled

_NOT_JOINED = "' in the query: expected [LEFT] JOIN table ON stream.a = table.b"
_JOIN_HINT = " (say [LEFT] JOIN table ON stream.a = table.b)"
_COLUMNS = "['at', 'likes', 'region', 'tag']"
_INNER = (
    "query within a query: expected none "
    "(compile the inner query first, and give its stream a name)"
)
_FORMS = (
    "window of the query: expected WINDOW TUMBLING 1 HOUR, SLIDING 1 HOUR EVERY 5 MINUTES, "
    "SESSION 30 MINUTES, LANDMARK 1 HOUR, or ROWS 100 [EVERY 10], got "
)
_KNOWN = (
    "columns, values, + - * / // %, ||, comparisons, AND OR NOT, IN, IS NULL, BETWEEN, LIKE, CASE"
)
_FUNCTIONS = (
    "one of the functions abs, cast, ceil, coalesce, concat, date_trunc, day, extract, floor, "
    "greatest, hour, if, least, length, lower, minute, month, nullif, round, second, sqrt, "
    "substring, trim, upper, year"
)
_TIMES = "TIMESTAMP '2026-01-31 12:30:00', TIMESTAMPTZ '2026-01-31 12:30:00Z' or DATE '2026-01-31'"
_SHARE = "a share between 0 and 1, as in approx_quantile(x, 0.9)"
_GROUPS = "a column, an expression or a name of SELECT behind GROUP BY"


@pytest.mark.parametrize(
    ("query", "tells"),
    [
        ("SELECT", "query: expected FROM a stream, got none"),
        ("DELETE FROM posts", "query: expected SELECT ... FROM ..., got DELETE"),
        (
            "SELECT tag FROM posts; SELECT at FROM posts",
            "query: expected SELECT ... FROM ..., got several queries, with ; between them",
        ),
        (
            "SELECT tag FROM posts UNION SELECT tag FROM posts",
            "query: expected SELECT ... FROM ..., got UNION",
        ),
        ("SELEC tag", "query: expected SELECT ... FROM ..., got SELEC"),
        ("SELECT 'a", "query: expected SQL, got Error tokenizing 'SELECT ''"),
        (
            "SELECT tga FROM posts",
            f"column tga in the query: expected one of {_COLUMNS}, got none of that name",
        ),
        (
            "SELECT tag FROM post",
            "'post' in the query: expected one of ['places', 'posts', 'regions']",
        ),
        (
            "SELECT tag FROM o.posts",
            "'o.posts' in the query: expected no name before that of the source",
        ),
        ("SELECT title FROM regions", "FROM regions: expected a stream, got a table"),
        (
            "SELECT tag FROM posts ORDER BY tag",
            "ORDER in the query: expected none "
            "(a stream has no end at which to sort it; put .top(k) behind it)",
        ),
        (
            "SELECT tag FROM posts LIMIT 3",
            "LIMIT in the query: expected none (stop the run instead, or put .top(k) behind it)",
        ),
        (
            "SELECT DISTINCT tag FROM posts",
            "DISTINCT in the query: expected none (GROUP BY the columns)",
        ),
        ("SELECT tag FROM (SELECT tag FROM posts)", _INNER),
        ("SELECT tag FROM posts WHERE region IN (SELECT code FROM regions)", _INNER),
        (
            "SELECT tag FROM posts TABLESAMPLE 10 PERCENT",
            "'posts TABLESAMPLE SYSTEM (10 PERCENT)' in the query: expected no TABLESAMPLE",
        ),
        ("SELECT * EXCLUDE (at) FROM posts", "'* EXCEPT (at)' in the query: expected no EXCLUDE"),
        ("SELECT z.* FROM posts p", "'z.*' in the query: expected one of the tables ['p']"),
        (
            "SELECT count(*), count(*) FROM posts",
            "column 'count' in SELECT: expected one column of that name, got it twice "
            "(say COUNT(*) AS another_name)",
        ),
        (
            "SELECT at, at + 1 AS at FROM posts",
            "column 'at' in SELECT: expected one column of that name, got it twice "
            "(say at + 1 AS another_name)",
        ),
        *(
            (
                f'SELECT at AS "{name}" FROM posts',  # noqa: S608 (a test)
                f"column {name!r} in SELECT: expected a name that Python accepts, without leading "
                "'_' (say at AS another_name)",
            )
            for name in ("two words", "class", "_at", "self")
        ),
        # --- joins
        (
            "SELECT at FROM posts RIGHT JOIN regions r ON region = code",
            f"'RIGHT JOIN regions AS r ON region = code{_NOT_JOINED}",
        ),
        (
            "SELECT at FROM posts SEMI JOIN regions r ON region = code",
            f"'SEMI JOIN regions AS r ON region = code{_NOT_JOINED}",
        ),
        (
            "SELECT at FROM posts ANTI JOIN regions r ON region = code",
            f"'ANTI JOIN regions AS r ON region = code{_NOT_JOINED}",
        ),
        (
            "SELECT at FROM posts LEFT SEMI JOIN regions r ON region = code",
            f"'LEFT SEMI JOIN regions AS r ON region = code{_NOT_JOINED}",
        ),
        (
            "SELECT at FROM posts LEFT ANTI JOIN regions r ON region = code",
            f"'LEFT ANTI JOIN regions AS r ON region = code{_NOT_JOINED}",
        ),
        ("SELECT at FROM posts CROSS JOIN regions", f"'CROSS JOIN regions{_NOT_JOINED}"),
        (
            "SELECT at FROM posts JOIN regions r ON r.code = 'eu'",
            f"\"JOIN regions AS r ON r.code = 'eu'\"{_NOT_JOINED[1:]}",
        ),
        (
            "SELECT at FROM posts ASOF JOIN regions ON region = code",
            "'ASOF JOIN regions ON region = code' in the query: expected no ASOF or "
            f"NATURAL{_JOIN_HINT}",
        ),
        (
            "SELECT at FROM posts JOIN regions USING (code)",
            f"'JOIN regions USING (code)' in the query: expected no USING{_JOIN_HINT}",
        ),
        (
            "SELECT at FROM posts p JOIN regions r ON p.region = p.tag",
            "'p.region = p.tag' in the query: expected a column of the stream that equals one of "
            "the table (other conditions belong into WHERE)",
        ),
        (
            "SELECT at FROM posts p JOIN places r ON p.region = r.code WHERE likes > 3",
            "column likes in the query: expected one table that has it, got p and r",
        ),
        (
            "SELECT at FROM posts JOIN regions ON region = code JOIN regions ON tag = title",
            "'regions' in the query: expected another name, got one twice (say JOIN table AS name)",
        ),
        # --- expressions
        (
            "SELECT tag FROM posts WHERE regexp_matches(tag, 'a')",
            f"\"regexp_matches(tag, 'a')\" in the query: expected {_FUNCTIONS}",
        ),
        (
            "SELECT tag FROM posts WHERE last_day(at) > 2000 AND (epoch(at + (1)) > 3)",
            f"'LAST_DAY(at)' in the query: expected {_FUNCTIONS}",
        ),
        (
            "SELECT at FROM posts WHERE 1 + strftime(at, ')') > 3",
            f"\"strftime(at, ')')\" in the query: expected {_FUNCTIONS}",
        ),
        (
            "SELECT cuont(tag) AS n FROM posts",
            f"'CUONT(tag)' in the query: expected {_FUNCTIONS} (did you mean 'count'?)",
        ),
        (
            "SELECT date_part('hour', at) AS x FROM posts",
            f"\"DATE_PART('hour', at)\" in the query: expected {_FUNCTIONS}",
        ),
        (
            "SELECT concat_ws('-', concat(tag, region)) AS x FROM posts",
            f"\"CONCAT_WS('-', CONCAT(tag, region))\" in the query: expected {_FUNCTIONS} "
            "(did you mean 'concat'?)",
        ),
        (
            "SELECT concat(tag, at) AS x FROM posts",
            "'CONCAT(tag, at)' in the query: expected values that go together, got Function "
            "'binary_join_element_wise' has no kernel matching input types (string, int64, string, "
            "string) (at: int64, tag: string; || and concat take texts alone, and CAST(x AS TEXT) "
            "makes one)",
        ),
        (
            "SELECT round(at, likes) AS x FROM posts",
            "'ROUND(at, likes)' in the query: expected a whole number from -18 to 18 as decimals",
        ),
        (
            "SELECT substr(tag, likes) AS x FROM posts",
            "'SUBSTRING(tag, likes)' in the query: expected a whole number from -2147483648 to "
            "2147483647 as start",
        ),
        (
            "SELECT substring(tag, 1, -1) AS x FROM posts",
            "'SUBSTRING(tag, 1, -1)' in the query: expected a whole number from 0 to 2147483647 "
            "as length",
        ),
        (
            "SELECT extract(decade FROM at) AS x FROM posts",
            "'EXTRACT(DECADE FROM at)' in the query: expected one of the parts ['year', 'quarter', "
            "'month', 'day', 'hour', 'minute', 'second', 'week', 'dow', 'doy']",
        ),
        (
            "SELECT extract(dow FROM tag) AS x FROM posts",
            "'EXTRACT(DOW FROM tag)' in the query: expected values that go together, got Function "
            "'day_of_week' has no kernel matching input types (string) (tag: string; dow is of "
            "times, and --types FIELD:timestamp reads text as such)",
        ),
        (
            "SELECT date_trunc('decade', at) AS x FROM posts",
            "\"date_trunc('decade', at)\" in the query: expected one of the units ['second', "
            "'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year']",
        ),
        (
            "SELECT date_trunc('hour', tag) AS x FROM posts",
            "\"date_trunc('hour', tag)\" in the query: expected values that go together, got "
            "Function 'floor_temporal' has no kernel matching input types (string) (tag: string; "
            "date_trunc takes times, and --types FIELD:timestamp reads text as such)",
        ),
        (
            "SELECT at // 0.5 AS x FROM posts",
            "'at // 0.5' in the query: expected values that go together, got Function "
            "'bit_wise_and' has no kernel matching input types (double, double) "
            "(at: int64; // and % take whole numbers alone)",
        ),
        (
            "SELECT IF(at > 1, 2) AS x FROM posts",
            "'IF(at > 1, 2)' in the query: expected IF(condition, value, other)",
        ),
        (
            "SELECT trim(tag, 'j') FROM posts",
            "\"TRIM(tag, 'j')\" in the query: expected no second argument",
        ),
        (
            "SELECT ceil(likes, 1) FROM posts",
            "'CEIL(likes, 1)' in the query: expected no second argument",
        ),
        (
            "SELECT at FROM posts WHERE at BETWEEN SYMMETRIC 3 AND 1",
            "'(at BETWEEN 3 AND 1 OR at BETWEEN 1 AND 3)' in the query: expected no SYMMETRIC",
        ),
        (
            "SELECT 99999999999999999999 AS x FROM posts",
            "'99999999999999999999' in the query: expected whole numbers of 64 bits "
            "(99999999999999999999.0 is a float)",
        ),
        (
            "SELECT at FROM posts WHERE at IN (1, 'x')",
            "\"at IN (1, 'x')\" in the query: expected values of one type behind IN",
        ),
        (
            "SELECT at FROM posts WHERE tag LIKE NULL",
            "'tag LIKE NULL' in the query: expected a text behind LIKE",
        ),
        (
            "SELECT at FROM posts WHERE at",
            "'at' in the query: expected a condition, which is true or false, got int64",
        ),
        (
            "SELECT at FROM posts WHERE tag > 5",
            "'tag > 5' in the query: expected values that go together, got Function 'greater' has "
            "no kernel matching input types (string, int64) (tag: string; "
            "CAST(tag AS INT), or --types tag:int, makes numbers of it)",
        ),
        (
            "SELECT CAST(at AS TINYINT) FROM posts",
            "'CAST(at AS TINYINT)' in the query: expected one of the types ['BIGINT', "
            "'BOOLEAN', 'DOUBLE', 'FLOAT', 'INT', 'TEXT', 'VARCHAR']",
        ),
        (
            "SELECT TRY_CAST(tag AS INT) AS x FROM posts",
            f"'TRY_CAST(tag AS INT)' in the query: expected {_KNOWN}",
        ),
        (
            "SELECT at FROM posts WHERE at > TIMESTAMP 'noon'",
            f"\"'noon'\" in the query: expected a time, as in {_TIMES}",
        ),
        (
            "SELECT at FROM posts WHERE at > TIMESTAMPTZ '2026-01-31 12:30:00'",
            f"\"'2026-01-31 12:30:00'\" in the query: expected a time, as in {_TIMES}",
        ),
        (
            "SELECT CAST(at AS TIMESTAMP) AS x FROM posts",
            f"'CAST(at AS TIMESTAMP)' in the query: expected a text, as in {_TIMES} "
            "(--types FIELD:timestamp reads a field as times)",
        ),
        (
            "SELECT at FROM posts WHERE tag > DATE '2026-01-31'",
            "\"tag > CAST('2026-01-31' AS DATE)\" in the query: expected values that go together, "
            "got Function 'greater' has no kernel matching input types (string, date32[day]) "
            "(tag: string; --types tag:timestamp makes times of it)",
        ),
        (
            "SELECT at % 1.5 AS x FROM posts",
            "'at % 1.5' in the query: expected values that go together, got Function "
            "'bit_wise_and' has no kernel matching input types (double, double) "
            "(at: int64; // and % take whole numbers alone)",
        ),
        (
            "SELECT tag || at AS x FROM posts",
            "'tag || at' in the query: expected values that go together, got Function "
            "'binary_join_element_wise' has no kernel matching input types (string, int64, string) "
            "(at: int64, tag: string; || and concat take texts alone, and CAST(x AS TEXT) makes "
            "one)",
        ),
        # --- groups
        (
            "SELECT at FROM posts HAVING at > 10",
            "query with HAVING: expected an aggregate, got none "
            "(say count(*) or sum(x) ... in SELECT)",
        ),
        (
            "SELECT tag FROM posts WINDOW TUMBLING 1 HOUR",
            "query with a WINDOW: expected an aggregate, got none "
            "(say count(*) or sum(x) ... in SELECT)",
        ),
        (
            "SELECT tag FROM posts GROUP BY tag WITH ROLLUP",
            "'GROUP BY tag WITH ROLLUP' in the query: expected no ROLLUP "
            "(GROUP BY columns is all there is)",
        ),
        (
            "SELECT tag FROM posts GROUP BY ALL",
            "'GROUP BY ALL' in the query: expected no ALL (GROUP BY columns is all there is)",
        ),
        (
            "SELECT tag FROM posts GROUP BY ROLLUP (tag)",
            f"'ROLLUP (tag)' in the query: expected {_GROUPS}",
        ),
        ("SELECT tag FROM posts GROUP BY 1", f"'1' in the query: expected {_GROUPS}"),
        (
            "SELECT likes FROM posts GROUP BY tag",
            "'likes' in the query: expected a column of GROUP BY, or an aggregate "
            "(GROUP BY likes, or say max(likes))",
        ),
        (
            "SELECT window_start, count(*) FROM posts",
            "column window_start in the query: expected a WINDOW, got none",
        ),
        (
            "SELECT min(likes, 2) FROM posts",
            "'MIN(likes, 2)' in the query: expected no second argument",
        ),
        (
            "SELECT count(at, likes) FROM posts",
            "'COUNT(at, likes)' in the query: expected no further arguments",
        ),
        (
            "SELECT count(DISTINCT tag) FROM posts",
            "'COUNT(DISTINCT tag)' in the query: expected no DISTINCT "
            "(approx_distinct(x) estimates it to about 2 %)",
        ),
        (
            "SELECT approx_quantile(at, [0.5]) FROM posts",
            f"'APPROX_QUANTILE(at, ARRAY(0.5))' in the query: expected {_SHARE}",
        ),
        (
            "SELECT approx_quantile(at, 1.5) FROM posts",
            f"'APPROX_QUANTILE(at, 1.5)' in the query: expected {_SHARE}",
        ),
        (
            "SELECT sum(tag) FROM posts",
            "'SUM(tag)' in the query: expected whole or floating numbers, "
            "got string (CAST(tag AS INT), or --types tag:int, makes numbers of it)",
        ),
        (
            "SELECT approx_quantile(upper(tag), 0.5) FROM posts",
            "'APPROX_QUANTILE(UPPER(tag), 0.5)' in the query: expected whole or floating numbers, "
            "got string (CAST(tag AS INT), or --types tag:int, makes numbers of it)",
        ),
        (
            "SELECT avg(at > 3) FROM posts",
            "'AVG(at > 3)' in the query: expected whole or floating numbers, got bool",
        ),
        (
            "SELECT tag FROM posts WHERE count(*) > 1",
            f"'COUNT(*)' in the query: expected {_KNOWN} "
            "(an aggregate belongs into SELECT or HAVING, and not into another)",
        ),
        # --- windows
        ("SELECT count(*) FROM posts WINDOW HOPPING 1 HOUR", f"{_FORMS}WINDOW HOPPING"),
        ("SELECT count(*) FROM posts WINDOW SLIDING 1 HOUR", f"{_FORMS}WINDOW SLIDING 1 HOUR"),
        ("SELECT count(*) FROM posts WINDOW TUMBLING", f"{_FORMS}the end of the query"),
        (
            "SELECT count(*) FROM posts WINDOW ROWS 1 WINDOW ROWS 2",
            "query: expected one WINDOW, got 2",
        ),
        (
            "SELECT count(*) FROM posts WINDOW w AS (ORDER BY at)",
            "WINDOWS in the query: expected none",
        ),
    ],
)
def test_what_is_not_done_is_refused_with_a_reason(query: str, tells: str) -> None:
    with pytest.raises(UsageError) as refused:
        asked(query)
    assert str(refused.value) == tells


def test_what_is_no_sql_is_told_by_the_parser() -> None:
    with pytest.raises(UsageError, match=r"^query: expected SQL, got Invalid expression / "):
        asked("SELEC tag FROM posts")


def test_a_window_on_a_stream_whose_time_is_another_field_is_refused() -> None:
    flow = tw.Flow("query")
    posts = flow.source("posts", tw.items([]), fields=["at"], time="when")
    with pytest.raises(TopologyError, match=r"^field 'when' in time of 'posts': expected one of"):
        compiled("SELECT count(*) FROM posts WINDOW TUMBLING 1 MINUTE", {"posts": posts})


def test_times_with_and_without_a_zone_are_not_compared() -> None:
    flow = tw.Flow("query")
    fields = {"at": pa.timestamp("us", "UTC")}
    posts = flow.source("posts", tw.items([]), fields=fields)
    with pytest.raises(UsageError, match=r"timezone.*write TIMESTAMP .* TIMESTAMPTZ '"):
        compiled("SELECT at FROM posts WHERE at > TIMESTAMP '2026-01-01'", {"posts": posts})
