"""The fluent API while it describes: names, fields, and what it refuses."""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import pytest

import thalweg as tw
from thalweg.groupings import All
from thalweg.operators.calls import unpack
from thalweg.testing import run_inline


class Score(NamedTuple):
    region: str
    likes: int


@pytest.fixture
def flow():
    return tw.Flow("t")


@pytest.fixture
def posts(flow):
    return flow.source("posts", tw.items([]), fields={"region": str, "hashtag": str, "likes": int})


def outputs(flow, name):
    return flow.build().component(name).outputs["default"].describe()


def test_operators_name_themselves_in_turn(flow, posts):
    posts.map(lambda p: p).map(lambda p: p, name="mine").map(lambda p: p).filter(lambda p: True)
    assert [c.name for c in flow.build()] == ["posts", "map-1", "mine", "map-2", "filter-1"]


def test_map_keeps_the_names_of_its_input(flow, posts):
    posts.map(lambda p: p)
    assert outputs(flow, "map-1") == "region, hashtag, likes"


def test_map_takes_the_fields_of_its_annotation(flow, posts):
    def scored(region, likes) -> Score:
        return Score(region, likes * 2)

    posts.map(scored)
    assert outputs(flow, "map-1") == "region: string, likes: int64"


def test_given_fields_win(flow, posts):
    posts.map(lambda region: region, fields={"where": str})
    assert outputs(flow, "map-1") == "where: string"


def test_extend_adds_and_replaces(flow, posts):
    posts.extend(likes=tw.col("likes") + 1, shout=lambda hashtag: hashtag.upper())
    assert outputs(flow, "extend-1") == "region: string, hashtag: string, likes, shout"


def test_select_keeps_types(flow, posts):
    posts.select("likes", "region")
    assert outputs(flow, "select-1") == "likes: int64, region: string"


def test_tables_are_streams_of_changes(flow, posts):
    posts.tally("by_region", key="region")
    posts.key_by("region", "hashtag").sum("likes", "likes")
    posts.key_by("hashtag").fold("seen", 0, lambda n, likes: n + likes, into="total")
    assert flow.table("by_region").fields.describe() == "region: string, count: int64"
    assert flow.table("likes").fields.describe() == "region: string, hashtag: string, sum: int64"
    assert flow.table("seen").fields.names == ("hashtag", "total")
    with pytest.raises(tw.TopologyError, match=r"table 'by_regin'.*did you mean 'by_region'"):
        flow.table("by_regin")


def test_two_tables_of_one_name(flow, posts):
    posts.tally("t", key="region")
    with pytest.raises(tw.TopologyError, match="each name once"):
        posts.tally("t", key="hashtag")


def test_options_of_an_operator(flow, posts):
    posts.map(lambda p: p, degree=3, on_error="skip")
    options = flow.build().component("map-1").options
    assert (options.degree, options.on_error) == (3, "skip")


def test_a_grouping_for_the_next_operator(flow, posts):
    posts.grouped(All()).map(lambda p: p, degree=2)
    assert flow.build().component("map-1").inputs[0].grouping == All()


def test_merged_streams_agree_on_what_they_know(flow, posts):
    other = flow.source("other", tw.items([]), fields=["region", "hashtag", "likes"])
    merged = posts.merge(other)
    assert merged.fields.describe() == "region, hashtag, likes"
    merged.map(lambda p: p)
    assert len(flow.build().component("map-1").inputs) == 2


def test_total_order_is_for_the_sinks(posts):
    flow = tw.Flow("t", order="total")
    source = flow.source("s", tw.items([]), fields=["x"])
    source.map(lambda x: x).sink("out", tw.collect([]))
    source.map(lambda x: x, name="aside")
    orders = {c.name: [i.order for i in c.inputs] for c in flow.build()}
    assert orders == {"s": [], "map-1": ["total"], "out": ["total"], "aside": ["sender"]}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: a, r"expected parameters among the fields \['region', 'hashtag', 'likes'\]"),
        (lambda region, b: region, r"got \(region, b\)"),
        (lambda: 1, r"got \(\)"),
        (lambda *, region: region, "keyword-only"),
        (5, "expected a function"),
    ],
)
def test_a_function_that_does_not_match_the_fields(posts, function, message):
    with pytest.raises(tw.TopologyError, match=message):
        posts.map(function)


def test_the_message_names_function_file_and_line(posts):
    def wrong(a, b):
        return a, b

    with pytest.raises(tw.TopologyError, match=r"function .*wrong \(.*test_flow.py:\d+\) in map-1"):
        posts.map(wrong)


def test_functions_of_many_shapes_are_accepted(posts):
    posts.map(lambda likes, region="eu": (likes, region), fields=["a", "b"])
    posts.map(lambda likes, factor=3: likes * factor, fields=["a"])
    posts.map(lambda *values: values)
    posts.map(functools.partial(lambda k, likes: likes + k, 2), fields=["a"])
    posts.select("likes").map(str, fields=["text"])
    posts.select("likes").map(lambda anything: anything)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda s: s.key_by(), "names of the key fields"),
        (lambda s: s.key_by("regio"), "did you mean 'region'"),
        (lambda s: s.select("x"), "field 'x'"),
        (lambda s: s.filter(tw.col("x") > 1), "field 'x' in filter-1"),
        (lambda s: s.extend(), "name=function"),
        (lambda s: s.top(0), "k of at least 1"),
        (lambda s: s.top(3, by="x"), "field 'x'"),
        (lambda s: s.tally("t", key="x"), "field 'x'"),
        (lambda s: s.map_block("no"), "a function"),
        (lambda s: s.map(lambda p: p, speed=3), "option 'speed'"),
        (lambda s: s.key_by("region").fold("f", [], lambda a, likes: a), "give list itself"),
        (lambda s: s.key_by("region").fold("f", 0, lambda: 0), "the state first"),
        (lambda s: s.key_by("region").sum("t", "x"), "field 'x'"),
        (lambda s: s.key_by("region").stateful(int), "process"),
        (lambda s: s.key_by("region").stateful(lambda state, likes: state), "fields="),
        (lambda s: s.merge(s.select("region")), "expected the fields"),
        (lambda s: s.merge(tw.Flow("o").source("s", tw.items([]), fields=["x"])), "one flow"),
        (lambda s: s.flow.source("again", tw.items([])), "to know its fields"),
        (lambda s: tw.Flow("x", order="random"), "order"),
        (lambda s: s.sink("out", print), "expected a Bolt or BlockBolt"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(posts, use, message):
    with pytest.raises(tw.TopologyError, match=message):
        use(posts)


class Named(NamedTuple):
    word: str


@dataclass
class Data:
    word: str


class Struct(msgspec.Struct):
    word: str


@pytest.mark.parametrize("record", [Named, Data, Struct])
def test_a_record_of_one_field_gives_its_field(flow, record):
    def shout(region) -> record:
        return record(region.upper())

    shout.__annotations__["return"] = record
    flow.source("regions", tw.items(["eu", "us"]), fields={"region": str}).map(shout, name="out")
    assert [t.word for t in run_inline(flow.build()).outputs["out"]] == ["EU", "US"]


@pytest.mark.parametrize("value", [("a",), ["a"], Named("a"), Data("a"), Struct("a")])
def test_other_results_of_one_field_are_values(value):
    assert unpack([value], ["other"]) == [[value]]


def test_records_and_values_mix():
    assert unpack([Named("a"), "b"], ["word"]) == [["a", "b"]]
