"""What is no time is refused before anything runs, by the name of its setting."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

import thalweg as tw
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Timing
from thalweg.errors import UsageError
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.spark.limits import Retries
from thalweg.runtimes.spark.pump import PumpSettings

ABOVE = "expected seconds above 0, or text such as '10 s', got"
FROM = "expected seconds from 0 on, or text such as '10 s', got"
FOLLOWING = "expected seconds above 0, or math.inf for no end, got"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: tw.Local(snapshot_every="soon"), f"snapshot_every: {FROM} 'soon'"),
        (lambda: tw.Local(snapshot_every=nan), f"snapshot_every: {FROM} nan"),
        (lambda: tw.Local(snapshot_every=-1), f"snapshot_every: {FROM} -1"),
        (lambda: tw.Spark(trigger="soon"), f"trigger: {ABOVE} 'soon'"),
        (lambda: tw.Spark(trigger=nan), f"trigger: {ABOVE} nan"),
        (lambda: tw.Spark(scaling="ds2", batch_time=-1), f"batch_time: {ABOVE} -1"),
        (lambda: tw.Locality(every="soon"), f"locality every: {ABOVE} 'soon'"),
        (lambda: tw.Locality(adopt_every=0), f"locality adopt_every: {ABOVE} 0"),
        (lambda: tw.Quality(latency="soon"), f"quality latency: {ABOVE} 'soon'"),
        (lambda: tw.Quality(by="window", window=0), f"quality window: {ABOVE} 0"),
        (lambda: Retries(backoff=nan), "Retries.backoff: expected seconds from 0 on, got nan"),
        (lambda: PumpSettings(seconds=nan), "seconds: expected at least 0, got nan"),
        (lambda: PumpSettings(idle=-1), "idle: expected at least 0, got -1"),
        (
            lambda: Scaling(Static(Timing(grace=nan))),
            "grace of 'static': expected 0 s or more, got nan s",
        ),
    ],
)
def test_what_is_no_time_is_refused_by_its_name(made: Any, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        made()
    assert str(refused.value) == told


@pytest.mark.parametrize("runtime", [tw.Local, Inline])
@pytest.mark.parametrize("wrong", [0, -1, nan, "30 s"])
def test_tuples_have_some_time_until_they_fail(runtime: Any, wrong: Any) -> None:
    with pytest.raises(UsageError) as refused:
        runtime(ack_timeout=wrong)
    assert str(refused.value) == f"ack_timeout: {FOLLOWING} {wrong!r}"
    assert runtime(ack_timeout=inf).ack_timeout == inf


@pytest.mark.parametrize("runtime", [tw.Local, Inline])
@pytest.mark.parametrize("wrong", [-1, nan, inf])
def test_sources_without_anything_are_asked_again(runtime: Any, wrong: Any) -> None:
    with pytest.raises(UsageError, match="idle: expected seconds from 0 on, got "):
        runtime(idle=wrong)
    assert runtime(idle=0).idle == 0


@pytest.mark.parametrize("nothing", [0, 0.0, "0", "0 s"])
def test_one_snapshot_may_follow_the_other(nothing: Any) -> None:
    assert tw.Local(snapshot_every=nothing).snapshot_seconds == 0
