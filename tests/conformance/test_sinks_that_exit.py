"""``sys.exit`` in the function of a sink, which the cases of the suite replace."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from sparksession import spark_session
from thalweg.clock import ManualClock
from thalweg.connectors.memory import call, items
from thalweg.errors import ComponentError
from thalweg.flow import Flow
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.spark.runtime import Spark

RUNTIMES: dict[str, Callable[[], Any]] = {
    "inline": Inline,
    "local": Local,
    "executors": lambda: Local(assigning="executors"),
    "spark/sink-beside-the-driver": lambda: Spark(spark_session(), clock=ManualClock()),
}
every_runtime = pytest.mark.parametrize("make", RUNTIMES.values(), ids=RUNTIMES)


def leave(t: Any) -> None:
    if t.n == 3:
        sys.exit(0)


def flow(**options: Any) -> Flow:
    made = Flow("leaving")
    made.source("numbers", items(range(5)), fields={"n": int}).sink("it", call(leave), **options)
    return made


@every_runtime
def test_the_run_ends_with_an_error_that_names_the_sink(make: Callable[[], Any]) -> None:
    with pytest.raises(ComponentError, match=r"'it'.*leave.*it called sys\.exit\(0\)") as caught:
        flow().run(on=make())
    assert (caught.value.component, caught.value.tuple_text) == ("it", "n=3")


@every_runtime
def test_a_tuple_at_which_it_exits_is_skipped_if_the_policy_says_so(
    make: Callable[[], Any],
) -> None:
    assert flow(on_error="skip").run(on=make()).metrics.errors == 1


@every_runtime
def test_an_interrupt_is_no_error_of_a_component(make: Callable[[], Any]) -> None:
    def interrupt(_t: Any) -> None:
        raise KeyboardInterrupt

    made = Flow("interrupted")
    numbers = made.source("numbers", items(range(5)), fields={"n": int})
    numbers.sink("it", call(interrupt), on_error="skip")
    with pytest.raises(KeyboardInterrupt):
        made.run(on=make())
