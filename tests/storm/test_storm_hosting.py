"""Components of either library inside a run: what they send, acknowledge, and what goes wrong."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import hosted_parts
import pytest
from storm_libraries import NAMES, library

import thalweg as tw
from thalweg.builder import TopologyBuilder
from thalweg.clock import ManualClock
from thalweg.connectors.memory import items
from thalweg.errors import ThalwegError
from thalweg.events import ChildSaid, Event, Noticed
from thalweg.execution import Run
from thalweg.multilang import ShellBolt
from thalweg.runtimes.inline import Inline
from thalweg.runtimes.local.runtime import Local
from thalweg.storm.building import Hosting, build, safe
from thalweg.storm.hosted_bolts import HostedBolt
from thalweg.storm.hosted_spouts import HostedSpout
from thalweg.storm.plans import plan_of
from thalweg.storm.settings import TICK
from thalweg.testing import Outcome, run_inline
from thalweg.topology import Topology

SENTENCES = ["to be or not to be", "that is the question", "", "to die to sleep"]


@pytest.fixture(params=NAMES)
def lib(request: pytest.FixtureRequest) -> ModuleType:
    return library(request.param)


@pytest.fixture
def parts(lib: ModuleType, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = hosted_parts.components(lib)
    for name, cls in vars(made).items():  # found by path, as children do
        monkeypatch.setattr(hosted_parts, name, cls, raising=False)
    made.lib = lib
    return made


@pytest.fixture(params=["inline", "local"])
def runtime(request: pytest.FixtureRequest) -> Any:
    if request.param == "inline":
        return Inline(clock=ManualClock(), block_rows=7)
    return Local(clock=ManualClock(), workers=2, block_rows=7)


class Heard(list[Event]):
    """Everything that a run told."""

    def logged(self) -> list[str]:
        return [event.text for event in self if isinstance(event, ChildSaid)]

    def noticed(self) -> list[str]:
        return [event.text for event in self if isinstance(event, Noticed)]


def topology(lib: ModuleType, config: dict[str, Any] | None = None, **specs: Any) -> Topology:
    body = {"config": {"sentences": SENTENCES, **(config or {})}, **specs}
    made = type(lib.Topology)("Made", (lib.Topology,), body)
    return build(plan_of(made, "made"))


def known(cls: type) -> None:
    """Let a class be found by its path."""
    cls.__module__ = __name__
    globals()[cls.__name__] = cls


def run(made: Topology, runtime: Any) -> tuple[Outcome, Heard]:
    heard = Heard()
    return run_inline(made, runtime=runtime, run=Run(listen=heard.append)), heard


def rows(outcome: Outcome, name: str) -> list[tuple[Any, ...]]:
    return [tuple(t) for t in outcome.outputs[name]]


def test_words_are_counted(parts: SimpleNamespace, runtime: Any) -> None:
    made = topology(
        parts.lib,
        source=(source := parts.Sentences.spec()),
        split=(split := parts.Split.spec(inputs=[source], par=2)),
        count=parts.Count.spec(inputs={split: parts.lib.Grouping.fields("word")}, par=3),
    )
    assert isinstance(made.component("count").body, HostedBolt)
    assert isinstance(made.component("source").body, HostedSpout)
    outcome, _ = run(made, runtime)
    words = " ".join(SENTENCES).split()
    assert Counter(rows(outcome, "count")) == Counter(
        (word, n + 1) for word, count in Counter(words).items() for n in range(count)
    )


def test_what_failed_is_sent_again_until_the_limit(
    parts: SimpleNamespace, runtime: Any, tmp_path: Path
) -> None:
    config = {"sentences": ["good", "once", "bad", "fine"], "mark": str(tmp_path / "mark")}
    made = topology(
        parts.lib,
        config,
        source=(source := parts.Replaying.spec()),
        picky=parts.Tolerant.spec(inputs=[source]),
    )
    outcome, heard = run(made, runtime)
    assert Counter(rows(outcome, "picky")) == Counter([("good",), ("fine",), ("once",)])
    assert {text for text in heard.logged() if text.startswith("done")} == {
        "done good after 0 fails",
        "done fine after 0 fails",
        "done once after 1 fails",
        "done bad after 2 fails",
    }


def test_a_component_that_raises_is_made_anew(
    parts: SimpleNamespace, runtime: Any, tmp_path: Path
) -> None:
    config = {"sentences": ["good", "once", "fine"], "mark": str(tmp_path / "mark")}
    made = topology(
        parts.lib,
        config,
        source=(source := parts.Sentences.spec()),
        picky=parts.Picky.spec(inputs=[source]),
    )
    outcome, heard = run(made, runtime)
    assert rows(outcome, "picky") == [("good",), ("fine",)]
    assert len(heard.noticed()) == 1
    assert "ValueError: once; it is started anew (1 of 3 in a row)" in heard.noticed()[0]
    assert any("ValueError" in text for text in heard.logged())


def test_a_component_that_only_raises_ends_the_run(parts: SimpleNamespace, runtime: Any) -> None:
    made = topology(
        parts.lib,
        {"sentences": ["bad"] * 9},
        source=(source := parts.Sentences.spec()),
        picky=parts.Picky.spec(inputs=[source]),
    )
    with pytest.raises(ThalwegError, match="ValueError: bad"):
        run(made, runtime)


def test_errors_that_are_not_in_a_row_do_not_end_the_run(
    parts: SimpleNamespace, runtime: Any
) -> None:
    made = topology(
        parts.lib,
        {"sentences": ["bad", "good"] * 9, "mark": "unused"},
        source=(source := parts.Sentences.spec()),
        picky=parts.Picky.spec(inputs=[source]),
    )
    outcome, heard = run(made, runtime)
    assert rows(outcome, "picky") == [("good",)] * 9
    assert len(heard.noticed()) == 9


def test_a_spout_that_only_raises_ends_the_run(lib: ModuleType, runtime: Any) -> None:
    class Broken(lib.Spout):
        outputs = ("word",)

        def next_tuple(self) -> None:
            text = "no words"
            raise ValueError(text)

    known(Broken)
    with pytest.raises(ThalwegError, match="ValueError: no words"):
        run(topology(lib, source=Broken.spec()), runtime)


def test_batches_are_processed_by_tick_and_at_the_end(parts: SimpleNamespace, runtime: Any) -> None:
    made = topology(
        parts.lib,
        {"sentences": ["a1", "b1", "a2", "b2"], TICK: 1},
        source=(source := parts.Replaying.spec()),
        batches=parts.Batches.spec(inputs=[source]),
    )
    assert made.component("batches").options.tick == 1
    outcome, heard = run(made, runtime)
    words: dict[str, list[str]] = {"a": [], "b": []}
    for key, some in rows(outcome, "batches"):
        words[key] += some
    assert {key: sorted(some) for key, some in words.items()} == {
        "a": ["a1", "a2"],
        "b": ["b1", "b2"],
    }
    assert len([text for text in heard.logged() if text.startswith("done")]) == 4


def test_a_class_with_an_emit_of_its_own_uses_it(parts: SimpleNamespace, runtime: Any) -> None:
    made = topology(
        parts.lib,
        source=(source := parts.Sentences.spec()),
        own=(own := parts.OwnEmit.spec(inputs=[source])),
        count=parts.Count.spec(inputs=[own]),
    )
    outcome, _ = run(made, runtime)
    assert sorted(word for word, _ in rows(outcome, "count")) == sorted(map(str.upper, SENTENCES))


def test_what_is_changed_after_emit_is_sent_as_it_was(parts: SimpleNamespace, runtime: Any) -> None:
    made = topology(
        parts.lib,
        {"sentences": ["a b", "c"]},
        source=(source := parts.Sentences.spec()),
        reusing=parts.Reusing.spec(inputs=[source]),
    )
    outcome, _ = run(made, runtime)
    assert rows(outcome, "reusing") == [("a", ["a"]), ("b", ["a", "b"]), ("c", ["c"])]


def test_ours_batches_by_time_inside_and_the_real_one_needs_its_own_process() -> None:
    ours = hosted_parts.components(library("ours"))
    assert safe(ours.ByTime)
    assert safe(ours.Count)
    real = hosted_parts.components(library("real"))
    assert not safe(real.ByTime)
    assert safe(real.Batches)


def test_batches_by_time_follow_the_clock_of_the_run(
    monkeypatch: pytest.MonkeyPatch, runtime: Any
) -> None:
    lib = library("ours")
    parts = hosted_parts.components(lib)
    for name, cls in vars(parts).items():
        monkeypatch.setattr(hosted_parts, name, cls, raising=False)
    made = topology(
        lib,
        {"sentences": ["a", "b", "c"]},
        source=(source := parts.Replaying.spec()),
        gather=parts.ByTime.spec(inputs=[source]),
    )
    assert made.component("gather").options.tick == 1.0
    outcome, _ = run(made, runtime)
    assert sorted(word for _, some in rows(outcome, "gather") for word in some) == ["a", "b", "c"]


def test_wrong_numbers_of_values_end_the_run_at_once(lib: ModuleType, runtime: Any) -> None:
    class Short(lib.Spout):
        outputs = ("a", "b")

        def next_tuple(self) -> None:
            self.emit([1])

    known(Short)
    with pytest.raises(ThalwegError, match="2 values"):
        run(topology(lib, source=Short.spec()), runtime)


def test_tasks_are_chosen_and_asked_for_by_number(lib: ModuleType, runtime: Any) -> None:
    class Numbers(lib.Spout):
        outputs = ("n",)
        left = 6

        def next_tuple(self) -> None:
            if not self.left:
                raise SystemExit
            self.left -= 1
            assert len(self.emit([self.left], need_task_ids=True)) == 1

    class Choosing(lib.Bolt):
        outputs = (lib.Stream(["n", "to"], direct=True), lib.Stream(["n", "to"], name="keyed"))

        def process(self, tup: Any) -> None:
            (n,) = tup.values
            tasks = [int(i) for i, c in self.context["task->component"].items() if c == "end"]
            to = tasks[n % len(tasks)]
            assert self.emit([n, to], direct_task=to, need_task_ids=True) == [to]
            told = self.emit([n, None], stream="keyed", need_task_ids=True)
            self.emit([n, told], stream="keyed")

    class End(lib.Bolt):
        outputs = ("kind", "n", "to", "at")

        def process(self, tup: Any) -> None:
            self.emit([tup.stream, *tup.values, self.task_id])

    for cls in (Numbers, Choosing, End):
        known(cls)
    keyed = lib.Grouping.fields("n")
    made = topology(
        lib,
        source=(source := Numbers.spec()),
        choosing=(choosing := Choosing.spec(inputs=[source], par=2)),
        end=End.spec(inputs={choosing: lib.Grouping.DIRECT, choosing["keyed"]: keyed}, par=3),
    )
    outcome, _ = run(made, runtime)
    seen = rows(outcome, "end")
    direct = [(n, to, at) for kind, n, to, at in seen if kind == "default"]
    assert sorted(n for n, _, _ in direct) == list(range(6))
    assert all(to == at for _, to, at in direct)
    told = [(to, at) for kind, _, to, at in seen if kind == "keyed" and to is not None]
    assert len(told) == 6
    assert all(to == [at] for to, at in told)


def test_a_component_reports_metrics(parts: SimpleNamespace) -> None:
    lib = parts.lib

    class Reporting(lib.Bolt):
        outputs = ("word",)

        def process(self, tup: Any) -> None:
            self.report_metric("letters", len(tup.values.sentence))

    class Told:
        def __init__(self) -> None:
            self.values: dict[str, Any] = {}

        def handle(self, info: Any, points: Any) -> None:
            self.values |= {p.name: p.value for p in points if info.component == "reporting"}

    known(Reporting)
    made = topology(
        lib,
        {"sentences": ["a", "bcd"]},
        source=(source := parts.Sentences.spec()),
        reporting=Reporting.spec(inputs=[source]),
    )
    told = Told()
    run_inline(made, runtime=Inline(clock=ManualClock()), run=Run(consumers=[told]))
    assert told.values["letters"] == 4


def told_metrics(lib: ModuleType, values: list[Any]) -> dict[str, Any]:
    """Let a component report these values one after the other; gives what a consumer is told."""

    class Reporting(lib.Spout):
        outputs = ("word",)

        def next_tuple(self) -> None:
            for value in values:
                self.report_metric("it", value)
            raise SystemExit

    class Told:
        values: dict[str, Any] = {}

        def handle(self, info: Any, points: Any) -> None:
            self.values |= {p.name: p.value for p in points if info.component == "reporting"}

    known(Reporting)
    told, heard = Told(), Heard()
    run_inline(
        topology(lib, reporting=Reporting.spec()),
        runtime=Inline(clock=ManualClock()),
        run=Run(consumers=[told], listen=heard.append),
    )
    return {**told.values, "noticed": heard.noticed()}


MEASURED: list[tuple[list[Any], Any]] = [
    ([1, 1.5, None], 3.5),
    ([1.5, 2, "2.5"], 2.0),
    (["up", 3], 3),
    ([{"a": 1}, 2], 2),
    ([True, 1], 1),
]


@pytest.mark.parametrize(("values", "told"), MEASURED)
def test_a_metric_has_the_kind_of_its_first_value(
    lib: ModuleType, values: list[Any], told: Any
) -> None:
    found = told_metrics(lib, values)
    assert (found["it"], found["noticed"]) == (told, [])


def test_a_value_that_does_not_fit_its_metric_is_left_out_and_said_once(lib: ModuleType) -> None:
    found = told_metrics(lib, [1, "many", {"a": 1}, 2])
    assert found["it"] == 3
    (noticed,) = found["noticed"]
    assert "metric 'it'" in noticed
    assert "expected a number, as before, got 'many'" in noticed


class Watching(tw.TaskHook):
    """Keeps what it is told of bolts."""

    def __init__(self) -> None:
        self.emitted: list[Any] = []
        self.counts: Counter[tuple[str, str]] = Counter()

    def emit(self, info: Any) -> None:
        if info.component != "source":
            self.emitted.append((info.component, info.stream, info.values, info.direct))

    def bolt_execute(self, info: Any) -> None:
        self.counts[info.component, "execute"] += info.count

    def bolt_ack(self, info: Any) -> None:
        self.counts[info.component, "ack"] += info.count

    def bolt_fail(self, info: Any) -> None:
        self.counts[info.component, "fail"] += info.count


@pytest.mark.parametrize("isolation", ["auto", "process"])
def test_hooks_hear_what_bolts_of_storm_do(
    parts: SimpleNamespace, isolation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    lib = parts.lib
    source = parts.Replaying.spec()
    tolerant = parts.Tolerant.spec(inputs=[source])
    aimed = parts.Aiming.spec(inputs=[tolerant])
    body = {"config": {"sentences": ["a", "bad", "b"]}, "source": source, "tolerant": tolerant}
    body |= {
        "aiming": aimed,
        "end": parts.End.spec(inputs={aimed["aimed"]: lib.Grouping.DIRECT}, par=2),
    }
    plan = plan_of(type(lib.Topology)("Made", (lib.Topology,), body), "made")
    hook = Watching()
    build(plan, Hosting(isolation=isolation)).run(on="local", hooks=[hook])
    assert Counter(hook.emitted) == Counter(
        [("tolerant", "default", (word,), None) for word in "ab"]
        + [("aiming", "aimed", (word,), 1) for word in "ab"]
    )
    tries = 3  # of the one that fails
    assert hook.counts["tolerant", "execute"] == 2 + tries
    assert hook.counts["tolerant", "ack"] == hook.counts["end", "ack"] == 2
    assert hook.counts["tolerant", "fail"] == tries


@pytest.mark.parametrize("isolation", ["auto", "process"])
@pytest.mark.parametrize("bolt", ["Tolerant", "LetsFail"])
def test_hooks_hear_once_how_a_tuple_ends_also_where_no_spout_waits_for_it(
    parts: SimpleNamespace, bolt: str, isolation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    source = parts.Sentences.spec()
    body = {"config": {"sentences": ["a", "bad", "b"]}, "source": source}
    body |= {"bolt": getattr(parts, bolt).spec(inputs=[source])}
    plan = plan_of(type(parts.lib.Topology)("Made", (parts.lib.Topology,), body), "made")
    hook = Watching()
    build(plan, Hosting(isolation=isolation)).run(on="local", hooks=[hook])
    told = {what: hook.counts["bolt", what] for what in ("execute", "ack", "fail")}
    assert told == {"execute": 3, "ack": 2, "fail": 1}


SHARED = {"two components": ("SHUFFLE", 1), "tasks that all get it": ("ALL", 2)}


@pytest.mark.parametrize("case", SHARED)
def test_what_one_reader_does_to_a_list_no_other_reader_sees(
    parts: SimpleNamespace, runtime: Any, case: str
) -> None:
    grouping, par = SHARED[case]
    lib = parts.lib

    class Lists(lib.Spout):
        outputs = ("n", "xs")
        left = 3

        def next_tuple(self) -> None:
            if not self.left:
                raise SystemExit
            self.left -= 1
            self.emit([self.left, [{"n": [self.left]}]])

    class Changing(lib.Bolt):
        outputs = ("n", "xs")

        def process(self, tup: Any) -> None:
            tup.values.xs[0]["n"].append("changed")
            self.emit(list(tup.values))

    class Seeing(lib.Bolt):
        outputs = ("n", "xs")

        def process(self, tup: Any) -> None:
            self.emit(list(tup.values))

    for cls in (Lists, Changing, Seeing):
        known(cls)
    how = getattr(lib.Grouping, grouping)
    made = topology(
        lib,
        source=(source := Lists.spec()),
        changing=(changing := Changing.spec(inputs={source: how}, par=par)),
        seeing=Seeing.spec(inputs={source: how}),
        last=Seeing.spec(inputs=[changing]),
    )
    outcome, _ = run(made, runtime)
    assert sorted(rows(outcome, "seeing")) == [(n, [{"n": [n]}]) for n in range(3)]
    changed = [(n, [{"n": [n, "changed"]}]) for n in range(3) for _ in range(par)]
    assert sorted(rows(outcome, "last")) == changed


# --- in children, the same ---------------------------------------------------------------------


@pytest.mark.parametrize("serializer", ["json", "msgpack"])
def test_children_give_what_components_inside_give(
    parts: SimpleNamespace, serializer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lib = parts.lib

    class WordCount(lib.Topology):
        config = {"sentences": SENTENCES}
        source = parts.Replaying.spec()
        split = parts.Split.spec(inputs=[source], par=2)
        count = parts.Count.spec(inputs={split: lib.Grouping.fields("word")}, par=2)

    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    plan = plan_of(WordCount, "wordcount")
    inside = build(plan)
    outside = build(plan, Hosting(isolation="process", serializer=serializer))
    results = [run(made, Local(workers=2))[0] for made in (inside, outside)]
    first, second = (Counter(rows(outcome, "count")) for outcome in results)
    assert first == second
    assert first


def test_a_component_may_ask_for_a_process_of_its_own(parts: SimpleNamespace) -> None:
    made = topology(
        parts.lib,
        source=(source := parts.Sentences.spec()),
        split=parts.Split.spec(inputs=[source], config={"thalweg.isolation": "process"}),
    )
    assert isinstance(made.component("source").body, HostedSpout)
    assert not isinstance(made.component("split").body, HostedBolt)


@pytest.mark.parametrize("name", NAMES)
def test_batches_by_time_in_a_child_of_either_library(name: str, tmp_path: Path) -> None:
    module = library(name).__name__
    folder = str(Path(__file__).parent)
    code = "import importlib, sys; sys.path.append(sys.argv[2]); import hosted_parts as h; "
    code += "h.components(importlib.import_module(sys.argv[1])).ByTime().run()"
    builder = TopologyBuilder("timed")
    builder.add_spout("words", items(["a", "b", "c"]), fields={"sentence": tw.anything})
    body = ShellBolt([sys.executable, "-c", code, module, folder], outputs=["key", "words"])
    builder.add_bolt("gather", body).shuffle("words")
    outcome = run_inline(builder, runtime=Local(workers=1))
    assert sorted(word for _, some in rows(outcome, "gather") for word in some) == ["a", "b", "c"]
