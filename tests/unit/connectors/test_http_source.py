"""What is sent over HTTP becomes rows, and who sent it is told the truth."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import cloudpickle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.clock import SystemClock
from thalweg.connectors import http_serving
from thalweg.connectors.http_bodies import BadBody, JsonBodies
from thalweg.connectors.http_door import Door
from thalweg.connectors.http_inbox import Inbox, Told
from thalweg.connectors.http_serving import App
from thalweg.connectors.http_source import HttpSource
from thalweg.contexts import TaskContext
from thalweg.events import Noticed
from thalweg.schemas import Shape, fields

TOKEN = "a-token-that-is-long"  # noqa: S105 (opens nothing)
DECLARED = {"n": int, "word": str}
ONE = b'{"n": 1, "word": "to"}'
_PORT = re.compile(r"http://.*:(\d+)/")


def port_in(event: Any) -> int | None:
    found = _PORT.search(event.text) if isinstance(event, Noticed) else None
    return int(found[1]) if found else None


def post(
    port: int, body: Any, path: str = "/", method: str = "POST", **headers: str
) -> tuple[int, Any]:
    """Send one request on a connection of its own."""
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@dataclass
class Asked:
    """A source that nothing but the test asks."""

    body: HttpSource
    port: int

    def rows(self) -> list[dict[str, Any]]:
        """Wait for rows, and take them."""
        while (batch := self.body.next_block(1000)) is None:
            time.sleep(0)
        return batch.to_pylist()

    def wait(self, rows: int) -> None:
        """Wait until so many rows wait."""
        while self.body.backlog() < rows:
            time.sleep(0)


@contextmanager
def asked(types: Any = DECLARED, **options: Any) -> Iterator[Asked]:
    ports: list[int] = []
    body = tw.http_source(0, **options)
    body.context = TaskContext(
        "flow",
        "hooks",
        0,
        1,
        SystemClock(),
        random.Random(0),
        shapes={"default": Shape(fields(types))},
        tell=lambda event: ports.append(port_in(event) or 0),
    )
    body.prepare(body.context)
    try:
        yield Asked(body, ports[0])
    finally:
        body.cleanup()


@contextmanager
def sending(source: Asked, *bodies: bytes, **headers: str) -> Iterator[list[Future[Any]]]:
    """Send requests beside the test, each when the rows of those before it wait."""
    with ThreadPoolExecutor(len(bodies)) as pool:
        futures = []
        for body in bodies:
            before = source.body.backlog()
            futures.append(pool.submit(post, source.port, body, **headers))
            source.wait(before + 1)
        yield futures


# --- a run ----------------------------------------------------------------------------------------


@dataclass
class Ran:
    port: int
    seen: list[Any] = field(default_factory=list)


@contextmanager
def running(runtime: Any, types: Any = DECLARED, time: Any = None, **options: Any) -> Iterator[Ran]:
    """Run a flow beside the test, until it is left."""
    stop, ports, seen = threading.Event(), Future[int](), list[Any]()
    flow = tw.Flow("hooks")
    source = flow.source("hooks", tw.http_source(0, **options), fields=types, time=time)
    source.sink("out", tw.collect(seen))

    def listen(event: Any) -> None:
        port = port_in(event)
        if port is not None:
            ports.set_result(port)

    with ThreadPoolExecutor(1) as pool:
        ran = pool.submit(flow.run, on=runtime, stop=stop, listen=listen)
        try:
            yield Ran(ports.result(), seen)
        finally:
            stop.set()
            ran.result()


@pytest.mark.parametrize("kind", ["inline", "local", "checkpoint"])
def test_a_run_takes_objects_arrays_and_lines(kind: str, tmp_path: Any) -> None:
    runtimes = {"inline": tw.Inline(), "local": tw.Local()}
    runtime = runtimes.get(kind) or tw.Local(checkpoint=str(tmp_path))
    with running(runtime) as ran:
        assert post(ran.port, ONE) == (200, {"rows": 1})
        assert post(ran.port, b"[%s, %s]" % (ONE, ONE)) == (200, {"rows": 2})
        assert post(ran.port, b"%s\n\n%s\n" % (ONE, ONE)) == (200, {"rows": 2})
        assert post(ran.port, b"[]") == (200, {"rows": 0})
    assert [tuple(t) for t in ran.seen] == [(1, "to")] * 5


def test_many_senders_are_all_answered() -> None:
    with running(tw.Local()) as ran, ThreadPoolExecutor(8) as pool:
        bodies = [json.dumps({"n": n, "word": "w"}).encode() for n in range(200)]
        answers = list(pool.map(lambda body: post(ran.port, body), bodies))
        assert answers == [(200, {"rows": 1})] * 200
    assert sorted(t.n for t in ran.seen) == list(range(200))


# --- answers --------------------------------------------------------------------------------------


def test_nobody_is_answered_before_the_rows_have_entered() -> None:
    with asked() as source, sending(source, ONE) as (answer,):
        assert source.rows() == [{"n": 1, "word": "to"}]
        assert not answer.done()
        source.body.taken_in()
        assert answer.result() == (200, {"rows": 1})


def test_a_request_is_answered_when_its_last_row_has_entered() -> None:
    body = b"\n".join([ONE] * 3)
    with asked() as source, sending(source, body) as (answer,):
        for rows in (2, 1):
            assert not answer.done()
            batch = source.body.next_block(2)
            assert batch is not None
            assert batch.num_rows == rows
            source.body.taken_in()
        assert answer.result() == (200, {"rows": 3})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "Input data was truncated"),
        (b"to be", "JSON is malformed"),
        (b'{"n": 1}', "Object missing required field `word`"),
        (b'{"n": "x", "word": "a"}', "Expected `int | null`, got `str` - at `$.n`"),
        (b"[" + ONE + b', {"n": "x", "word": ""}]', "Expected `int | null`, got `str` - at"),
        (ONE + b'\n{"n": 1.5, "word": ""}', "line 2: Expected `int | null`, got `float`"),
        (b'{"n": 1, "word": "\xff"}', "UTF-8"),
        (b'{"other": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"n": 123456789012345678901234567890, "word": ""}', "n"),
    ],
)
def test_a_bad_body_is_refused_as_a_whole_with_a_reason(body: bytes, reason: str) -> None:
    with asked() as source:
        status, said = post(source.port, body)
        assert status == 400
        assert reason in said["error"]
        assert source.body.next_block(10) is None


@pytest.mark.parametrize("value", ["null", "1e300", "1700000000000", "253402300799"])
def test_who_sends_no_time_is_told_so_and_the_run_goes_on(value: str) -> None:
    timed = {"types": {"at": float}, "time": "at"}
    with running(tw.Local(), **timed) as ran:
        assert post(ran.port, b'{"at": 1}') == (200, {"rows": 1})
        status, said = post(ran.port, b'[{"at": 2}, {"at": %s}]' % value.encode())
        assert status == 400
        expected = "a time, got null"
        if value != "null":
            expected = f"a time of the years 2 to 9998, got {float(value)} (numbers count s here)"
        assert said["error"] == f"time of row 2, 'at': expected {expected}"
        assert post(ran.port, b'{"at": 3}') == (200, {"rows": 1})
    assert [t.at for t in ran.seen] == [1.0, 3.0]


def test_times_that_are_no_times_are_told_by_their_row() -> None:
    moments = Shape(fields({"at": pa.timestamp("us")}))
    bodies = JsonBodies(moments, tw.event_time("at"))
    assert bodies.read(b'{"at": "2026-01-02T03:04:05"}').num_rows == 1
    with pytest.raises(BadBody, match=r"^time of row 1, 'at': expected a time, got null$"):
        bodies.read(b'{"at": null}')
    with pytest.raises(BadBody, match="expected a time of the years 2 to 9998, got datetime"):
        bodies.read(b'{"at": "9999-12-31T23:59:59"}')
    learnt = JsonBodies(Shape(fields(["at"])), tw.event_time("at"))
    with pytest.raises(BadBody, match=r"^time of row 1, 'at': expected a time, got 'x'$"):
        learnt.read(b'{"at": "x"}')


def test_a_field_without_a_type_has_that_of_its_first_value() -> None:
    with asked(["x"]) as source:
        with sending(source, b'{"x": null}', b'{"x": 1}') as answers:
            assert source.rows() == [{"x": None}, {"x": 1}]
            source.body.taken_in()
            assert [answer.result()[0] for answer in answers] == [200, 200]
        status, said = post(source.port, b'{"x": "one"}')
        assert status == 400
        assert "expected int64" in said["error"]


def test_only_who_has_the_token_may_send() -> None:
    with asked(token=TOKEN) as source:
        refused: list[dict[str, str]] = [
            {},
            {"Authorization": "Bearer another-long-token"},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": "Bearer "},
        ]
        assert [post(source.port, ONE, **headers)[0] for headers in refused] == [401] * 4
        with sending(source, ONE, Authorization=f"Bearer {TOKEN}") as (answer,):
            source.rows()
            source.body.taken_in()
            assert answer.result()[0] == 200


def test_a_page_in_a_browser_may_not_send_without_a_token() -> None:
    with asked() as source:
        assert post(source.port, ONE, Origin="https://elsewhere.example")[0] == 403
        assert post(source.port, ONE, Host="elsewhere.example")[0] == 403


def test_other_paths_and_methods_are_refused() -> None:
    with asked(path="/hooks") as source:
        assert post(source.port, ONE)[0] == 404
        assert post(source.port, None, "/hooks", "GET")[0] == 405
        assert post(source.port, ONE, "/hooks", Content_Encoding="gzip")[0] == 415


def in_pieces() -> Iterator[bytes]:
    for _ in range(100):
        yield b" " * 10


@pytest.mark.parametrize("make", [lambda: b" " * 101, in_pieces], ids=["length", "chunked"])
def test_a_body_that_is_too_large_is_refused(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_serving, "_DRAIN_SECONDS", 300.0)  # however slowly it is sent
    with asked(max_body=100) as source:
        assert post(source.port, make()) == (413, {"error": "expected at most 100 bytes"})


def test_too_much_that_waits_is_refused_until_it_has_entered() -> None:
    two = ONE + b"\n" + ONE
    with asked(max_pending=3) as source, sending(source, two) as (first,):
        assert post(source.port, two)[0] == 429
        source.rows()
        assert post(source.port, two)[0] == 429  # it has been given, but not entered
        source.body.taken_in()
        assert first.result()[0] == 200
        with sending(source, b"\n".join([ONE] * 5)) as (second,):  # alone it is never too much
            assert len(source.rows()) == 5
            source.body.taken_in()
            assert second.result()[0] == 200


def test_who_waits_when_the_run_ends_is_told_so() -> None:
    with ThreadPoolExecutor(1) as pool:
        with asked() as source:
            answer = pool.submit(post, source.port, ONE)
            source.wait(1)
        assert answer.result()[0] == 503


def test_a_connection_that_says_nothing_does_not_keep_a_source_open() -> None:
    with asked() as source:
        silent = socket.create_connection(("127.0.0.1", source.port))
    silent.close()


def test_a_port_that_is_taken_is_named() -> None:
    with asked() as source, pytest.raises(tw.RecordError, match=f"address 127.0.0.1:{source.port}"):
        flow = tw.Flow("second")
        flow.source("hooks", tw.http_source(source.port), fields=["x"]).sink("o", tw.collect([]))
        flow.run()


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"host": "0.0.0.0"}, "expected a token"),  # noqa: S104 (refused)
        ({"host": "example.org"}, "expected a token"),
        ({"token": "short"}, "at least 16 characters"),
        ({"path": "hooks"}, "begin with /"),
        ({"max_body": 0}, "max_body: expected at least 1"),
        ({"max_pending": 0}, "max_pending: expected at least 1"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(tw.UsageError, match=said):
        tw.http_source(8080, **options)


def test_a_token_is_neither_shown_nor_sent() -> None:
    flow = tw.Flow("hooks")
    source = tw.http_source(0, host="::1", token=TOKEN)
    flow.source("hooks", source, fields=["x"]).sink("out", tw.collect([]))
    assert TOKEN not in repr(source) + repr(source.door) + repr(flow.build())
    assert TOKEN.encode() not in cloudpickle.dumps(flow.build())


# --- all bodies -----------------------------------------------------------------------------------

RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            "word": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        }
    ),
    max_size=8,
)


def as_array(records: list[Any], indent: int | None) -> bytes:
    return json.dumps(records, indent=indent).encode()


def as_lines(records: list[Any], _indent: int | None) -> bytes:
    return "\n".join(json.dumps(record, ensure_ascii=False) for record in records).encode()


class Entering(Inbox):
    """Takes everything in at once."""

    def put(self, rows: pa.RecordBatch, told: Told) -> bool:
        taken = super().put(rows, told)
        self.seen = [row for batch in self.take(1000) for row in batch.to_pylist()]
        self.taken_in()
        return taken


def deliver(body: bytes, cuts: list[int]) -> tuple[int, list[Any]]:
    """Give a body to the application in pieces; gives the status, and the rows that entered."""
    edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    pieces = [body[start:stop] for start, stop in pairwise(edges)]
    messages = [
        {"type": "http.request", "body": piece, "more_body": n < len(pieces)}
        for n, piece in enumerate(pieces, 1)
    ]
    inbox, sent = Entering(1000), list[Any]()
    inbox.seen = []
    app = App(Door("127.0.0.1", 0), inbox, JsonBodies(Shape(fields(DECLARED))))

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"host", b"localhost:1")]}
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], inbox.seen


@given(
    records=RECORDS,
    write=st.sampled_from([as_array, as_lines]),
    indent=st.none() | st.integers(0, 2),
    cuts=st.lists(st.integers(0, 10_000), max_size=6),
)
def test_rows_are_the_same_however_a_body_is_cut(
    records: list[Any], write: Any, indent: int | None, cuts: list[int]
) -> None:
    body = write(records, indent)
    if not body:
        return
    assert deliver(body, cuts) == (200, records)


@given(record=RECORDS.filter(len), indent=st.integers(0, 3))
def test_an_object_may_have_any_layout(record: list[Any], indent: int) -> None:
    body = json.dumps(record[0], indent=indent).encode()
    assert deliver(body, []) == (200, record[:1])


@given(body=st.binary(max_size=60), cuts=st.lists(st.integers(0, 100), max_size=4))
def test_any_bytes_are_rows_or_a_reason(body: bytes, cuts: list[int]) -> None:
    status, rows = deliver(body, cuts)
    assert status == 200 or (status, rows) == (400, [])


@given(sizes=st.lists(st.integers(1, 5), max_size=8), limits=st.lists(st.integers(1, 7)))
def test_an_inbox_gives_each_row_once_and_in_order(sizes: list[int], limits: list[int]) -> None:
    inbox, told = Inbox(1000), list[int]()
    ends, total = [], 0
    for number, size in enumerate(sizes):
        batch = pa.record_batch({"n": range(total, total + size)})
        inbox.put(batch, lambda ok, number=number: told.append(number))
        total += size
        ends.append(total)
    found: list[int] = []
    for limit in [*limits, *[7] * total]:
        given_ = [n for batch in inbox.take(limit) for n in batch.column("n").to_pylist()]
        assert len(given_) <= limit
        found += given_
        inbox.taken_in()
        assert told == [number for number, end in enumerate(ends) if end <= len(found)]
    assert found == list(range(total))


def test_a_bad_body_says_what_is_wrong_with_the_whole_object() -> None:
    rows = JsonBodies(Shape(fields(DECLARED)))
    with pytest.raises(BadBody, match=r"got `str` - at `\$.n`"):
        rows.read(b'{\n "n": "x",\n "word": ""\n}')
