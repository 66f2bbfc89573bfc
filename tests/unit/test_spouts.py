"""Spouts whose tuples do not fit their fields, and routers that cannot place tuples."""

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.runtimes.inline import Inline
from thalweg.testing import ManualClock, run_inline


class Given(tw.Spout):
    outputs = {"n": int}
    streams = {"texts": {"text": str}}

    def __init__(self, values):
        self.values = values

    def next_tuple(self):
        for value in self.values:
            self.emit(value, id=value)
        self.emit("t", stream="texts")
        self.finish()


class Blocks(tw.BlockSpout):
    outputs = {"n": pa.int32()}

    def __init__(self, batch):
        self.batch = batch

    def next_block(self, limit):
        self.finish()
        return self.batch


def run(spout, **options):
    builder = tw.TopologyBuilder("t")
    builder.add_spout("given", spout, **options)
    return run_inline(builder, write_dead_letters=True)


def numbers(outcome):
    return [t.n for t in outcome.outputs["given"]]


def test_a_tuple_that_does_not_fit_names_its_spout():
    with pytest.raises(tw.ComponentError, match=r"'given', task 0.*next_tuple") as caught:
        run(Given([1, "x", 3]))
    assert caught.value.tuple_text == "n='x'"
    assert isinstance(caught.value.__cause__, tw.SchemaError)


class One(tw.Spout):
    outputs = ["n"]

    def __init__(self, emit):
        self.say = emit

    def next_tuple(self):
        self.say(self.emit)
        self.finish()


@pytest.mark.parametrize(
    ("emit", "said"),
    [
        (lambda emit: emit(1, 2), r"expected 1 values: n, got 2"),
        (lambda emit: emit(), r"expected 1 values: n, got 0"),
        (lambda emit: emit(1, stream="other"), r"stream 'other'"),
    ],
)
def test_an_emit_that_is_not_meant_like_that_says_so(emit, said):
    with pytest.raises(tw.ThalwegError, match=said):
        run(One(emit))


def test_what_a_spout_emits_when_asked_and_when_told_is_all_there():
    class Echo(tw.Spout):
        outputs = ["n"]

        def prepare(self, context):
            self.left, self.open = [1, 2, 3], 0

        def next_tuple(self):
            if self.left:
                self.open += 1
                self.emit(self.left.pop(), id=self.open)
            elif not self.open:
                self.finish()

        def ack(self, id):
            self.open -= 1
            self.emit(-id)

    assert sorted(numbers(run(Echo()))) == [-3, -2, -1, 1, 2, 3]


def test_tuples_of_a_slow_spout_do_not_wait_for_each_other():
    clock, order = ManualClock(), []

    class Turns(tw.Spout):
        """Gives tuples at once, and then some after a while each."""

        outputs = ["n"]

        def prepare(self, context):
            self.left = [*range(40)]

        def next_tuple(self):
            n = self.left.pop(0)
            clock.sleep(1.0 if n >= 30 else 0.0)
            order.append(("given", n))
            self.emit(n)
            if not self.left:
                self.finish()

    builder = tw.TopologyBuilder("t")
    builder.add_spout("given", Turns())
    builder.add_bolt("out", tw.call(lambda t: order.append(("seen", t.n)))).shuffle("given")
    builder.build().run(on=Inline(clock=clock))
    assert order[:15] == [("given", n) for n in range(15)]  # quick ones go on together
    assert order[-8:] == [(what, n) for n in range(36, 40) for what in ("given", "seen")]


def test_only_tuples_that_do_not_fit_are_skipped():
    outcome = run(Given([1, "x", 3, None, "y"]), on_error="skip")
    assert numbers(outcome) == [1, 3, None]
    assert [t.text for t in outcome.outputs["given:texts"]] == ["t"]
    assert outcome.result.metrics.errors == 2


def test_tuples_that_do_not_fit_are_kept_aside(tmp_path):
    kept = tmp_path / "bad.jsonl"
    assert numbers(run(Given(["x", 1]), on_error=tw.dead_letter(kept))) == [1]
    assert len(kept.read_text().splitlines()) == 1


def test_nothing_fits():
    assert numbers(run(Given(["x"]), on_error="skip")) == []


def test_an_answer_that_does_not_fit():
    class Answering(Given):
        def ack(self, id):
            self.emit("x")

    with pytest.raises(tw.ComponentError, match=r"Answering\.ack"):
        run(Answering([1]))


BATCH = pa.record_batch({"n": [1, 2**40, 3]})


def test_a_row_that_does_not_fit_names_its_source():
    with pytest.raises(tw.RecordError, match=r"1099511627776.*source 'given'"):
        run(Blocks(BATCH))


def test_only_rows_that_do_not_fit_are_skipped():
    outcome = run(Blocks(BATCH), on_error="skip")
    assert numbers(outcome) == [1, 3]
    assert outcome.result.metrics.errors == 1


def test_rows_of_other_fields_are_all_skipped():
    outcome = run(Blocks(pa.record_batch({"m": [1, 2]})), on_error="skip")
    assert (numbers(outcome), outcome.result.metrics.errors) == ([], 2)


@pytest.mark.parametrize("wrong", [[1], pa.table({"n": [1]})])
def test_something_else_than_a_record_batch(wrong):
    with pytest.raises(tw.ComponentError, match=r"'given'.*next_block.*pyarrow\.RecordBatch"):
        run(Blocks(wrong), on_error="skip")


class Sink(tw.Bolt):
    def process(self, t): ...


def routed(connect, spout=None):
    builder = tw.TopologyBuilder("t")
    builder.add_spout("given", spout or Blocks(pa.record_batch({"n": [1, 2]})))
    connect(builder.add_bolt("sink", Sink(), degree=2))
    return run_inline(builder, write_dead_letters=True)


class Rule:
    def __init__(self, prepare=None, choose=None):
        self.made, self.chosen = prepare, choose

    def prepare(self, tasks):
        return self.made and self.made(tasks)

    def choose(self, batch):
        return self.chosen(batch)


@pytest.mark.parametrize(
    ("choose", "said"),
    [
        (lambda batch: 1 / 0, "ZeroDivisionError"),
        (lambda batch: None, "TypeError"),
        (lambda batch: ["a", "b"], "ValueError"),
        (lambda batch: [0], "2 task indexes"),
        (lambda batch: [0, 7], "from 0 to 1, got 7"),
    ],
)
def test_a_rule_that_cannot_choose(choose, said):
    with pytest.raises(tw.ThalwegError, match=rf"Rule.*stream 'default' of 'given'.*{said}"):
        routed(lambda sink: sink.custom("given", Rule(choose=choose)))


def test_a_rule_that_raises_is_located_and_chained():
    with pytest.raises(tw.ThalwegError, match=r"Rule \(.*test_spouts\.py:\d+\)") as caught:
        routed(lambda sink: sink.custom("given", Rule(choose=lambda batch: 1 / 0)))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_rule_that_cannot_prepare():
    with pytest.raises(tw.ThalwegError, match=r"prepare of .*Rule \(.*ZeroDivisionError"):
        routed(lambda sink: sink.custom("given", Rule(prepare=lambda tasks: 1 / 0)))


def test_bounds_of_another_type():
    with pytest.raises(tw.ThalwegError, match=r"field 'n' of stream 'default' of 'given'.*'m'"):
        routed(lambda sink: sink.fields("given", "n", bounds=("m",)))


def test_emit_among_direct_tuples():
    class Mixed(tw.Spout):
        outputs = {"n": int}
        direct_streams = frozenset(["default"])

        def next_tuple(self):
            self.emit_direct(0, 1)
            self.emit(2)
            self.finish()

    with pytest.raises(tw.ThalwegError, match=r"stream 'default' of 'given'.*emit\(\.\.\.\) among"):
        routed(lambda sink: sink.direct("given"), Mixed())
