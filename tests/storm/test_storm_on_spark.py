"""Components of Storm's Python world on Spark: those that keep nothing run, others are refused."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import hosted_parts
import pytest
from storm_libraries import NAMES, library

from sparksession import spark_session
from thalweg.clock import ManualClock
from thalweg.errors import ThalwegError
from thalweg.runtimes.spark.runtime import Spark
from thalweg.storm import Hosting, topology_of
from thalweg.testing import run_inline

pytestmark = pytest.mark.spark
SENTENCES = ["to be or not", "to be", "that is the question"]


@pytest.fixture(params=NAMES)
def lib(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    found = library(request.param)
    for name, cls in vars(hosted_parts.components(found)).items():
        monkeypatch.setattr(hosted_parts, name, cls, raising=False)
    return found


def made(lib: ModuleType, last: str, hosting: Hosting | None = None) -> Any:
    parts: Any = hosted_parts

    class Words(lib.Topology):
        config = {"sentences": SENTENCES}
        source = parts.Sentences.spec()
        split = parts.Split.spec(inputs=[source], par=2, config={"thalweg.stateless": True})
        end = getattr(parts, last).spec(inputs={split: lib.Grouping.fields("word")})

    return topology_of(Words, hosting=hosting)


def test_a_bolt_that_keeps_state_by_key_is_refused(lib: ModuleType) -> None:
    with pytest.raises(ThalwegError, match=r"'end' with a fields grouping.*attributes"):
        run_inline(made(lib, "Count"), runtime=Spark(spark_session(), clock=ManualClock()))


@pytest.mark.parametrize("isolation", ["auto", "process"])
def test_bolts_that_keep_nothing_run(
    lib: ModuleType, isolation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted_parts.Count, "stateless", True, raising=False)
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    assert sys.path[0] == str(Path(__file__).parent)
    runtime = Spark(spark_session(), places=2, clock=ManualClock())
    outcome = run_inline(made(lib, "Count", Hosting(isolation=isolation)), runtime=runtime)
    words = Counter(t.word for t in outcome.outputs["end"])
    assert words == Counter(" ".join(SENTENCES).split())
