"""Topologies as classes: what is valid, what is refused, and how it is written as Flux."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from storm_libraries import NAMES, library

from thalweg.storm.fluxing import NOTHING, flux_dict
from thalweg.storm.plans import Plan, Reading, plan_of


@pytest.fixture(params=NAMES)
def lib(request: pytest.FixtureRequest) -> ModuleType:
    return library(request.param)


@pytest.fixture
def parts(lib: ModuleType) -> SimpleNamespace:
    class Words(lib.Spout):
        outputs = ("word",)

    class Count(lib.Bolt):
        outputs = (lib.Stream(["word", "n"]), lib.Stream(["total"], name="sum", direct=True))
        config = {"kept": 3}
        par = 4

    class Dump(lib.Bolt):
        pass

    return SimpleNamespace(Words=Words, Count=Count, Dump=Dump, lib=lib)


def made(parts: SimpleNamespace) -> Plan:
    lib = parts.lib

    class WordCount(lib.Topology):
        config = {"topology.workers": 2}
        words = parts.Words.spec(name="source", par={"beta": 1, "prod": 8})
        count = parts.Count.spec(inputs={words: lib.Grouping.fields("word")})
        dump = parts.Dump.spec(inputs=[count, count["sum"]], config={"to": "x"})
        perl = lib.ShellBolt.spec(
            command="perl", script="count.pl -v", inputs={count["sum"]: lib.Grouping.GLOBAL},
            outputs=["total"],
        )  # fmt: skip

    return plan_of(WordCount, "wordcount")


def test_a_topology_says_what_its_components_are(parts: SimpleNamespace) -> None:
    plan = made(parts)
    source, count, dump, perl = plan.parts
    assert [part.name for part in plan.parts] == ["source", "count", "dump", "perl"]
    assert [part.kind for part in plan.parts] == ["spout", "bolt", "bolt", "bolt"]
    assert source.par == {"beta": 1, "prod": 8}
    assert count.par == 4
    assert count.cls.endswith(".Count")
    assert dict(count.outputs) == {"default": ("word", "n"), "sum": ("total",)}
    assert count.direct == {"sum"}
    assert dict(count.config) == {"kept": 3}
    assert dict(dump.config) == {"to": "x"}
    assert perl.command == ("perl", "count.pl", "-v")
    assert plan.config == {"topology.workers": 2}


def test_a_topology_says_what_its_components_read(parts: SimpleNamespace) -> None:
    _, count, dump, perl = made(parts).parts
    assert count.reads == (Reading("source", "default", "FIELDS", ("word",)),)
    assert dump.reads[0] == Reading("count", "default", "SHUFFLE")
    assert perl.reads == (Reading("count", "sum", "GLOBAL"),)


def test_every_grouping_has_its_name(parts: SimpleNamespace) -> None:
    lib = parts.lib
    groupings = {
        "SHUFFLE": lib.Grouping.SHUFFLE,
        "LOCAL_OR_SHUFFLE": lib.Grouping.LOCAL_OR_SHUFFLE,
        "ALL": lib.Grouping.ALL,
        "GLOBAL": lib.Grouping.GLOBAL,
        "NONE": lib.Grouping.NONE,
        "DIRECT": lib.Grouping.DIRECT,
        "FIELDS": lib.Grouping.fields(["word"]),
        "CUSTOM_OBJECT": lib.Grouping.custom_object("com.example.Chooser", ["a", 1]),
    }
    for name, grouping in groupings.items():
        body: dict[str, Any] = {"words": parts.Words.spec()}
        body["count"] = parts.Count.spec(inputs={body["words"]: grouping})
        plan = plan_of(type(lib.Topology)("Made", (lib.Topology,), body), "made")
        assert plan.parts[1].reads[0].kind == name


def test_a_direct_stream_is_read_as_such(parts: SimpleNamespace) -> None:
    lib = parts.lib

    class Sender(lib.Spout):
        outputs = (lib.Stream(["n"], direct=True),)

    class Direct(lib.Topology):
        sender = Sender.spec()
        receiver = parts.Dump.spec(inputs=[sender])

    assert plan_of(Direct, "direct").parts[1].reads[0].kind == "DIRECT"


def test_a_topology_becomes_flux(parts: SimpleNamespace) -> None:
    lib = parts.lib

    class WordCount(lib.Topology):
        words = parts.Words.spec(par=2)
        count = parts.Count.spec(inputs={words: lib.Grouping.fields("word")})
        dump = parts.Dump.spec(inputs=[count])

    told = flux_dict(WordCount, "wordcount")
    assert told["name"] == "wordcount"
    assert [spout["id"] for spout in told["spouts"]] == ["words"]
    command, fields = told["spouts"][0]["constructorArgs"]
    assert command[0] == "streamparse_run"
    assert fields == ["word"]
    assert told["bolts"][0]["configMethods"] == [
        {"name": "setNamedStream", "args": ["sum", ["total"]]},
        {"name": "addComponentConfig", "args": ["kept", 3]},
    ]
    assert told["bolts"][1]["constructorArgs"][1] == [NOTHING]
    assert told["streams"][0] == {
        "from": "words",
        "to": "count",
        "grouping": {"type": "FIELDS", "streamId": "default", "args": ["word"]},
    }
    assert {**WordCount.to_flux_dict("wordcount")} == {k: told[k] for k in told if k != "config"}


# --- what is refused ---------------------------------------------------------------------------

WRONG: dict[str, tuple[type[Exception], Callable[[Any, Any], Any]]] = {
    "no spout": (ValueError, lambda _, __: {}),
    "a bolt without inputs": (
        ValueError,
        lambda _, p: {"words": p.Words.spec(), "count": p.Count.spec()},
    ),
    "a spout without outputs": (
        ValueError,
        lambda lib, _: {"silent": type("Silent", (lib.Spout,), {}).spec()},
    ),
    "two components of one name": (
        ValueError,
        lambda _, p: {"a": p.Words.spec(name="x"), "b": p.Words.spec(name="x")},
    ),
    "a field that is not there": (
        ValueError,
        lambda lib, p: {
            "words": (words := p.Words.spec()),
            "count": p.Count.spec(inputs={words: lib.Grouping.fields("wrod")}),
        },
    ),
    "fields without any": (ValueError, lambda lib, _: lib.Grouping.fields()),
    "a stream that is not there": (KeyError, lambda _, p: p.Words.spec()["other"]),
    "par below one": (ValueError, lambda _, p: {"words": p.Words.spec(par=0)}),
    "par that is no number": (TypeError, lambda _, p: {"words": p.Words.spec(par="two")}),
    "par by environment below one": (ValueError, lambda _, p: p.Words.spec(par={"prod": 0})),
    "par by environment that is no number": (
        TypeError,
        lambda _, p: p.Words.spec(par={"prod": "one"}),
    ),
    "config that is no dictionary": (TypeError, lambda _, p: p.Words.spec(config="text")),
    "config of a topology that is no dictionary": (
        TypeError,
        lambda _, p: {"words": p.Words.spec(), "config": [1]},
    ),
    "inputs that are no list": (TypeError, lambda _, p: p.Count.spec(inputs="words")),
    "inputs of something else": (TypeError, lambda _, p: p.Count.spec(inputs=[3])),
    "inputs with no grouping": (
        TypeError,
        lambda _, p: p.Count.spec(inputs={p.Words.spec(): "shuffle"}),
    ),
    "inputs by something else": (
        TypeError,
        lambda lib, p: p.Count.spec(inputs={"words": lib.Grouping.SHUFFLE}),
    ),
    "outputs that are no list": (
        TypeError,
        lambda lib, _: lib.ShellSpout.spec(command="x", script="", outputs="word"),
    ),
    "outputs of something else": (
        TypeError,
        lambda lib, _: lib.ShellSpout.spec(command="x", script="", outputs=[3]),
    ),
    "a stream with fields that are no list": (TypeError, lambda lib, _: lib.Stream("word")),
    "a stream with a field that is no text": (TypeError, lambda lib, _: lib.Stream([3])),
    "a stream with a name that is no text": (TypeError, lambda lib, _: lib.Stream(["a"], name=3)),
    "a stream that is direct in some way": (
        TypeError,
        lambda lib, _: lib.Stream(["a"], direct="yes"),
    ),
    "a program without a command": (ValueError, lambda lib, _: lib.ShellBolt.spec(script="x")),
    "a program without a script": (TypeError, lambda lib, _: lib.ShellBolt.spec(command="x")),
    "a Java class without a name": (ValueError, lambda lib, _: lib.JavaBolt.spec(args_list=[])),
    "a Java class without arguments": (
        TypeError,
        lambda lib, _: lib.JavaBolt.spec(full_class_name="X"),
    ),
    "a Java class with strange arguments": (
        TypeError,
        lambda lib, _: lib.JavaSpout.spec(full_class_name="X", args_list=[{}]),
    ),
    "Java bytes that are none": (TypeError, lambda lib, _: lib.JavaBolt.spec(serialized_java="x")),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_found_when_the_class_is_made(parts: SimpleNamespace, case: str) -> None:
    error, make = WRONG[case]
    lib = parts.lib
    with pytest.raises(error):
        body = make(lib, parts)
        if isinstance(body, dict):
            type(lib.Topology)("Wrong", (lib.Topology,), body)


def test_an_object_in_place_of_a_spec_is_found() -> None:
    lib = library("ours")

    class Words(lib.Spout):  # type: ignore[name-defined]  # a module that tests choose
        outputs = ("word",)

    with pytest.raises(TypeError, match=r"Words\.spec"):
        type(lib.Topology)("Wrong", (lib.Topology,), {"words": Words})


def test_serialized_java_objects_cannot_be_written_as_flux() -> None:
    lib = library("ours")

    class Java(lib.Topology):  # type: ignore[name-defined]  # a module that tests choose
        words = lib.JavaSpout.spec(serialized_java=b"\x00", outputs=["word"])

    with pytest.raises(TypeError, match="serialized"):
        Java.to_flux_dict("java")
