"""How often what fails is started anew: as often as spouts send its tuples again, or as is said."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import hosted_parts
import pytest
from storm_libraries import NAMES, library
from test_storm_hosting import Heard, rows, run

from thalweg.errors import ThalwegError
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.local.runtime import Local
from thalweg.storm.building import Hosting, build
from thalweg.storm.plans import plan_of
from thalweg.topology import Topology


@pytest.fixture(params=NAMES)
def lib(request: pytest.FixtureRequest) -> ModuleType:
    return library(request.param)


@pytest.fixture
def parts(lib: ModuleType, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = hosted_parts.components(lib)
    for name, cls in vars(made).items():  # found by path, as children do
        monkeypatch.setattr(hosted_parts, name, cls, raising=False)
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    made.lib = lib
    return made


@pytest.fixture(params=["inline", "local"])
def runtime(request: pytest.FixtureRequest) -> Any:
    return {"inline": Inline(), "local": Local(workers=2)}[request.param]


def picky(parts: SimpleNamespace, spout: Any, isolation: Any, **config: Any) -> Topology:
    """Make a topology with a bolt that raises at each "bad"."""
    source = spout.spec()
    body = {"config": config, "source": source, "picky": parts.Picky.spec(inputs=[source])}
    made = type(parts.lib.Topology)("Made", (parts.lib.Topology,), body)
    return build(plan_of(made, "made"), Hosting(isolation=isolation))


@pytest.mark.parametrize("isolation", ["auto", "process"])
def test_a_bad_tuple_of_a_quiet_stream_is_given_up_by_its_spout_and_the_run_goes_on(
    parts: SimpleNamespace, runtime: Any, isolation: Any
) -> None:
    made = picky(parts, parts.OneByOne, isolation, sentences=["a", "bad", "b"])
    outcome, heard = run(made, runtime)
    assert rows(outcome, "picky") == [("a",), ("b",)]
    again = parts.OneByOne.max_fails
    assert outcome.result.metrics.failed == 1 + again
    told = [text for text in heard.noticed() if "started anew and its spout is told" in text]
    assert len(told) == len(heard.noticed()) == 1 + again


def ended(made: Topology, runtime: Any) -> tuple[ThalwegError | None, list[str]]:
    """Run a topology that may end with an error; gives what was noticed."""
    heard = Heard()
    try:
        made.run(on=runtime, listen=heard.append)
    except ThalwegError as error:
        return error, heard.noticed()
    return None, heard.noticed()


@pytest.mark.parametrize("isolation", ["auto", "process"])
@pytest.mark.parametrize("restarts", [0, 2])
def test_a_configuration_says_how_often_what_fails_without_a_spout_to_tell_is_started_anew(
    parts: SimpleNamespace, runtime: Any, isolation: Any, restarts: int
) -> None:
    said = {"sentences": ["bad"] * 9, "thalweg.restarts": restarts}
    error, noticed = ended(picky(parts, parts.Sentences, isolation, **said), runtime)
    assert error is not None
    assert len(noticed) == restarts
    assert all(f" of {restarts}" in text for text in noticed)
