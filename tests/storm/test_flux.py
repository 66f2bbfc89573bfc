"""Flux files: what is read, what is refused with what to do instead, and the way there and back."""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import thalweg as tw
from thalweg.errors import ThalwegError, TopologyError, UsageError
from thalweg.events import ChildSaid, Event
from thalweg.storm import Bolt, Grouping, ShellBolt, ShellSpout, Spout, Stream, Topology
from thalweg.storm.bounds import Bounds
from thalweg.storm.building import Hosting, build
from thalweg.storm.flux import read_flux
from thalweg.storm.fluxing import SHELL_BOLT, SHELL_SPOUT, flux_dict
from thalweg.storm.plans import SERIALIZER, Reading, plan_of, program
from thalweg.storm.settings import notes_of

FLUX = """
name: words
config:
  topology.workers: 2
spouts:
  - id: source
    className: org.apache.storm.flux.wrappers.spouts.FluxShellSpout
    constructorArgs:
      - ["node", "randomsentence.js"]
      - ["sentence"]
    parallelism: 2
bolts:
  - id: split
    className: org.apache.storm.flux.wrappers.bolts.FluxShellBolt
    constructorArgs:
      - ["python3", "split.py", "--fast"]
      - ["word"]
    configMethods:
      - name: setNamedStream
        args: ["long", ["word", "length"]]
      - name: addComponentConfig
        args: ["most", 10]
  - id: log
    className: org.apache.storm.flux.wrappers.bolts.FluxShellBolt
    constructorArgs:
      - ["cat"]
      - ["NONE_BUT_FLUX_WANTS_SOMETHING_HERE"]
streams:
  - name: "source --> split"
    from: source
    to: split
    grouping: {type: SHUFFLE}
  - from: split
    to: log
    grouping: {type: FIELDS, args: [word], streamId: long}
  - from: split
    to: log
    grouping: {type: PARTIAL_KEY, args: [word]}
"""


def written(folder: Path, text: str, name: str = "topology.yaml") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def test_a_file_says_what_components_there_are(tmp_path: Path) -> None:
    plan = read_flux(written(tmp_path, FLUX))
    source, split, log = plan.parts
    assert (plan.name, plan.config) == ("words", {"topology.workers": 2})
    assert (source.kind, source.command, source.par) == ("spout", ("node", "randomsentence.js"), 2)
    assert split.command == ("python3", "split.py", "--fast")
    assert dict(split.outputs) == {"default": ("word",), "long": ("word", "length")}
    assert dict(split.config) == {"most": 10}
    assert dict(log.outputs) == {}
    assert log.reads == (
        Reading("split", "long", "FIELDS", ("word",)),
        Reading("split", "default", "PARTIAL_KEY", ("word",)),
    )


def test_properties_are_put_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGUAGE_OF_IT", "node")
    text = FLUX.replace('"node"', '"${ENV-LANGUAGE_OF_IT}"').replace("words", "${who}-words", 1)
    path = written(tmp_path, text + "\n# ${nobody}")
    plan = read_flux(path, {"who": "my"})
    assert (plan.name, plan.parts[0].command[0]) == ("my-words", "node")
    with pytest.raises(UsageError, match="--property who"):
        read_flux(path)


VALUES = [("2", 2), ("1.5", 1.5), ("true", True), ("", None), ("two", "two"), ("[1]", "[1]")]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_a_property_that_stands_alone_has_the_type_it_is_written_as(
    tmp_path: Path, text: str, value: Any
) -> None:
    config = "config: {plain: ${x}, quoted: '${x}', among: 'a ${x}'}"
    plan = read_flux(written(tmp_path, config), {"x": text})
    assert plan.config == {"plain": value, "quoted": text, "among": f"a {text}"}


def test_a_number_may_be_a_property(tmp_path: Path) -> None:
    path = written(tmp_path, FLUX.replace("parallelism: 2", "parallelism: ${tasks}"))
    assert read_flux(path, {"tasks": "3"}).parts[0].par == 3
    with pytest.raises(TopologyError, match="a whole number, 1 or more, got 'three'"):
        read_flux(path, {"tasks": "three"})


@given(st.text() | st.sampled_from(['x"\nbolts: []', "x'\nspouts: 5\n#", "${ENV-PATH}", "<<"]))
def test_a_property_changes_nothing_but_its_scalar(
    tmp_path_factory: pytest.TempPathFactory, value: str
) -> None:
    """Whatever a value holds: it adds no component and is not looked at for properties again."""
    folder = tmp_path_factory.mktemp("flux")
    text = FLUX.replace("topology.workers: 2", "{a: &a ${x}, b: *a, c: \"${x}\", d: 'c${x}'}")
    plan = read_flux(written(folder, text), {"x": value})
    assert plan.parts == read_flux(written(folder, FLUX, "plain.yaml")).parts
    assert plan.config["a"] == plan.config["b"]
    assert (plan.config["c"], plan.config["d"]) == (value, f"c{value}")


def test_a_file_outside_of_the_bounds_is_not_included(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    written(tmp_path, FLUX, "outside.yaml")
    path = written(inside, "includes: [{file: '${file}'}]")
    properties, bounds = {"file": "../outside.yaml"}, Bounds.around(path, [inside])
    with pytest.raises(UsageError, match=r"below the folders whose programs may be run"):
        read_flux(path, properties, bounds)
    assert read_flux(path, properties).parts


def test_an_included_file_is_part_of_the_topology(tmp_path: Path) -> None:
    first, _, rest = FLUX.partition("bolts:")
    written(tmp_path, first, "source.yaml")
    text = f"includes:\n  - {{resource: false, file: source.yaml}}\nname: both\nbolts:{rest}"
    plan = read_flux(written(tmp_path, text))
    assert [part.name for part in plan.parts] == ["source", "split", "log"]
    assert (plan.name, plan.config) == ("both", {"topology.workers": 2})


def test_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    written(tmp_path, "includes: [{file: b.yaml}]", "a.yaml")
    written(tmp_path, "includes: [{file: a.yaml}]", "b.yaml")
    with pytest.raises(TopologyError, match="go round"):
        read_flux(tmp_path / "a.yaml")


WRONG = {
    "Java": (
        FLUX.replace("org.apache.storm.flux.wrappers.spouts.FluxShellSpout", "org.example.Spout"),
        "there is no JVM",
    ),
    "hooks of Java's": (FLUX + "\nworkerHooks: [{id: x}]", "there is no JVM here"),
    "a topology that Java makes": (FLUX + "\ntopologySource: {className: X}", "Java"),
    "a key that nobody knows": (
        FLUX.replace("config:", "confg:"),
        r"'confg'.*\(did you mean 'config'\?\)",
    ),
    "a key that no spout has": (
        FLUX.replace("parallelism: 2", "paralelism: 2"),
        r"key 'paralelism' in spout 'source': .*\(did you mean 'parallelism'\?\)",
    ),
    "a key that no bolt has": (
        FLUX.replace("- id: log", "- id: log\n    propertees: 3"),
        r"key 'propertees' in bolt 'log': .*\(did you mean 'properties'\?\)",
    ),
    "a key that no component has": (
        "components: [{id: x, class: org.example.X}]",
        r"key 'class' in component 'x': .*\(did you mean 'className'\?\)",
    ),
    "a key that no method has": (
        FLUX.replace('args: ["most"', 'arguments: ["most"'),
        r"key 'arguments' in method 'addComponentConfig' of bolt 'split': expected one of",
    ),
    "a key that no stream has": (
        FLUX.replace("to: split", "to: split\n    streamId: long"),
        "key 'streamId' in stream from 'source' to 'split': expected one of",
    ),
    "a key that no grouping has": (
        FLUX.replace("streamId: long", "streamID: long"),
        r"key 'streamID' in grouping of stream from 'split' to 'log': .*'streamId'\?\)",
    ),
    "a key that no class has": (
        FLUX.replace("type: SHUFFLE", "type: CUSTOM, customClass: {className: a.B, args: [1]}"),
        "key 'args' in customClass of stream from 'source' to 'split': expected one of",
    ),
    "a key that no include has": (
        "includes: [{file: a.yaml, overide: true}]",
        r"key 'overide' in includes of .*\(did you mean 'override'\?\)",
    ),
    "a key that is no text": (
        FLUX.replace("- id: log", "- id: log\n    7: 3"),
        "key 7 in bolt 'log': expected one of",
    ),
    "a component that is none": ("components: [5]", "component: .*'id', got 5"),
    "more than a command and fields": (
        FLUX.replace('- ["sentence"]', '- ["sentence"]\n      - 3'),
        "'constructorArgs' of spout 'source': expected the command and its fields",
    ),
    "properties of a program": (
        FLUX.replace("- id: log", "- id: log\n    properties: [{name: a, value: 1}]"),
        "'properties' of bolt 'log': expected none.*only objects of Java's",
    ),
    "fields that are not named": (
        FLUX.replace("FIELDS, args: [word]", "FIELDS"),
        "grouping in stream from 'split' to 'log': expected args: .*FIELDS, got none.*GLOBAL",
    ),
    "a key that is not named": (
        FLUX.replace("PARTIAL_KEY, args: [word]", "PARTIAL_KEY"),
        "expected args: .*PARTIAL_KEY, got none",
    ),
    "a configuration of a component that is none": (
        FLUX.replace("parallelism: 2", "config: fast"),
        "'config' of spout 'source': expected keys with values, got 'fast'",
    ),
    "a grouping that nobody knows": (FLUX.replace("type: SHUFFLE", "type: SHUFLE"), "SHUFLE"),
    "a receiver that is not there": (FLUX.replace("to: split", "to: slipt"), "slipt"),
    "a stream without a source": (FLUX.replace("from: source\n    ", ""), "'from'"),
    "a method that nobody knows": (FLUX.replace("setNamedStream", "setStream"), "setStream"),
    "no command": (FLUX.replace('- ["cat"]', "- cat"), "the command"),
    "a spout among bolts": (
        FLUX.replace("bolts.FluxShellBolt", "spouts.FluxShellSpout"),
        "FluxShellSpout",
    ),
    "spouts that are no list": ("spouts: 5", "'spouts' in .*: expected a list, got 5"),
    "streams that are no list": (FLUX.partition("streams:")[0] + "streams: {}", "'streams'"),
    "a configuration that is none": ("config: fast", "'config' in .*keys with values"),
    "a degree that is none": (
        FLUX.replace("parallelism: 2", "parallelism: two"),
        "'parallelism' of spout 'source': expected a whole number, 1 or more, got 'two'",
    ),
    "a degree below one": (FLUX.replace("parallelism: 2", "parallelism: 0"), "1 or more, got 0"),
    "includes that are no list": ("includes: all", "'includes' in .*a list"),
    "an include that is no file": ("includes: [5]", "includes of .*file: NAME"),
    "arguments that are no list": (
        FLUX.replace('constructorArgs:\n      - ["cat"]', "constructorArgs:\n      cat:"),
        "'constructorArgs' of bolt 'log': expected a list",
    ),
    "fields that are no names": (FLUX.replace('["sentence"]', "5"), "a list of names, got 5"),
    "methods that are no list": (FLUX.replace("- name: set", "name: set", 1), "YAML"),
    "a date that is none": ("config: {a: 2001-99-99}", "YAML"),
    "no YAML": ("a: [", "YAML"),
    "a list": ("- a", "Flux topology"),
}


WORDS = (
    "id", "className", "constructorArgs", "configMethods", "parallelism", "name", "args",
    "from", "to", "grouping", "type", "file", "streamId", "customClass", "config", "numTasks",
)  # fmt: skip
LISTS = ("components", "spouts", "bolts", "streams")
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(WORDS),
            inner
            | st.sampled_from([SHELL_SPOUT, SHELL_BOLT, "FIELDS", "CUSTOM", "setNamedStream"]),
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from([*LISTS, "config", "includes"]), ANY))
def test_whatever_a_file_holds_there_is_an_error_that_explains(
    tmp_path_factory: pytest.TempPathFactory, told: dict[str, Any]
) -> None:
    path = written(tmp_path_factory.mktemp("flux"), yaml.safe_dump(told))
    with contextlib.suppress(ThalwegError):
        read_flux(path)


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_run_is_refused_and_named(tmp_path: Path, case: str) -> None:
    text, told = WRONG[case]
    with pytest.raises(ThalwegError, match=told):
        read_flux(written(tmp_path, text))


@pytest.mark.parametrize("package", ["net", "io", "com", "org"])
def test_a_python_class_is_one_though_its_package_is_named_like_those_of_java(
    tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Words(Spout):
        outputs = ("word",)

    module = types.ModuleType(f"{package}.words")
    module.Words = Words
    monkeypatch.setitem(sys.modules, module.__name__, module)
    text = f"spouts: [{{id: source, className: {package}.words.Words}}]"
    (part,) = read_flux(written(tmp_path, text)).parts
    assert (part.cls, part.outputs) == (f"{package}.words.Words", {"default": ("word",)})
    with pytest.raises(TopologyError, match=f"Java: {package}.words.Others"):
        read_flux(written(tmp_path, text.replace("Words", "Others")))


@pytest.mark.parametrize(
    "words",
    [
        ["streamparse_run", "CLASS -s msgpack"],
        ["streamparse_run", "-s msgpack CLASS"],
        ["streamparse_run", "CLASS", "-s", "msgpack"],
        ["streamparse_run", "-s", "msgpack", "CLASS"],
        ["streamparse_run", "--serializer=msgpack", "CLASS"],
        ["/venv/bin/streamparse_run -s msgpack CLASS"],
    ],
)
def test_a_command_of_streamparse_names_a_class_and_how_it_is_spoken_with(
    tmp_path: Path, words: list[str]
) -> None:
    command = [word.replace("CLASS", f"{__name__}.Source") for word in words]
    told = {"spouts": [{"id": "a", "className": SHELL_SPOUT, "constructorArgs": [command, ["x"]]}]}
    plan = read_flux(written(tmp_path, yaml.safe_dump(told)))
    assert (plan.parts[0].cls, plan.parts[0].command) == (f"{__name__}.Source", ())
    shell = build(plan, Hosting(isolation="process")).component("a").body.shell
    assert shell.serializer == "msgpack"
    assert shell.command[3:] == ("-s", "msgpack", f"{__name__}.Source")


@pytest.mark.parametrize(
    ("words", "got"),
    [
        (["streamparse_run"], "no class"),
        (["streamparse_run", "a.B c.D"], "got a.B c.D"),
        (["streamparse_run", "a.B", "-s"], "option -s requires argument"),
        (["streamparse_run", "a.B", "--fast"], "option --fast not recognized"),
        (["node", "it's"], "No closing quotation"),
        ([""], "got none"),
    ],
)
def test_a_command_that_cannot_be_read_is_refused(words: list[str], got: str) -> None:
    with pytest.raises(TopologyError, match=got):
        program(*words)


def test_words_of_other_programs_stay_as_they_are() -> None:
    assert program("node", "it's", "-s x").command == ("node", "it's", "-s x")


def test_what_a_component_says_itself_counts_more_than_its_command() -> None:
    class Said(Topology):
        source = ShellSpout.spec(
            command="streamparse_run",
            script=f"-s json {__name__}.Source",
            outputs=["word"],
            config={SERIALIZER: "msgpack"},
        )

    (part,) = plan_of(Said, "said").parts
    assert (part.cls, dict(part.config)) == (f"{__name__}.Source", {SERIALIZER: "msgpack"})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml"):
        read_flux(tmp_path / "none.yaml")


class Source(Spout):
    outputs = ("word",)


class Keep(Bolt):
    outputs = (Stream(["word"]), Stream(["n"], name="other"))


def test_a_python_class_may_stand_in_a_file(tmp_path: Path) -> None:
    text = f"""
    spouts: [{{id: source, className: {__name__}.Source}}]
    bolts: [{{id: keep, className: {__name__}.Keep}}]
    streams: [{{from: source, to: keep, grouping: {{type: SHUFFLE}}}}]
    """
    plan = read_flux(written(tmp_path, text, "mine.yaml"))
    assert plan.name == "mine"
    assert dict(plan.parts[1].outputs) == {"default": ("word",), "other": ("n",)}
    assert [component.name for component in build(plan)] == ["source", "keep"]


CLASSES = f"""
spouts: [{{id: source, className: {__name__}.Source}}]
bolts: [{{id: keep, className: {__name__}.Keep, more}}]
streams: [{{from: source, to: keep, grouping: {{type: SHUFFLE}}}}]
"""
OF_SHELLS = {
    "constructorArgs: [1, 2]": r"got \[1, 2\] \(.* with addComponentConfig; initialize gets them",
    "factoryArgs: [1]": "'factoryArgs' of bolt 'keep': expected none",
    "configMethods: [{name: setNamedStream, args: [more, [a, b]]}]": (
        r"streams of bolt 'keep': expected those in outputs of its class, got \['more'\]"
    ),
    "configMethods: [{name: setDefaultStream, args: [[a, b]]}]": r"streams of bolt.*\['default'\]",
}


@pytest.mark.parametrize("more", OF_SHELLS)
def test_what_a_python_class_does_not_get_is_refused_with_what_to_do(
    tmp_path: Path, more: str
) -> None:
    with pytest.raises(TopologyError, match=OF_SHELLS[more]):
        read_flux(written(tmp_path, CLASSES.replace("more", more, 1)))


def test_a_component_has_a_configuration_of_its_own(tmp_path: Path) -> None:
    own = "config: {a: 2, b: 3}, configMethods: [{name: addComponentConfig, args: [a, 1]}]"
    plan = read_flux(written(tmp_path, CLASSES.replace("more", own, 1)))
    assert plan.parts[1].config == {"a": 2, "b": 3}


def test_keys_of_storm_that_do_nothing_here_are_named_with_their_component(tmp_path: Path) -> None:
    text = CLASSES.replace("more", "numTasks: 4, cpuLoad: 10, constructorArgs: []", 1)
    text = text.replace("type: SHUFFLE", "type: SHUFFLE, args: [word]")
    assert notes_of(read_flux(written(tmp_path, text))) == [
        "numTasks of bolt 'keep': a component has as many tasks as its degree",
        "cpuLoad of bolt 'keep': there are no worker processes to be placed on machines",
        "args of stream from 'source' to 'keep': SHUFFLE has none",
    ]


def test_fields_that_are_none_send_all_to_one_task(tmp_path: Path) -> None:
    plan = read_flux(
        written(tmp_path, CLASSES.replace(", more", "").replace("SHUFFLE", "FIELDS, args: []"))
    )
    assert plan.parts[1].reads == (Reading("source", "default", "GLOBAL"),)


GROUPINGS = st.sampled_from(
    [
        Grouping.SHUFFLE,
        Grouping.ALL,
        Grouping.GLOBAL,
        Grouping.NONE,
        Grouping.LOCAL_OR_SHUFFLE,
        Grouping.fields("word"),
    ]
)
PARS = st.integers(1, 9)
CONFIGS = st.dictionaries(st.text("abc.", min_size=1), st.integers() | st.text("xyz"))


@given(st.lists(st.tuples(GROUPINGS, PARS, CONFIGS, st.booleans()), max_size=5), CONFIGS)
def test_a_topology_is_the_same_after_the_way_through_yaml(
    tmp_path_factory: pytest.TempPathFactory, bolts: list[Any], config: dict[str, Any]
) -> None:
    body: dict[str, Any] = {"source": Source.spec(par=2), "config": config}
    body["shell"] = ShellSpout.spec(command="ruby", script="a.rb", outputs=["word"])
    last = body["source"]
    for number, (grouping, par, own, shell) in enumerate(bolts):
        reads = {last["default"]: grouping}
        if shell:
            last = ShellBolt.spec(
                command="node",
                script="b.js -x",
                inputs=reads,
                par=par,
                config=own,
                outputs=["word"],
            )
        else:
            last = Keep.spec(inputs=reads, par=par, config=own)
        body[f"bolt{number}"] = last
    topology = type(Topology)("Made", (Topology,), body)
    folder = tmp_path_factory.mktemp("flux")
    path = written(folder, yaml.safe_dump(flux_dict(topology, "made")))
    plan, again = plan_of(topology, "made"), read_flux(path)
    by_name = {part.name: part for part in again.parts}
    assert {part.name: part for part in plan.parts} == by_name
    assert again.config == plan.config


def test_a_shell_component_has_variables_and_stays_in_its_folder(tmp_path: Path) -> None:
    text = """
    config: {topology.environment: {A: "1", B: "2"}}
    spouts:
      - id: source
        className: org.apache.storm.flux.wrappers.spouts.FluxShellSpout
        constructorArgs: [[node, source.js], [word]]
        configMethods: [{name: setEnv, args: [{B: "3", C: 4}]}]
    bolts:
      - id: keep
        className: org.apache.storm.flux.wrappers.bolts.FluxShellBolt
        constructorArgs: [[node, keep.js], [word]]
        configMethods: [{name: changeChildCWD, args: [false]}]
    streams: [{from: source, to: keep, grouping: {type: SHUFFLE}}]
    """
    made = build(read_flux(written(tmp_path, text)), Hosting(folder=str(tmp_path)))
    source, keep = made.component("source").body.shell, made.component("keep").body.shell
    assert (source.env, source.cwd) == ({"A": "1", "B": "3", "C": "4"}, str(tmp_path))
    assert (keep.env, keep.cwd) == ({"A": "1", "B": "2"}, None)


def test_a_python_class_with_variables_of_its_own_has_a_process(tmp_path: Path) -> None:
    own = "configMethods: [{name: setEnv, args: [{A: b}]}]"
    made = build(read_flux(written(tmp_path, CLASSES.replace("more", own, 1))))
    body = made.component("keep").body
    assert isinstance(body, tw.ShellBolt)
    assert body.shell.env["A"] == "b"


def test_folders_of_modules_that_it_is_told_come_before_those_of_the_run(tmp_path: Path) -> None:
    own = "configMethods: [{name: setEnv, args: [{PYTHONPATH: /opt/modules}]}]"
    made = build(read_flux(written(tmp_path, CLASSES.replace("more", own, 1))))
    told = made.component("keep").body.shell.env["PYTHONPATH"].split(os.pathsep)
    assert told == ["/opt/modules", *filter(None, sys.path)]


def test_the_bolt_that_logs_tuples_has_a_counterpart(tmp_path: Path) -> None:
    text = f"""
    spouts: [{{id: source, className: {__name__}.Two}}]
    bolts: [{{id: log, className: org.apache.storm.flux.wrappers.bolts.LogInfoBolt}}]
    streams: [{{from: source, to: log, grouping: {{type: SHUFFLE}}}}]
    """
    told: list[Event] = []
    build(read_flux(written(tmp_path, text))).run(on="inline", listen=told.append)
    assert [event.text for event in told if isinstance(event, ChildSaid)] == [
        "source: source:1, stream: default, id: 0, [one, 1]",
        "source: source:1, stream: default, id: 1, [two, 1]",
    ]


class Two(Spout):
    outputs = ("word", "n")

    def next_tuple(self) -> None:
        for word in ("one", "two"):
            self.emit([word, 1])
        raise SystemExit
