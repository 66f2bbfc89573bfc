"""Dashboards to visit: their requests, and runs that have everything a page can show."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count as counting
from typing import Any

import thalweg as tw
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.serving import Dashboard
from thalweg.dashboard.telling import Telling
from thalweg.events import (
    BatchDone,
    ChildSaid,
    Decided,
    Difference,
    KeyCount,
    KeyLink,
    KeyMove,
    KeyPair,
    Keys,
    Noticed,
    Progress,
    Reconfigured,
    RunStarted,
    TupleRefused,
)
from thalweg.metrics import ComponentMetrics, Latency, Snapshot
from thalweg.recording.records import Numbering
from thalweg.stats import WINDOWS, Stats, Totals
from thalweg.topology import Topology

#: What users may call things, or have in their tuples.
HOSTILE = '<img src=x onerror="window.hacked = true"></script>\'&quot;'
LONG = "k" * 10_000
RIGHT_TO_LEFT = "\u202e\u05e9\u05dc\u05d5\u05dd\u202c \u0645\u0631\u062d\u0628\u0627"


@dataclass(frozen=True)
class Answer:
    """What a dashboard has said."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    dashboard: Dashboard,
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """Send one request; headers that are given replace those that are usual."""
    connection = http.client.HTTPConnection("127.0.0.1", dashboard.access.port)
    connection.connect()
    try:
        with _until_the_other_end_has_closed(connection.sock):
            return _answered(connection, (method, path), body, headers or {})
    finally:
        connection.close()


@contextmanager
def _until_the_other_end_has_closed(connected: socket.socket) -> Iterator[None]:
    """Leave no socket of a dashboard behind that lasts longer than the test."""
    with connected.dup() as kept:
        yield
        with suppress(OSError):  # reset by the dashboard, so closed
            kept.shutdown(socket.SHUT_WR)
            while kept.recv(65536):
                pass


def _answered(
    connection: http.client.HTTPConnection,
    what: tuple[str, str],
    body: bytes | None,
    headers: dict[str, str],
) -> Answer:
    connection.putrequest(*what, skip_host=True, skip_accept_encoding=True)
    sent = {"Host": f"{connection.host}:{connection.port}", **headers}
    if body is not None:
        sent = {"Content-Length": str(len(body)), "Content-Type": "application/json"} | sent
    for name, value in sent.items():
        connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    told = {name.lower(): value for name, value in answer.getheaders()}
    return Answer(answer.status, told, answer.read())


def bearer(dashboard: Dashboard) -> dict[str, str]:
    """Give the header of a program that has the token."""
    return {"Authorization": f"Bearer {dashboard.access.token}"}


def streamed(dashboard: Dashboard, after: int, until: int) -> list[dict[str, Any]]:
    """Listen to the stream of records until one has come."""
    connection = http.client.HTTPConnection("127.0.0.1", dashboard.access.port)
    connection.connect()
    try:
        with _until_the_other_end_has_closed(connection.sock):
            return _streamed(connection, after, until)
    finally:
        connection.close()


def _streamed(
    connection: http.client.HTTPConnection, after: int, until: int
) -> list[dict[str, Any]]:
    connection.request("GET", f"/api/stream?after={after}")
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    found: list[dict[str, Any]] = []
    while not found or found[-1]["n"] < until:
        line = answer.readline()
        assert line, "the stream has ended"
        if line.startswith(b"data: "):
            found.append(json.loads(line.removeprefix(b"data: ")))
    return found


def words(name: str = "words") -> Topology:
    """Describe a small topology."""
    flow = tw.Flow(name)
    source = flow.source("source", tw.items(["a", "b", "a"]), fields={"word": str})
    source.tally("count", key="word", degree=2).sink("out", tw.call(lambda t: None))
    return flow.build()


def snapshot(elapsed: float, rows: int = 1000, names: tuple[str, ...] = ()) -> Snapshot:
    """Make metrics as a run of :func:`words` has them."""
    count = int(rows * elapsed)
    totals = Totals(count, count, count, count, 0, 0.3 * elapsed, 0.1, 0.1)
    components = tuple(
        ComponentMetrics(
            name,
            degree=2 if name == "count" else 1,
            received=0 if name == "source" else count,
            emitted=0 if name == "out" else count,
            errors=1 if name == "count" else 0,
            busy=0.3 * elapsed,
            per_task=(count - count // 4, count // 4) if name == "count" else (count,),
            shuffled=count // 4,
            local=count - count // 4,
            waiting=None if name == "source" else 7,
            reordering=None if name == "source" else 3,
            chosen=None if name == "source" else count // 10,
            blocked=0.5 * elapsed if name == "source" else 0.0,
            order=None if name == "source" else "total",
            reordered=None if name == "source" else count // 100,
            reorder_seconds=None if name == "source" else 0.02 * (count // 100),
            head_wait=None if name == "source" else 0.25,
            stats={window: Stats.of(totals, max(elapsed, 1.0)) for window in WINDOWS},
            task_stats=tuple(
                {window: Stats.of(totals, max(elapsed, 1.0)) for window in WINDOWS}
                for _ in range(2 if name == "count" else 1)
            ),
        )
        for name in names or ("source", "count", "out")
    )
    latency = Latency(0.002, 0.005, 0.009, count) if elapsed else None
    recent = Latency(0.3, 0.305, 0.309, 30, over=15.0) if elapsed else None
    return Snapshot(elapsed, components, count, count, 1, latency, pending=14, recent=recent)


def told(hub: Hub, topology: Topology | None = None, runtime: str = "local") -> Telling:
    """Fill a hub with the records of a run in which everything has happened, with hostile texts."""
    # Half a second between two records, from 0.5 on.
    numbering = Numbering(steady=counting(0.0, 0.5).__next__, wall=lambda: 1_700_000_000.0)
    telling = Telling(hub, topology or words(), runtime, "ds2", numbering)
    telling.listen(RunStarted("words", runtime))
    for at in range(8):
        telling.listen(Progress(snapshot(0.5 * at)))
        telling.listen(keys(0.1 * at))
    telling.listen(TupleRefused("count", 1, f"({HOSTILE!r}, {LONG!r})", f"{HOSTILE}: no number"))
    telling.listen(TupleRefused("count", 0, RIGHT_TO_LEFT, "right to left"))
    telling.listen(Noticed(HOSTILE))
    telling.listen(ChildSaid("count", 0, 4, HOSTILE))
    score = {"locality": 0.25, "imbalance": 1.5}
    report = {"epoch": 3, "reason": HOSTILE, "keys": 10, "bytes": 2000, "steps": 1, "pause": 0.25}
    report |= {"before": score, "predicted": {"locality": 0.75, "imbalance": 1.1}, "after": None}
    moves = tuple(KeyMove("count", key, 0, 1, 9.0) for key in (HOSTILE, RIGHT_TO_LEFT, "plain"))
    telling.listen(Reconfigured("epoch 3", report, Difference(1234, 5, moves)))
    telling.listen(Reconfigured("epoch 4", report | {"epoch": 4}, Difference(0, 0, ())))
    telling.listen(Decided(f"ds2: count 2 -> 3 because {HOSTILE}", "ds2", 1.0, {"count": (2, 3)}))
    telling.listen(Decided("", "static", 1.0, {"count": (2, 2)}, carried_out=False))
    if runtime == "spark":
        for at in range(3):
            telling.listen(_batch(at))
    return telling


def keys(locality: float, share_error: float | None = None) -> Keys:
    """Say which keys were seen together."""
    left = tuple(KeyCount(key, 100.0, at) for at, key in enumerate((HOSTILE, LONG)))
    right = tuple(KeyCount(key, 50.0, at) for at, key in enumerate((RIGHT_TO_LEFT, "plain")))
    pairs = (
        KeyPair(HOSTILE, RIGHT_TO_LEFT, 40.0, local=True),
        KeyPair(LONG, "plain", 9.0, local=False),
    )
    link = KeyLink("count", "out", 200.0, 4.0, locality, left, right, pairs, share_error)
    return Keys((link,), 0.5, {"count": 12}, {"count": 1.2})


def _batch(at: int) -> BatchDone:
    plain = BatchDone(
        version=1,
        epoch=1,
        rows=1000,
        seconds=0.5,
        attempts=1,
        phases={"job": 0.35, "commit": 0.1, "deliver": 0.04, "rest": 0.01},
        stages=(0.2, 0.2),
        shuffled=100,
        shuffled_bytes=5000,
        local=900,
        spilled=0,
        moved_keys=0,
        moved_bytes=0,
        state_keys=10,
        state_bytes=1000,
    )
    return replace(plain, version=at + 1, state_bytes=1000 * (at + 1))


def address(dashboard: Dashboard) -> str:
    """Give the address of a page without its token."""
    return dashboard.address.partition("?")[0]


@contextmanager
def canned(runtime: str = "local") -> Iterator[Dashboard]:
    """Serve the page of a run in which everything has happened."""
    hub = Hub()
    told(hub, runtime=runtime)
    with Dashboard(hub) as dashboard:
        yield dashboard
