"""Requests to a source on Spark: who was answered has rows in the log, also when the run stops."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import thalweg as tw
from sparksession import spark_session
from thalweg.events import Noticed, Progress


@contextmanager
def running(state: Path, seen: list[int], enough: int = 0) -> Iterator[int]:
    """Run a flow beside the test; it is stopped when it is left, and so much was seen."""
    stop, ports, filled = threading.Event(), Future[int](), threading.Event()
    flow = tw.Flow("hooks")
    source = flow.source("hooks", tw.http_source(0), fields={"n": int})
    source.sink("out", tw.call(lambda t: seen.append(t.n)))

    def listen(event: Any) -> None:
        if isinstance(event, Noticed) and (found := re.search(r"http://.*:(\d+)/", event.text)):
            ports.set_result(int(found[1]))
        if isinstance(event, Progress) and len(seen) >= enough:
            filled.set()

    runtime = tw.Spark(spark_session(), places=2, state=str(state))
    with ThreadPoolExecutor(1) as pool:
        ran = pool.submit(flow.run, on=runtime, stop=stop, listen=listen)
        ran.add_done_callback(lambda _: filled.set())
        try:
            yield ports.result()
            if enough:
                filled.wait()
        finally:
            stop.set()
            ran.result()


def post(port: int, *numbers: int) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("POST", "/", json.dumps([{"n": n} for n in numbers]))
        return connection.getresponse().status


def test_rows_that_were_answered_are_processed_once_by_this_run_or_the_next(
    tmp_path: Path,
) -> None:
    seen: list[int] = []
    with running(tmp_path, seen) as port:
        assert [post(port, 1, 2), post(port, 3)] == [200, 200]
    with running(tmp_path, seen, enough=4) as port:
        assert post(port, 4) == 200
    assert seen == [1, 2, 3, 4]
