"""Background work: a small pool that components share, closed with the run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from vocabulary import RUNTIMES, Numbers, Pass, chain

import thalweg as tw
from thalweg.runtimes.background import Background
from thalweg.testing import run_inline


class Asking(tw.Bolt):
    """Lets each number be squared beside the stream, and sends the squares at the end."""

    outputs = {"square": int}

    def prepare(self, context: tw.TaskContext) -> None:
        self.asked: list[Any] = []

    def process(self, t: Any) -> None:
        self.asked.append(self.context.background(pow, t.n, 2))

    def process_end(self) -> None:
        for asked in self.asked:
            self.emit(asked.result())


@pytest.mark.parametrize("name", RUNTIMES)
@pytest.mark.parametrize("isolation", [None, "process"])
def test_functions_run_beside_the_stream(name: str, isolation: str | None) -> None:
    topology = chain(Asking(), Numbers(50), isolation=isolation, degree=1)
    outcome = run_inline(topology, runtime=RUNTIMES[name]())
    assert sorted(t.square for t in outcome.outputs["bolt"]) == [n * n for n in range(50)]


@pytest.mark.parametrize("name", RUNTIMES)
@pytest.mark.parametrize("isolation", [None, "process"])
@pytest.mark.parametrize(
    ("function", "told"), [(int, "seven"), (sys.exit, r"it called sys\.exit\('seven'\)")]
)
def test_an_error_in_the_background_ends_the_run(
    name: str, isolation: str | None, function: Callable[[str], Any], told: str
) -> None:
    class Fails(Pass):
        def process(self, t: Any) -> None:
            self.context.background(function, "seven")

    topology = chain(Fails(), isolation=isolation, degree=1)
    with pytest.raises(tw.ComponentError, match=rf"'bolt'.*in the background.*{told}"):
        topology.run(on=RUNTIMES[name]())


def test_all_tasks_share_so_many_threads() -> None:
    seen: set[str] = set()

    class Noting(Pass):
        def process(self, t: Any) -> None:
            self.context.background(lambda: seen.add(threading.current_thread().name))

    chain(Noting(), Numbers(200), degree=3).run(on=tw.Local(), background_threads=2)
    assert 1 <= len(seen) <= 2
    assert all(name.startswith("thalweg-background") for name in seen)


def test_what_was_asked_for_is_finished_before_components_are_closed() -> None:
    order: list[str] = []
    begun = threading.Event()

    class Slow(Pass):
        def __deepcopy__(self, memo: Any) -> Slow:
            return self

        def process(self, t: Any) -> None:
            self.context.background(self.work)

        def work(self) -> None:
            begun.wait()
            order.append("done")

        def process_end(self) -> None:
            begun.set()

        def cleanup(self) -> None:
            order.append("closed")

    chain(Slow(), Numbers(5)).run(on=tw.Local())
    assert order == ["done"] * 5 + ["closed"]


def test_who_asks_for_too_much_has_to_wait() -> None:
    pool, go_on, asked = Background(threads=1, most_waiting=2), threading.Event(), []

    def ask() -> None:
        for n in range(10):
            pool.submit(("c", 0), go_on.wait)
            asked.append(n)

    thread = threading.Thread(target=ask)
    thread.start()
    while len(asked) < 3:  # one runs, two wait
        thread.join(0.001)
    assert len(asked) == 3
    go_on.set()
    thread.join()
    pool.close()
    assert asked == list(range(10))


def test_a_run_that_has_ended_takes_no_more() -> None:
    pool = Background()
    pool.close()
    with pytest.raises(tw.UsageError, match="a run that goes on"):
        pool.submit(("c", 0), print)


def test_there_has_to_be_a_thread() -> None:
    with pytest.raises(tw.UsageError, match="background_threads"):
        chain(Pass()).run(background_threads=0)
