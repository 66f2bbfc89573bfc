"""The reference runtime: life cycle, stopping, events, metrics, errors."""

import re
import threading

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.events import Progress, RecordRefused, RunFinished, RunStarted, TupleRefused
from thalweg.execution import Run
from thalweg.testing import PAUSE, ManualClock, run_inline, source

CALLS: list[str] = []


class Noting(tw.Bolt):
    outputs = ["x"]

    def __init__(self, fail_in=None):
        self.fail_in = fail_in
        self.seen = []

    def note(self, what):
        CALLS.append(f"{what} {self.context.component}/{self.context.task}")
        if what == self.fail_in:
            raise RuntimeError(what)

    def prepare(self, context):
        self.note("prepare")

    def process(self, t):
        self.seen.append(t.x)
        self.note("process")
        self.emit(t.x)

    def process_tick(self):
        self.note("tick")

    def process_end(self):
        self.note("end")

    def cleanup(self):
        self.note("cleanup")


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def noting(bolt, items=(1, 2), **options):
    flow = tw.Flow("t")
    flow.source("s", source(items), fields=["x"]).through("b", bolt, **options)
    return flow.build()


def test_a_bolt_lives_from_prepare_to_cleanup():
    run_inline(noting(Noting()))
    assert CALLS == ["prepare b/0", "process b/0", "process b/0", "end b/0", "cleanup b/0"]


def test_each_task_works_on_its_own_copy():
    bolt = Noting()
    run_inline(noting(bolt, degree=2))
    assert bolt.seen == []
    assert CALLS.count("process b/0") == CALLS.count("process b/1") == 1


@pytest.mark.parametrize("where", ["prepare", "process", "tick", "end", "cleanup"])
def test_cleanup_happens_whatever_fails(where):
    topology = noting(Noting(where), [1, PAUSE(2), 2], tick=1)
    with pytest.raises(tw.ComponentError, match=rf"'b', task 0.*{where}") as caught:
        run_inline(topology)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert CALLS[-1] == "cleanup b/0"


def test_an_error_names_component_task_function_and_tuple():
    flow = tw.Flow("t")
    numbers = flow.source("s", tw.items([3, 0]), fields=["x"])
    numbers.map(lambda x: 1 // x, name="invert")
    with pytest.raises(tw.ComponentError) as caught:
        flow.run(on="inline")
    error = caught.value
    assert (error.component, error.task, error.tuple_text) == ("invert", 0, "x=0")
    assert "test_inline.py:" in str(error)
    assert "ZeroDivisionError" in str(error)
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_a_long_tuple_is_cut_in_the_message():
    flow = tw.Flow("t")
    flow.source("s", tw.items(["y" * 10_000]), fields=["x"]).map(lambda x: x[99_999])
    with pytest.raises(tw.ComponentError) as caught:
        flow.run(on="inline")
    assert len(str(caught.value)) < 1000


def test_stop_iteration_in_a_function_is_an_error_not_an_end():
    flow = tw.Flow("t")
    flow.source("s", tw.items([1, 2, 3]), fields=["x"]).map(lambda x: next(iter(())))
    with pytest.raises(tw.ComponentError, match="StopIteration"):
        flow.run(on="inline")


def test_stop_iteration_in_a_spout_says_what_to_call():
    class Ends(tw.Spout):
        outputs = ["x"]

        def next_tuple(self):
            self.emit(next(iter(())))

    flow = tw.Flow("t")
    flow.source("s", Ends())
    with pytest.raises(tw.ComponentError, match=r"call self.finish\(\)"):
        flow.run(on="inline")


class Emits(tw.Bolt):
    def __init__(self, emit, outputs):
        self.call_emit = emit
        self.outputs = outputs

    def process(self, t):
        self.call_emit(self)


@pytest.mark.parametrize(
    ("outputs", "emit", "message"),
    [
        (["x"], lambda self: self.emit(1, 2), "'b' has one stream, and emit takes 1 values: x"),
        (["x"], lambda self: self.emit(), "emit takes 1 values: x"),
        (["x"], lambda self: self.emit(1, stream="nowhere"), "'b' has one stream"),
        (["x", "y"], lambda self: self.emit(1), "emit takes 2 values: x, y"),
        (["x", "y"], lambda self: self.emit(1, 2, stream="nowhere"), "'b' has one stream"),
        (["x", "y", "z"], lambda self: self.emit(1), "expected 3 values: x, y, z, got 1"),
        (["x", "y", "z"], lambda self: self.emit(1, 2, 3, stream="nowhere"), "stream 'nowhere'"),
        (["x"], lambda self: self.emit_direct(0, 1), "expected a direct stream"),
    ],
)
def test_an_emit_that_does_not_fit_is_an_error(outputs, emit, message):
    flow = tw.Flow("t")
    flow.source("s", tw.items([1]), fields=["x"]).through("b", Emits(emit, outputs))
    with pytest.raises(tw.ComponentError, match=message):
        flow.run(on="inline")


def test_an_error_that_has_nothing_to_do_with_emit_gets_no_hint():
    flow = tw.Flow("t")
    bolt = Emits(lambda self: [].append(), ["x", "y", "z"])
    flow.source("s", tw.items([1]), fields=["x"]).through("b", bolt)
    with pytest.raises(tw.ComponentError) as caught:
        flow.run(on="inline")
    assert "if this was emit" not in str(caught.value)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda self, t: t.wrod, r"'wrod' \(this tuple has word, n\)"),
        (lambda self, t: self.state, r"\(bolts have state when they say kind = Kind.KEYED"),
        (lambda self, t: self.nothing, "no attribute 'nothing'$"),
    ],
)
def test_what_beginners_look_for_is_explained(use, message):
    class Looks(tw.Bolt):
        outputs = ["x"]

        def process(self, t):
            use(self, t)

    flow = tw.Flow("t")
    flow.source("s", tw.items([("a", 1)]), fields=["word", "n"]).through("b", Looks())
    with pytest.raises(tw.ComponentError) as caught:
        flow.run(on="inline")
    assert re.search(message, str(caught.value).splitlines()[0])


def test_a_value_of_another_type_than_declared_is_an_error():
    class Wrong(tw.Bolt):
        outputs = {"x": int}

        def process(self, t):
            self.emit(2.5)

    flow = tw.Flow("t")
    flow.source("s", tw.items([1]), fields=["x"]).through("b", Wrong())
    with pytest.raises(tw.ComponentError, match=r"expected int64, got row 0: 2\.5"):
        flow.run(on="inline")


def test_what_a_tuple_sent_before_it_raised_is_not_sent():
    class Half(tw.Bolt):
        outputs = ["x"]

        def process(self, t):
            self.emit(t.x)
            if t.x == 2:
                raise ValueError

    flow = tw.Flow("t")
    flow.source("s", tw.items([1, 2, 3]), fields=["x"]).through("b", Half(), on_error="skip")
    outcome = run_inline(flow.build())
    assert [t.x for t in outcome.outputs["b"]] == [1, 3]
    assert outcome.result.metrics.errors == 1


def test_emit_outside_of_a_run_says_so():
    with pytest.raises(tw.UsageError, match="inside a running topology"):
        Noting().emit(1)
    with pytest.raises(tw.UsageError, match="run_inline"):
        tw.BlockBolt().emit(pa.record_batch({"x": [1]}))


def test_stopping_finishes_what_is_under_way():
    stop = threading.Event()
    got = []

    def take(t):
        got.append(t.x)
        if t.x == 25:
            stop.set()

    flow = tw.Flow("t")
    flow.source("s", tw.items(range(1000)), fields=["x"]).sink("out", tw.call(take))
    result = flow.run(on=tw.Inline(block_rows=10), stop=stop)
    assert result.stopped
    assert got == list(range(30))
    assert result.metrics.tuples_in == result.metrics.tuples_out == 30


def test_listeners_hear_of_the_run():
    events = []
    clock = ManualClock()
    flow = tw.Flow("t")
    flow.source("s", source([1, PAUSE(1), 2]), fields=["x"]).map(lambda x: x + 1)
    tw.Inline(clock=clock).run(flow.build(), Run(listen=events.append))
    kinds = [type(event) for event in events]
    assert kinds[0] is RunStarted
    assert kinds[-1] is RunFinished
    assert Progress in kinds


def test_refused_tuples_and_records_are_events():
    events = []
    flow = tw.Flow("t")
    numbers = flow.source("s", tw.items([1, "two", 0]), fields={"x": int}, on_error="skip")
    numbers.map(lambda x: 1 // x, on_error="skip")
    result = flow.run(on="inline", listen=events.append)
    refused = [e for e in events if isinstance(e, RecordRefused | TupleRefused)]
    assert [type(e) for e in refused] == [RecordRefused, TupleRefused]
    assert refused[1].tuple_text == "x=0"
    assert result.metrics.errors == 2


def test_metrics_count_per_component_and_task():
    flow = tw.Flow("t")
    numbers = flow.source("s", tw.items(range(10)), fields={"x": int})
    numbers.flat_map(lambda x: [x] * (x % 3), degree=2).sink("out", tw.collect([]))
    metrics = flow.run(on=tw.Inline(block_rows=4)).metrics
    flat = metrics.component("flat_map-1")
    assert (flat.received, flat.emitted, flat.degree) == (10, 9, 2)
    assert sum(flat.per_task) == 10
    assert (metrics.tuples_in, metrics.tuples_out, metrics.errors) == (10, 9, 0)
    assert metrics.latency.count == 3
    assert metrics.latency.p50 <= metrics.latency.p99


def test_an_unknown_table_or_runtime():
    flow = tw.Flow("t")
    flow.source("s", tw.items([1]), fields=["x"]).tally("counts", key="x")
    with pytest.raises(tw.UsageError, match=r"expected one of \['counts'\]"):
        flow.run(on="inline").table("count")
    with pytest.raises(tw.UsageError, match="runtime 'flink'"):
        flow.run(on="flink")
    with pytest.raises(tw.UsageError, match="a runtime or its name"):
        flow.run(on=3)
    with pytest.raises(tw.UsageError, match="block_rows"):
        tw.Inline(block_rows=0)


def test_random_numbers_repeat():
    class Dice(tw.Bolt):
        outputs = ["x"]

        def process(self, t):
            self.emit(self.context.random.random())

    def throw(seed):
        flow = tw.Flow("t")
        flow.source("s", tw.items([1, 2]), fields=["x"]).through("b", Dice())
        outcome = run_inline(flow.build(), runtime=tw.Inline(seed=seed))
        return [t.x for t in outcome.outputs["b"]]

    assert throw(1) == throw(1) != throw(2)


def test_settings_reach_the_components():
    class Reads(tw.Bolt):
        outputs = ["x"]

        def process(self, t):
            self.emit(self.context.settings["who"])

    flow = tw.Flow("t")
    flow.source("s", tw.items([1]), fields=["x"]).through("b", Reads())
    outcome = run_inline(flow.build(), run=Run(settings={"who": "me"}))
    assert [t.x for t in outcome.outputs["b"]] == ["me"]


def test_text_that_is_passed_on_is_not_converted_again():
    class Passes(tw.Bolt):
        outputs = {"word": str, "n": int}

        def process(self, t):
            self.emit(t.word, 1)

    seen = []

    class Look(tw.BlockBolt):
        def process_block(self, batch):
            seen.append(batch)

    flow = tw.Flow("t")
    words = flow.source("s", tw.items(["a", None, "b"]), fields={"word": str})
    words.map_block(lambda b: seen.append(b) or b).through("p", Passes()).sink("look", Look())
    flow.run(on="inline")
    addresses = [batch.column("word").buffers()[2].address for batch in seen]
    assert addresses[0] == addresses[1]
    assert seen[1].to_pylist() == [{"word": w, "n": 1} for w in ("a", None, "b")]


@pytest.mark.parametrize("runtime", ["inline", "local"])
def test_latency_of_now_is_known_beside_that_of_the_run(runtime):
    metrics = noting(Noting()).run(on=runtime).metrics
    assert metrics.recent.over == 15.0
    assert metrics.recent.count == metrics.latency.count > 0


@pytest.mark.parametrize("runtime", ["inline", "local"])
def test_metrics_have_how_far_event_time_has_come_where_it_is_needed(runtime):
    flow = tw.Flow("t")
    rows = [(float(second), "a") for second in (1, 5, 9, 2)]
    seen = flow.source(
        "s", tw.items(rows), fields=["at", "user"], time=tw.event_time("at", delay=2)
    )
    counted = seen.key_by("user").window(tw.tumbling("1 s")).aggregate("w", n=tw.agg.count())
    counted.sink("out", tw.call(lambda t: None))
    found = flow.build().run(on=runtime).metrics
    told = {each.component: (each.watermark, each.behind) for each in found.components}
    assert told == {"s": (7.0, 2.0), "w": (7.0, 2.0), "out": (None, None)}
    times = noting(Noting()).run(on=runtime).metrics.components
    assert {each.watermark for each in times} == {None}
