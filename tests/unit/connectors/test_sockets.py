"""Lines from a TCP server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thalweg as tw
from connectors.running import read
from thalweg.clock import SystemClock
from thalweg.connectors.lines import LineQueue


@contextmanager
def server(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """Accept one connection on a free port and talk; joined at the end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                talk(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            thread.join()


def sending(*pieces: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return talk


def test_lines_arrive_until_the_server_closes() -> None:
    with server(sending(b"one\nt", b"wo\r\n", b"no newline")) as port:
        outcome = read(tw.socket_lines("127.0.0.1", port), clock=SystemClock())
    assert outcome.values == ["one", "two", "no newline"]


def test_json_lines_have_declared_fields() -> None:
    with server(sending(b'{"n":1,"s":"x"}\n{"n":"?"}\n{"s":"y","n":2}\n')) as port:
        source = tw.socket_lines("127.0.0.1", port, format="json")
        outcome = read(source, {"n": int, "s": str}, clock=SystemClock(), on_error="skip")
    assert outcome.rows == [(1, "x"), (2, "y")]
    assert outcome.errors == 1


def test_bytes_that_are_no_text_are_refused_with_their_line() -> None:
    refused = pytest.raises(tw.RecordError, match=r"xff.*127\.0\.0\.1:\d+, line 2")
    with server(sending(b"good\n\xff\xfe\ngood\n")) as port, refused:
        read(tw.socket_lines("127.0.0.1", port), clock=SystemClock())


def test_a_line_without_end_is_refused_within_bounded_memory() -> None:
    with server(sending(b"x" * 100_000, b"x" * 100_000 + b"\nshort\n")) as port:
        source = tw.socket_lines("127.0.0.1", port, max_record=1000)
        outcome = read(source, clock=SystemClock(), on_error="skip")
    assert outcome.values == ["short"]
    assert outcome.errors == 1


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(tw.RecordError, match=rf"127\.0\.0\.1:{port}.*refused.*is it running"):
        read(tw.socket_lines("127.0.0.1", port))


def test_a_connection_that_breaks_is_an_error() -> None:
    def reset(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with server(reset) as port, pytest.raises(tw.RecordError, match=f":{port}.*[Rr]eset"):
        read(tw.socket_lines("127.0.0.1", port), clock=SystemClock())


def test_a_silent_server_does_not_hold_up_the_run() -> None:
    stop = threading.Event()

    def talk(connection: socket.socket) -> None:
        connection.sendall(b"only\n")
        stop.wait()

    flow = tw.Flow("silent")
    with server(talk) as port:
        flow.source("lines", tw.socket_lines("127.0.0.1", port)).sink(
            "out", tw.call(lambda _: stop.set())
        )
        assert flow.run(stop=stop).stopped


def test_of_several_tasks_one_reads() -> None:
    with server(sending(b"one\ntwo\n")) as port:
        outcome = read(tw.socket_lines("127.0.0.1", port), clock=SystemClock(), degree=3)
    assert outcome.values == ["one", "two"]


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(tw.UsageError, match="'text' or 'json'"):
        tw.socket_lines("localhost", 1, format="csv")  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=8), max_size=20))
def test_lines_do_not_depend_on_the_pieces_they_arrive_in(pieces: list[bytes]) -> None:
    queue = LineQueue(lambda *_: None)
    whole = b"".join(pieces)
    for piece in pieces:
        queue.feed(piece)
    queue.end()
    expected = whole.removesuffix(b"\n").split(b"\n") if whole else []
    assert queue.take(1000).texts == expected
    assert (queue.ready_bytes, queue.partial_bytes) == (0, 0)
