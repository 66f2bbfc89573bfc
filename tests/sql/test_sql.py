"""Queries: what they give, where their parts go, and what is refused."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from queries import POSTS, asked, result
from typer.testing import CliRunner

import thalweg as tw
from sparksession import spark_session
from thalweg.cli.app import app
from thalweg.cli.query_sources import stream_source
from thalweg.cli.querying import QueryOptions, query_topology, waits_for
from thalweg.connectors.http_door import Door
from thalweg.sql.clauses import taken


@pytest.mark.parametrize("on", ["inline", "local"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT tag FROM posts WHERE likes > 3", [("jazz",), ("rock",)]),
        ("SELECT * FROM posts WHERE at = 1", [POSTS[0]]),
        ("SELECT likes * 2 + 1 AS x FROM posts WHERE region = 'eu'", [(7,), (9,)]),
        ("SELECT upper(tag) FROM posts WHERE tag LIKE 'ro%'", [("ROCK",)]),
        ("SELECT at FROM posts WHERE region IS NULL OR likes IS NULL", [(30,), (80,)]),
        ("SELECT at FROM posts WHERE likes BETWEEN 2 AND 3", [(1,), (80,)]),
        ("SELECT at FROM posts WHERE tag IN ('pop', 'rock')", [(2,), (80,)]),
        ("SELECT at FROM posts WHERE NOT (tag = 'jazz')", [(2,), (80,)]),
        ("SELECT coalesce(likes, 0) AS l FROM posts WHERE at = 30", [(0,)]),
        ("SELECT CAST(likes AS DOUBLE) / 2 AS h FROM posts WHERE at < 2", [(1.5,)]),
        (
            "SELECT concat(region, '-', tag) AS c, substr(tag, 1, 2) AS s, nullif(likes, 2) AS l "
            "FROM posts WHERE at > 70",
            [("us-jazz", "ja", 8), ("-pop", "po", None)],
        ),
        ("SELECT round(likes / 3, 1) AS r FROM posts WHERE at < 3", [(1.0,), (1.3,)]),
        (
            "SELECT CASE WHEN likes > 3 THEN 'much' ELSE 'little' END AS how FROM posts "
            "WHERE region = 'eu'",
            [("little",), ("much",)],
        ),
        (
            "SELECT tag, count(*) AS n, sum(likes) AS s FROM posts "
            "WINDOW TUMBLING 1 MINUTE GROUP BY tag",
            [("jazz", 2, 3), ("jazz", 2, 9), ("pop", 1, 2), ("rock", 1, 4)],
        ),
        ("SELECT count(likes) AS n FROM posts WINDOW TUMBLING 1 HOUR", [(5,)]),
        ("SELECT tag, max(likes) FROM posts GROUP BY tag", [("jazz", 8), ("pop", 2), ("rock", 4)]),
        (
            "SELECT tag, avg(likes + 1) AS m FROM posts GROUP BY tag "
            "HAVING m > 3.5 AND count(*) > 1",
            [("jazz", 5.0)],
        ),
        (
            "SELECT lower(region) AS r, count(*) AS n FROM posts GROUP BY r",
            [("eu", 2), ("us", 3), (None, 1)],
        ),
        (
            "SELECT r.title, count(*) AS n FROM posts p JOIN regions r ON p.region = r.code "
            "WHERE p.likes > 0 GROUP BY r.title",
            [("America", 2), ("Europe", 2)],
        ),
        (
            "SELECT at, title FROM posts LEFT JOIN regions r ON region = r.code WHERE at > 70",
            [(75, "America"), (80, None)],
        ),
        ("SELECT array_agg(likes) AS l FROM posts WINDOW ROWS 3", [([1, 8, 2],), ([3, 4],)]),
        (
            "SELECT tag, count(*) AS n FROM posts WINDOW SESSION 20 SECONDS GROUP BY tag",
            [("jazz", 1), ("jazz", 1), ("jazz", 2), ("pop", 1), ("rock", 1)],
        ),
    ],
)
def test_queries_give_what_sql_says(query: str, expected: list[Any], on: str) -> None:
    assert result(query, on) == sorted(expected, key=repr)


def test_conditions_and_columns_go_to_where_rows_begin() -> None:
    flow, made = asked(
        "SELECT title FROM posts p JOIN regions r ON p.region = r.code "
        "WHERE title <> 'Europe' AND likes > 3 AND at < length(title)"
    )
    made.sink("out", tw.stdout())
    topology = flow.build()
    steps = [(c.name, list(c.outputs.values())) for c in topology]
    assert [(name, [f.names for f in outputs]) for name, outputs in steps] == [
        ("posts", [("at", "region", "tag", "likes")]),
        ("select-1", [("at", "region", "likes")]),
        ("filter-1", [("at", "region", "likes")]),
        ("join-1", [("at", "region", "likes", "title")]),
        ("filter-2", [("at", "region", "likes", "title")]),
        ("select-2", [("title",)]),
        ("out", []),
    ]
    joined = topology.component("join-1").body
    assert joined.side.current(0.0, print).rows.to_pylist() == [{"code": "us", "title": "America"}]


def test_of_a_table_behind_a_left_join_only_on_is_cut() -> None:
    flow, made = asked(
        "SELECT at FROM posts LEFT JOIN regions ON region = code AND title <> 'Europe' "
        "WHERE title IS NULL"
    )
    made.sink("out", tw.stdout())
    joined = flow.build().component("join-1").body
    assert joined.side.current(0.0, print).rows["code"].to_pylist() == ["us"]


def test_windows_are_read_from_the_query() -> None:
    assert taken("SELECT 1 FROM t")[1] is None
    assert taken("SELECT 1 FROM t window sliding 10 min every 1 min")[1] == tw.sliding(600, 60)
    assert taken("SELECT 1 FROM t WINDOW LANDMARK '2 hours' GROUP BY x")[1] == tw.landmark(7200)
    assert taken("SELECT 1 FROM t WINDOW ROWS 10 EVERY 2")[1] == tw.rows(10, every=2)


def test_the_command_prints_results(tmp_path: Path) -> None:
    posts, regions = tmp_path / "posts.csv", tmp_path / "regions.csv"
    posts.write_text("at,region,likes\n1,eu,3\n2,eu,4\n70,us,1\n")
    regions.write_text("code,title\neu,Europe\nus,America\n")
    query = (
        "SELECT title, sum(likes) AS likes FROM posts JOIN regions r ON region = r.code "
        "WINDOW TUMBLING 1 MINUTE GROUP BY title"
    )
    arguments = ["sql", query, "--source", f"posts={posts}", "--table", f"regions={regions}"]
    arguments += ["--types", "at:int,likes:int", "--time", "at", "--delay", "5 s", "-q"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert [line.split() for line in shown.output.splitlines()] == [
        ["title=Europe", "likes=7"],
        ["title=America", "likes=1"],
    ]


def printed(*arguments: str) -> list[list[str]]:
    shown = CliRunner().invoke(app, ["sql", *arguments, "-q"])
    assert shown.exit_code == 0, shown.output
    return [line.split() for line in shown.output.splitlines()]


@pytest.mark.parametrize(
    ("type_", "times"),
    [
        ("timestamp", ["2026-01-01T00:00:10", "2026-01-01T00:00:50", "2026-01-01 00:01:00"]),
        ("timestamptz", ["2026-01-01T01:00:10+01:00", "2026-01-01T00:00:50Z", "2026-01-01T00:01Z"]),
    ],
)
def test_the_command_reads_timestamps(tmp_path: Path, type_: str, times: list[str]) -> None:
    posts = tmp_path / "posts.csv"
    posts.write_text("at,n\n" + "".join(f"{at},1\n" for at in times))
    query = "SELECT count(*) AS n FROM posts WINDOW TUMBLING 1 MINUTE"
    arguments = ("--source", f"posts={posts}", "--types", f"posts.at:{type_}")
    assert printed(query, *arguments, "--time", "posts=at") == [["n=2"], ["n=1"]]


def test_the_command_reads_numbers_of_any_unit(tmp_path: Path) -> None:
    posts = tmp_path / "posts.csv"
    posts.write_text("at\n10000\n50000\n60000\n")
    query = "SELECT count(*) AS n FROM posts WINDOW TUMBLING 1 MINUTE"
    arguments = ("--source", f"posts={posts}", "--types", "at:int", "--time", "at")
    assert printed(query, *arguments, "--unit", "ms", "--idle", "1 s") == [["n=2"], ["n=1"]]


def test_the_command_reads_lines_of_a_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def send() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b'{"tag": "a", "n": 1}\n{"tag": "b", "n": 2}\n')

        sent = pool.submit(send)
        address = f"socket://127.0.0.1:{server.getsockname()[1]}"
        query = "SELECT tag FROM posts WHERE n > 1"
        found = printed(query, "--source", f"posts={address}", "--types", "tag:str,n:int")
        sent.result()
    assert found == [["tag=b"]]


def test_addresses_are_topics_and_webhooks() -> None:
    fields = {"tag": str}
    topic = stream_source("kafka://a:9092,b:9092/posts?group=g&until=now", fields)
    assert (topic.cluster.servers, topic.wanted.topics) == ("a:9092,b:9092", ("posts",))
    assert (topic.wanted.group, topic.wanted.bounded) == ("g", True)
    assert topic.outputs.names == ("tag",)
    more = stream_source("kafka://a/posts?extra=key,timestamp", fields)
    assert more.outputs.names == ("tag", "key", "timestamp")
    assert stream_source("http://127.0.0.1:8080/in", fields).door == Door("127.0.0.1", 8080, "/in")


_WINDOW = " WINDOW TUMBLING 1 MINUTE"


@pytest.mark.parametrize(
    ("clauses", "source", "tail", "waits"),
    [
        (" GROUP BY tag", "posts.csv", "1 s", True),
        (" GROUP BY tag", "kafka://a/posts", "", True),
        (" GROUP BY tag", "socket://localhost:9", "", True),
        (" GROUP BY tag", "kafka://a/posts?until=now", "", False),
        (" GROUP BY tag", "posts.csv", "", False),
        (_WINDOW + " GROUP BY tag", "posts.csv", "1 s", False),
        (" WINDOW ROWS 2 GROUP BY tag", "posts.csv", "1 s", False),
    ],
)
def test_who_asks_for_groups_of_all_that_never_ends_is_told_so(
    clauses: str, source: str, tail: str, waits: bool, tmp_path: Path
) -> None:
    (tmp_path / "posts.csv").write_text("at,tag\n1,a\n")
    of = source if "://" in source else str(tmp_path / source)
    how = QueryOptions([f"posts={of}"], types="tag:str,at:int", time=["at"], tail=tail)
    made = query_topology(f"SELECT tag, count(*) AS n FROM posts{clauses}", how)  # noqa: S608 (a test)
    assert bool(waits_for(made)) == waits


def test_queries_without_groups_wait_for_nothing() -> None:
    how = QueryOptions(["posts=socket://localhost:9"], types="tag:str")
    assert not waits_for(query_topology("SELECT tag FROM posts", how))


@pytest.mark.parametrize("options", [[], ["-q"], ["--log-format", "json"]])
def test_what_a_query_waits_for_is_told_before_it_runs(options: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def end() -> None:
            connection, _ = server.accept()
            connection.close()

        sent = pool.submit(end)
        address = f"socket://127.0.0.1:{server.getsockname()[1]}"
        query = "SELECT tag, count(*) AS n FROM posts GROUP BY tag"
        arguments = ["sql", query, "--source", f"posts={address}", "--types", "tag:str", *options]
        shown = CliRunner().invoke(app, arguments)
        sent.result()
    first = shown.stderr.partition("\n")[0]
    assert ("is answered when its input ends" in first) == (options != ["-q"])
    assert first.startswith("{") == ("json" in options)


def test_times_of_messages_are_times_of_a_query() -> None:
    how = QueryOptions(
        source=["posts=kafka://a/posts?extra=timestamp"], types="tag:str", time=["timestamp"]
    )
    query = "SELECT tag, count(*) AS n FROM posts WINDOW TUMBLING 1 MINUTE GROUP BY tag"
    source = query_topology(query, how).component("posts")
    assert source.outputs["default"].describe() == "tag: string, timestamp: timestamp[ms, tz=UTC]"
    assert source.options.time == tw.event_time("timestamp")


_WITH_USER = "me:hunter2@localhost"
_ADDRESSES = "kafka://HOST:PORT/TOPIC, socket://HOST:PORT or http://HOST:PORT/PATH"


@pytest.mark.parametrize(
    ("arguments", "tells"),
    [
        (["SELECT 1"], "query: expected --source NAME=FILES, got no source"),
        (["SELECT 1", "--source", "posts"], "--source: expected NAME=FILES, got posts="),
        (["SELECT a FROM p", "--source", "p=none.csv"], "none.csv"),
        (["SELECT a FROM p", "--types", "a:date"], "FIELD:TYPE"),
        (["SELECT a FROM p", "--source", "p=ftp://x/y"], "an address that begins with one of"),
        (["SELECT a FROM p", "--source", "p=socket://x:1"], "--types FIELD:TYPE,..., got none"),
        (["SELECT a FROM p", "--source", "p=socket://x", "--types", "a:int"], _ADDRESSES),
        (["SELECT a FROM p", "--source", "p=kafka://x/t?colour=1", "--types", "a:int"], "colour"),
        (
            ["SELECT a FROM p", "--source", "p=kafka://x/t?extra=time", "--types", "a:int"],
            "got time",
        ),
        (["SELECT a FROM p", "--source", "p=http://0.0.0.0:80", "--types", "a:int"], "a token"),
        (
            ["SELECT a FROM p", "--source", f"p=kafka://{_WITH_USER}/t", "--types", "a:int"],
            "no user",
        ),
        (["SELECT a FROM p", "--source", f"p=http://{_WITH_USER}:99999"], "no user or password"),
    ],
)
def test_mistakes_of_the_command_are_explained(arguments: list[str], tells: str) -> None:
    shown = CliRunner().invoke(app, ["sql", *arguments, "-q"])
    assert shown.exit_code != 0
    assert tells in " ".join(shown.output.split())
    assert "hunter2" not in shown.output


@pytest.mark.spark
def test_queries_give_the_same_on_spark() -> None:
    query = (
        "SELECT title, count(*) AS n, sum(likes + 1) AS s, window_start FROM posts p "
        "LEFT JOIN regions r ON p.region = r.code AND title NOT LIKE 'Eu%' "
        "WHERE likes NOT IN (4, 5) WINDOW TUMBLING 1 MINUTE GROUP BY title"
    )
    found = result(query, tw.Spark(spark_session(), places=2))
    assert found == result(query)
    assert [row[:3] for row in found] == [("America", 2, 11), (None, 1, 3), (None, 1, 4)]
