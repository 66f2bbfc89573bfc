"""Defects that a review found, each as it was shown."""

import dataclasses
import functools
import threading

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.testing import ManualClock, run_inline

SIZES = [1, 2, 1024]


class Ids(tw.Spout):
    """Emits tuples with ids, and hears how they end."""

    outputs = ("k", "v")

    def __init__(self, rows, heard):
        self.rows = rows
        self.heard = heard

    def __deepcopy__(self, memo):
        return self

    def next_tuple(self):
        for i, row in enumerate(self.rows):
            self.emit(*row, id=i)
        self.finish()

    def ack(self, id):
        self.heard.append(("ack", id))

    def fail(self, id):
        self.heard.append(("fail", id))


def test_a_table_s_changes_stem_from_the_whole_block():
    heard = []
    flow = tw.Flow("t")
    counts = flow.source("s", Ids([("a", 1), ("a", 2), ("b", 3)], heard)).key_by("k").count("t")
    counts.tap(lambda count: 1 // 0, on_error="skip")
    flow.run()
    assert sorted(heard) == [("fail", 0), ("fail", 1), ("fail", 2)]


class Twice(tw.BlockBolt):
    outputs = {"k": str, "n": int}

    def process_block(self, batch):
        for i in (0, 2):
            self.emit(pa.record_batch({"k": ["a", "a"], "n": [i, i + 1]}))


def test_what_a_block_bolt_emits_twice_keeps_its_order():
    flow = tw.Flow("t")
    source = flow.source("s", tw.items([1, 2, 3]), fields=["x"])
    source.through("twice", Twice()).key_by("k").running_count()
    outcome = run_inline(flow.build())
    assert [t.n for t in outcome.outputs["running_count-1"]] == [0, 1, 2, 3]


class Recorder:
    def __init__(self):
        self.seen = []

    def note(self, x):
        self.seen.append(x)


def test_the_objects_behind_a_function_are_not_copied():
    method, partial = Recorder(), Recorder()
    flow = tw.Flow("t")
    numbers = flow.source("s", tw.items([1, 2]), fields=["x"])
    numbers.tap(method.note).tap(functools.partial(Recorder.note, partial))
    flow.run()
    assert method.seen == partial.seen == [1, 2]


class Locked(tw.Bolt):
    def __init__(self):
        self.lock = threading.Lock()

    def process(self, t): ...


def test_a_body_that_cannot_be_copied_says_what_to_do():
    flow = tw.Flow("t")
    flow.source("s", tw.items([1]), fields=["x"]).sink("locked", Locked())
    with pytest.raises(tw.ComponentError, match=r"'locked'.*make such things in prepare"):
        flow.run()


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.map(lambda x: "two" if x == 2 else x, fields={"y": int}, on_error="skip"),
        lambda s: s.map(lambda x: x if x == 2 else (x, x), fields=["y", "z"], on_error="skip"),
        lambda s: s.flat_map(
            lambda x: [x, "two"] if x == 2 else [x], fields={"y": int}, on_error="skip"
        ),
        lambda s: s.extend(y=lambda x: x).map(
            lambda y: "two" if y == 2 else y, fields={"y": int}, on_error="skip"
        ),
        lambda s: s.key_by("x").scan(
            0, lambda n, x: "two" if x == 2 else x, into="y", on_error="skip"
        ),
        lambda s: s.key_by("x").stateful(
            lambda n, x: (n, "two" if x == 2 else x), fields={"y": int}, start=0, on_error="skip"
        ),
        lambda s: s.through("emits", EmitsTwo(), on_error="skip"),
    ],
)
def test_a_result_that_does_not_fit_refuses_its_tuple_and_no_other(use, rows):
    flow = tw.Flow("t", order="total")
    numbers = flow.source("s", tw.items([1, 2, 3, 4]), fields={"x": int})
    use(numbers).sink("out", tw.stdout())
    outcome = run_inline(flow.build(), runtime=tw.Inline(block_rows=rows))
    assert [t.y for t in outcome.outputs["out"]] == [1, 3, 4]
    assert outcome.result.metrics.errors == 1


class EmitsTwo(tw.Bolt):
    outputs = {"y": int}

    def process(self, t):
        self.emit("two" if t.x == 2 else t.x)


def test_the_message_names_the_tuple_that_is_to_blame():
    flow = tw.Flow("t")
    numbers = flow.source("s", tw.items(range(10)), fields={"n": int})
    numbers.map(lambda n: "seven" if n == 7 else n, fields={"a": int})
    with pytest.raises(tw.ComponentError) as caught:
        flow.run()
    assert caught.value.tuple_text == "n=7"


def test_a_running_operator_names_the_tuple_that_is_to_blame_too():
    flow = tw.Flow("t")
    numbers = flow.source("s", tw.items(range(10)), fields={"n": int})
    keyed = numbers.extend(k=lambda n: n % 2).key_by("k")
    keyed.scan(0, lambda state, n: "seven" if n == 7 else 1, into="a")
    with pytest.raises(tw.ComponentError) as caught:
        flow.run()
    assert caught.value.tuple_text == "n=7, k=1"


@pytest.mark.parametrize("rows", SIZES)
def test_state_keeps_nothing_of_a_tuple_whose_result_does_not_fit(rows):
    flow = tw.Flow("t")
    numbers = flow.source("s", tw.items([("a", 1), ("a", 2), ("a", 4)]), fields=["k", "v"])
    numbers.key_by("k").scan(
        0, lambda n, v: str(n) if v == 2 else n + v, into="n", on_error="skip"
    ).sink("out", tw.stdout())
    outcome = run_inline(flow.build(), runtime=tw.Inline(block_rows=rows))
    assert [t.n for t in outcome.outputs["out"]] == [1, 5]
    assert outcome.result.metrics.errors == 1


def test_a_generator_in_flat_map_refuses_its_own_tuple():
    def words(line):
        for word in line.split():
            yield word, 1 + None if word == "bad" else 1

    flow = tw.Flow("t")
    lines = flow.source("s", tw.items(["a b", "bad", "c"]), fields=["line"])
    lines.flat_map(words, fields=["word", "n"], on_error="skip")
    outcome = run_inline(flow.build())
    assert [t.word for t in outcome.outputs["flat_map-1"]] == ["a", "b", "c"]
    assert outcome.result.metrics.errors == 1


class TextAsNumber(tw.Bolt):
    outputs = {"n": int}

    def process(self, t):
        self.emit(t.text)


def test_text_that_is_passed_on_into_a_field_of_numbers_is_refused():
    flow = tw.Flow("t")
    flow.source("s", tw.items(["1"]), fields={"text": str}).through("b", TextAsNumber())
    with pytest.raises(tw.ComponentError, match="expected int64"):
        flow.run()


@dataclasses.dataclass
class Sum:
    n: int = 0


def test_a_start_that_could_change_is_refused():
    flow = tw.Flow("t")
    keyed = flow.source("s", tw.items([]), fields=["k"]).key_by("k")
    for start in (Sum(), ([],), bytearray()):
        with pytest.raises(tw.TopologyError, match="a value that cannot change"):
            keyed.fold("t", start, lambda a, k: a)


def test_sums_do_not_overflow_the_type_of_their_field():
    flow = tw.Flow("t")
    fields = {"k": str, "v": pa.int8(), "b": bool}
    given = [("a", 100, True), ("a", 100, True)]
    keyed = flow.source("s", tw.items(given), fields=fields).key_by("k")
    keyed.sum("v", "v").sink("o1", tw.stdout())
    keyed.sum("b", "b").sink("o2", tw.stdout())
    result = run_inline(flow.build()).result
    assert (result.table("v"), result.table("b")) == ({"a": 200}, {"a": 2})


def test_a_sum_whose_first_values_are_missing_learns_its_type_later():
    flow = tw.Flow("t")
    keyed = flow.source("s", tw.items([("a", None), ("a", 2.5)]), fields=["k", "v"]).key_by("k")
    keyed.sum("t", "v").sink("out", tw.stdout())
    outcome = run_inline(flow.build(), runtime=tw.Inline(block_rows=1))
    assert [t.sum for t in outcome.outputs["out"]] == [None, 2.5]


@pytest.mark.parametrize("declared", [{"k": str, "p": str}, ["k", "p"]])
def test_keys_of_state_mean_the_same_whatever_is_declared(declared):
    class NanKeys(tw.Bolt):
        kind = tw.Kind.KEYED
        outputs = ("n",)

        def process(self, t):
            key = (t.k, float(t.p))
            n = self.state.get(key, 0) + 1
            self.state.put(key, n)
            self.emit(n)

    flow = tw.Flow("t")
    source = flow.source("s", tw.items([("a", "nan"), ("a", "nan")]), fields=declared)
    source.key_by("k").through("b", NanKeys())
    assert [t.n for t in run_inline(flow.build()).outputs["b"]] == [1, 2]


def test_a_batch_for_one_stream_is_checked_on_another():
    class Mixes(tw.BlockBolt):
        outputs = {"x": int}
        streams = {"names": {"name": str}}

        def process_block(self, batch):
            self.emit(self.make_batch([[1, 2]]), stream="names")

    flow = tw.Flow("t")
    flow.source("s", tw.items([1]), fields=["x"]).through("b", Mixes())
    with pytest.raises(tw.ComponentError, match=r"expected fields \['name'\]"):
        flow.run()


def test_parents_have_the_length_of_the_batch():
    class Short(tw.BlockBolt):
        outputs = {"x": int}

        def process_block(self, batch):
            self.emit(self.make_batch([[1, 2]]), parents=pa.array([0]).to_numpy())

    flow = tw.Flow("t")
    flow.source("s", tw.items([1]), fields=["x"]).through("b", Short())
    with pytest.raises(tw.ThalwegError, match="expected 2 rows, got 1"):
        flow.run()


def test_tuples_that_are_kept_for_ever_are_forgotten_when_they_have_failed():
    heard = []

    class Keeps(tw.Bolt):
        auto_ack = False

        def process(self, t): ...

    flow = tw.Flow("t")
    flow.source("s", Ids([("a", 1), ("b", 2)], heard)).sink("keeps", Keeps())
    topology = flow.build()
    result = tw.Inline(clock=ManualClock(), ack_timeout=5).run(topology)
    assert heard == [("fail", 0), ("fail", 1)]
    assert result.metrics.failed == 2


def test_a_keyed_bolt_goes_into_a_fluent_chain():
    class Counts(tw.Bolt):
        kind = tw.Kind.KEYED
        outputs = {"x": str, "n": int}

        def process(self, t):
            n = self.state.get(t.x, 0) + 1
            self.state.put(t.x, n)
            self.emit(t.x, n)

    flow = tw.Flow("t")
    words = flow.source("s", tw.items(["a", "b", "a"]), fields={"x": str})
    words.key_by("x").through("counts", Counts(), degree=2)
    words.grouped(tw.groupings.Fields(["x"])).through("again", Counts(), degree=2)
    outputs = run_inline(flow.build()).outputs
    assert sorted((t.x, t.n) for t in outputs["counts"]) == [("a", 1), ("a", 2), ("b", 1)]
    assert sorted(outputs["again"], key=str) == sorted(outputs["counts"], key=str)


def test_sources_are_busy_too():
    clock = []

    class Works(tw.Spout):
        outputs = ("x",)

        def next_tuple(self):
            clock.append(sum(range(10_000)))
            self.emit(1)
            self.finish()

    flow = tw.Flow("t")
    flow.source("s", Works())
    assert flow.run().metrics.component("s").busy > 0


def test_items_of_different_shapes_mix():
    flow = tw.Flow("t")
    given = [("a", 1), {"x": "b", "y": 2}, ("wrong",), ["c", 3]]
    flow.source("s", tw.items(given), fields={"x": str, "y": int}, on_error="skip")
    outcome = run_inline(flow.build())
    assert [tuple(t) for t in outcome.outputs["s"]] == [("a", 1), ("b", 2), ("c", 3)]
    assert outcome.result.metrics.errors == 1


def test_keys_of_merged_streams_with_numbers_of_different_widths():
    flow = tw.Flow("t")
    narrow = flow.source("narrow", tw.items([5]), fields={"k": pa.int32()})
    wide = flow.source("wide", tw.items([2**40, 5]), fields={"k": int})
    narrow.merge(wide).key_by("k").count("t", degree=2).sink("out", tw.stdout())
    assert run_inline(flow.build()).table("t") == {5: 2, 2**40: 1}
