"""The public testing module."""

import pytest

import thalweg as tw
from thalweg.testing import ABORT, EOF, PAUSE, ManualClock, run_inline, source


def doubled(given):
    flow = tw.Flow("t")
    flow.source("s", given, fields=["x"]).map(lambda x: x * 2).sink("out", tw.stdout())
    return flow.build()


def test_sinks_are_replaced_by_lists_and_inputs_by_items():
    outcome = run_inline(doubled(tw.items([])), {"s": [1, 2]})
    assert [t.x for t in outcome.outputs["out"]] == [2, 4]


def test_streams_that_nobody_reads_are_collected_too():
    flow = tw.Flow("t")
    flow.source("s", tw.items(["a", "b", "a"]), fields=["x"]).tally("n", key="x")
    outcome = run_inline(flow.build())
    assert [t.x for t in outcome.outputs["n"]] == ["a", "b", "a"]
    assert {t.x: t.count for t in outcome.outputs["n:changes"]} == {"a": 2, "b": 1}
    assert outcome.table("n") == {"a": 2, "b": 1}


def test_a_run_ends_at_eof_and_the_next_goes_on_behind_it():
    topology = doubled(source([1, EOF, 2]))
    assert [t.x for t in run_inline(topology).outputs["out"]] == [2]
    assert [t.x for t in run_inline(topology).outputs["out"]] == [4]
    assert run_inline(topology).outputs["out"] == []


def test_abort_cuts_a_run_off():
    topology = doubled(source([1, ABORT, 2]))
    with pytest.raises(tw.Aborted, match="'s' met ABORT"):
        run_inline(topology)
    assert [t.x for t in run_inline(topology).outputs["out"]] == [4]


def test_a_pause_lets_time_pass_on_the_manual_clock():
    clock = ManualClock()
    run_inline(doubled(source([1, PAUSE("10 s"), 2])), runtime=tw.Inline(clock=clock))
    assert clock.now() == pytest.approx(10, abs=0.2)


def test_the_clock_of_the_run_is_given_back():
    clock = ManualClock()
    assert run_inline(doubled(source([1])), runtime=tw.Inline(clock=clock)).clock is clock


def test_a_marked_source_has_one_task_that_reads():
    flow = tw.Flow("t")
    flow.source("s", source([1, EOF, 2]), fields=["x"], degree=2).sink("out", tw.stdout())
    assert [t.x for t in run_inline(flow.build()).outputs["out"]] == [1]


def test_what_was_refused_is_in_the_outcome_and_not_in_files(tmp_path):
    letters = tw.dead_letter(tmp_path / "bad.jsonl")
    flow = tw.Flow("t")
    numbers = flow.source("s", tw.items([1, "x", 0]), fields={"x": int}, on_error=letters)
    numbers.map(lambda x: 1 // x, on_error=letters)
    outcome = run_inline(flow)
    assert [type(event).__name__ for event in outcome.refused] == ["RecordRefused", "TupleRefused"]
    assert list(tmp_path.iterdir()) == []
    run_inline(flow, write_dead_letters=True)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.jsonl"]


def test_inputs_for_something_that_is_no_source():
    with pytest.raises(tw.UsageError, match="the name of a source"):
        run_inline(doubled(tw.items([])), {"map-1": [1]})
    with pytest.raises(tw.TopologyError, match="component 'nowhere'"):
        run_inline(doubled(tw.items([])), {"nowhere": [1]})
