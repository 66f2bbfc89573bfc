"""A topology that cannot run is refused when it is built, with a message that says what to do."""

import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.groupings import Fields


class Words(tw.Spout):
    outputs = {"word": str, "n": int}
    streams = {"letters": {"letter": str}, "named": ["name"], "tags": {"tag": list[str]}}
    direct_streams = frozenset(["named"])


class Plain(tw.Bolt):
    outputs = ["word"]

    def process(self, t): ...


class Halves(Plain):
    @staticmethod
    def merge(a, b): ...


class Keyed(Plain):
    kind = tw.Kind.KEYED


class Whole(Plain):
    kind = tw.Kind.GLOBAL


class Sink(tw.Bolt):
    def process(self, t): ...


@pytest.fixture
def builder():
    builder = tw.TopologyBuilder("t")
    builder.add_spout("words", Words())
    return builder


def refused(builder, message):
    with pytest.raises(tw.TopologyError, match=message):
        builder.build()


def test_an_empty_topology():
    refused(tw.TopologyBuilder("t"), "topology 't': expected at least one source, got none")


def test_a_name_that_is_used_twice(builder):
    with pytest.raises(tw.TopologyError, match="component 'words': expected each name once"):
        builder.add_spout("words", Words())


@pytest.mark.parametrize("name", ["", "with space", "a/b", None, 3])
def test_a_name_that_makes_no_sense(builder, name):
    with pytest.raises(tw.TopologyError, match="component name"):
        builder.add_spout(name, Words())


def test_a_class_instead_of_an_object(builder):
    with pytest.raises(tw.TopologyError, match="pass an object, not its class"):
        builder.add_bolt("b", Plain)


def test_a_bolt_in_the_place_of_a_spout(builder):
    with pytest.raises(tw.TopologyError, match="expected a Spout or BlockSpout"):
        builder.add_spout("b", Plain())


def test_an_unknown_option(builder):
    with pytest.raises(tw.TopologyError, match=r"option 'dgree'.*did you mean 'degree'"):
        builder.add_bolt("b", Plain(), dgree=3)


def test_a_bolt_that_reads_nothing(builder):
    builder.add_bolt("b", Plain())
    refused(
        builder, r"component 'b' Plain \(.*test_validation.py:\d+\): expected at least one input"
    )


def test_a_sink_that_reads_nothing(builder):
    builder.add_bolt("b", Sink())
    refused(builder, "expected at least one input")


def test_an_unknown_component(builder):
    builder.add_bolt("b", Plain()).shuffle("wrods")
    refused(builder, r"component 'wrods' in inputs of 'b'.*did you mean 'words'")


def test_an_unknown_stream(builder):
    builder.add_bolt("b", Plain()).shuffle("words", stream="leters")
    refused(builder, r"stream 'leters' in outputs of 'words'.*did you mean 'letters'")


def test_an_unknown_field(builder):
    builder.add_bolt("b", Keyed()).fields("words", "wort")
    refused(builder, r"field 'wort' in inputs of 'b', stream words.*did you mean 'word'")


def test_reading_from_a_sink(builder):
    builder.add_bolt("sink", Sink()).shuffle("words")
    builder.add_bolt("b", Plain()).shuffle("sink")
    refused(
        builder, r"component 'sink' in inputs of 'b': expected a component with outputs, got a sink"
    )


def test_a_cycle(builder):
    builder.add_bolt("a", Plain()).shuffle("words").shuffle("b")
    builder.add_bolt("b", Plain()).shuffle("a")
    refused(builder, "expected streams without a cycle, got .*(a -> b|b -> a).* from sources to")


def test_components_that_no_source_reaches(builder):
    builder.add_bolt("a", Plain()).shuffle("b")
    builder.add_bolt("b", Plain()).shuffle("a")
    refused(builder, "cycle")


@pytest.mark.parametrize("degree", [0, -1, 1.5, True, "2"])
def test_a_degree_below_one(builder, degree):
    builder.add_bolt("b", Plain(), degree=degree).shuffle("words")
    refused(builder, "degree of component 'b' .*expected at least 1")


def test_a_global_bolt_with_several_tasks(builder):
    builder.add_bolt("b", Whole(), degree=2).global_("words")
    refused(builder, "expected 1, because it is global")


def test_a_keyed_bolt_without_a_key(builder):
    builder.add_bolt("b", Keyed()).shuffle("words")
    refused(builder, r"keyed component 'b': expected a key for each input.*use .fields\(\"words\"")


def test_a_key_that_cannot_be_hashed(builder):
    builder.add_bolt("b", Keyed()).fields("words", "tag", stream="tags")
    refused(builder, "key 'tag' of 'b': expected a type that hashes alike everywhere, got list")


def test_keys_of_different_types(builder):
    builder.add_bolt("b", Keyed()).fields("words", "word").fields("words", "tag", stream="tags")
    with pytest.raises(tw.TopologyError):
        builder.build()
    other = tw.TopologyBuilder("t")
    other.add_spout("words", Words())
    other.add_bolt("b", Keyed()).fields("words", "n").fields("words", "letter", stream="letters")
    refused(other, "keys of the same types on all inputs")


def test_fields_without_names(builder):
    with pytest.raises(tw.TopologyError, match="names of the key fields"):
        builder.add_bolt("b", Keyed()).fields("words")


def test_the_same_stream_twice(builder):
    builder.add_bolt("b", Plain()).shuffle("words").all("words")
    refused(builder, "expected to be read once, got twice")


def test_direct_grouping_of_a_stream_that_is_not_direct(builder):
    builder.add_bolt("b", Plain()).direct("words")
    refused(builder, r"grouping direct on 'words'.*got not a direct stream")


def test_another_grouping_of_a_direct_stream(builder):
    builder.add_bolt("b", Plain()).shuffle("words", stream="named")
    refused(builder, r"expected .direct\(\) for direct streams")


def test_partial_key_without_merge(builder):
    builder.add_bolt("b", Plain()).partial_key("words", "word")
    refused(builder, r"merge\(a, b\)")


@pytest.mark.parametrize("choices", [1, 3, "light", None, [2]])
def test_choices_of_a_partial_key_that_do_not_exist(builder, choices):
    builder.add_bolt("b", Halves()).partial_key("words", "word", choices=choices)
    refused(builder, r"expected choices=2 or choices='heavy', got choices=")


def test_choices_of_a_partial_key(builder):
    builder.add_bolt("two", Halves()).partial_key("words", "word")
    builder.add_bolt("more", Halves()).partial_key("words", "word", choices="heavy")
    given = [builder.build().component(name).inputs[0].grouping for name in ("two", "more")]
    assert [grouping.choices for grouping in given] == [2, "heavy"]
    # One can go on from the other's checkpoint, which remembers how a grouping is described.
    assert len({tw.groupings.describe(grouping) for grouping in given}) == 1


def test_load_aware_for_a_bolt_with_state(builder):
    builder.add_bolt("b", Whole()).load_aware("words")
    refused(builder, "expected a stateless bolt, got global")


def test_bounds_that_do_not_grow(builder):
    builder.add_bolt("b", Keyed()).fields("words", "n", bounds=(5, 5))
    refused(builder, "bounds that grow")


def test_a_custom_rule_that_is_none(builder):
    builder.add_bolt("b", Plain()).custom("words", object())
    refused(builder, r"prepare\(tasks\) and choose\(batch\)")


def test_a_stream_without_fields():
    class Signal(tw.Spout):
        streams = {"signal": ()}

    builder = tw.TopologyBuilder("t")
    builder.add_spout("s", Signal())
    refused(builder, "stream 'signal' of 's': expected at least one field")


def test_components_come_producers_first_else_as_declared(builder):
    builder.add_bolt("late", Plain()).shuffle("early")
    builder.add_bolt("early", Plain()).shuffle("words")
    builder.add_spout("other", Words())
    assert [c.name for c in builder.build()] == ["words", "early", "late", "other"]


def test_a_topology_is_frozen(builder):
    topology = builder.build()
    with pytest.raises(AttributeError):
        topology.name = "x"
    with pytest.raises(TypeError):
        topology.components[0].outputs["more"] = None


def test_orders_are_what_readers_need(builder):
    builder.add_bolt("plain", Plain()).shuffle("words")
    builder.add_bolt("keyed", Keyed()).fields("plain", "word")
    builder.add_bolt("sink", Sink()).shuffle("keyed")
    topology = builder.build()
    orders = {c.name: [i.order for i in c.inputs] for c in topology}
    assert orders == {"words": [], "plain": ["sender"], "keyed": ["key"], "sink": ["sender"]}


def test_a_total_sink_makes_all_that_leads_to_it_total(builder):
    builder.add_bolt("plain", Plain()).shuffle("words")
    builder.add_bolt("aside", Plain()).shuffle("words")
    builder.add_bolt("sink", Sink(), order="total").shuffle("plain")
    orders = {c.name: [i.order for i in c.inputs] for c in builder.build()}
    assert orders == {"words": [], "plain": ["total"], "aside": ["sender"], "sink": ["total"]}


def test_a_commutative_bolt_needs_no_order(builder):
    class Sum(Keyed):
        commutative = True

    builder.add_bolt("sum", Sum()).fields("words", "word")
    assert builder.build().component("sum").inputs[0].order == "sender"


def test_both_ways_of_building_give_the_same_graph():
    flow = tw.Flow("t")
    source = flow.source("words", tw.items([]), fields={"word": str})
    source.through("plain", Plain(), degree=2).key_by("word").stream.through("keyed", Keyed())
    builder = tw.TopologyBuilder("t")
    items = tw.items([])
    items.outputs = {"word": str}
    builder.add_spout("words", items)
    builder.add_bolt("plain", Plain(), degree=2).shuffle("words")
    builder.add_bolt("keyed", Keyed()).fields("plain", "word")

    def shape(topology):
        return [(c.name, c.kind, c.options, c.inputs, dict(c.outputs)) for c in topology]

    assert shape(flow.build()) == shape(builder.build())
    assert flow.build().component("keyed").inputs[0].grouping == Fields(("word",))


def test_an_unknown_component_of_a_topology(builder):
    with pytest.raises(tw.TopologyError, match=r"expected one of \['words'\]"):
        builder.build().component("x")


def test_a_key_type_is_known_for_arrow_schemas():
    class Prices(tw.Spout):
        outputs = pa.schema([("price", pa.decimal128(8, 2))])

    builder = tw.TopologyBuilder("t")
    builder.add_spout("prices", Prices())
    builder.add_bolt("b", Keyed()).fields("prices", "price")
    refused(builder, r"decimal128\(8, 2\) has no stable hash")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int32(), pa.int64()),
        (pa.bool_(), pa.float64()),
        (pa.string(), pa.large_string()),
        (pa.string(), pa.dictionary(pa.int32(), pa.string())),
        (pa.binary(), pa.large_binary()),
        (pa.date32(), pa.date64()),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.timestamp("s", "UTC"), pa.timestamp("us", "Europe/Berlin")),
        (pa.time32("s"), pa.time64("us")),
        (pa.duration("s"), pa.duration("us")),
    ],
)
def test_keys_of_one_kind_come_together(one, other):
    two_keys(one, other).build()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int64(), pa.string()),
        (pa.string(), pa.binary()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us"), pa.date32()),
        (pa.time64("us"), pa.duration("us")),
    ],
)
def test_keys_of_different_kinds(one, other):
    refused(two_keys(one, other), "keys of the same types on all inputs")


def two_keys(one, other):
    builder = tw.TopologyBuilder("t")
    for name, type_ in (("one", one), ("other", other)):
        items = tw.items([])
        items.outputs = {"k": type_}
        builder.add_spout(name, items)
    builder.add_bolt("b", Keyed()).fields("one", "k").fields("other", "k")
    return builder


def test_a_block_spout_with_two_streams():
    class Two(tw.BlockSpout):
        outputs = ["a"]
        streams = {"more": ["b"]}

    builder = tw.TopologyBuilder("t")
    builder.add_spout("two", Two())
    refused(builder, r"component 'two' .*Two .*expected one stream.*\['default', 'more'\]")


def test_bounds_that_do_not_compare(builder):
    builder.add_bolt("b", Keyed()).fields("words", "n", bounds=(5, "x"))
    refused(builder, "bounds that grow")


def test_a_bolt_without_its_method(builder):
    builder.add_bolt("b", tw.Bolt()).shuffle("words")
    refused(builder, "component 'b' Bolt.*expected a method process, got none")
