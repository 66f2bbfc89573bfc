"""What configurations come to: of a component, of its topology, and of whoever runs it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import thalweg as tw
from thalweg.errors import UsageError
from thalweg.multilang import ShellBolt
from thalweg.storm import Bolt, Spout, Topology
from thalweg.storm import ShellBolt as Program
from thalweg.storm.building import Hosting, build
from thalweg.storm.plans import SERIALIZER, plan_of
from thalweg.storm.settings import TICK, notes_of
from thalweg.storm_config import StormConfig, configured

PENDING = "topology.max.spout.pending"
MSGPACK = "org.example.MessagePackSerializer"


class Words(Spout):
    outputs = ("word",)
    left = 3

    def next_tuple(self) -> None:
        if not self.left:
            raise SystemExit
        self.left -= 1
        self.emit([f"word {self.left}"])


class Same(Bolt):
    outputs = ("word",)

    def process(self, tup: Any) -> None:
        self.emit([tup.values.word])


def made(
    hosting: Hosting | None = None,
    *,
    config: dict[str, Any] | None = None,
    spout: dict[str, Any] | None = None,
    bolt: dict[str, Any] | None = None,
    program: dict[str, Any] | None = None,
) -> tw.Topology:
    """Build a topology: configurations of itself, of a spout, of a bolt, and of a program."""
    words = Words.spec(config=spout)
    body: dict[str, Any] = {"config": config or {}, "words": words}
    body["same"] = Same.spec(inputs=[words], config=bolt)
    body["cat"] = Program.spec(
        command="cat", script="", inputs=[words], outputs=["word"], config=program
    )
    return build(plan_of(type(Topology)("Made", (Topology,), body), "made"), hosting)


def shell(topology: tw.Topology, name: str) -> Any:
    return topology.component(name).body.shell


CHILDREN = Hosting(isolation="process")


def test_what_a_component_says_counts_more_than_its_topology_and_who_runs_it() -> None:
    topology = made(
        Hosting(isolation="process", config={TICK: 60, PENDING: 8}),
        config={PENDING: 9, "topology.subprocess.timeout.secs": 5},
        bolt={TICK: 5, "topology.subprocess.timeout.secs": 7, "topology.shellbolt.max.pending": 11},
    )
    assert topology.component("words").options.max_pending == 8
    assert topology.component("same").options.tick == 5
    assert topology.component("cat").options.tick == 60
    assert (shell(topology, "same").timeout, shell(topology, "same").max_pending) == (7, 11)
    assert shell(topology, "cat").timeout == 5
    assert shell(topology, "same").config[TICK] == 5
    assert made(spout={PENDING: 7}).component("words").options.max_pending == 7


def test_what_a_component_says_stays_when_a_configuration_comes_later() -> None:
    said = {TICK: 5, SERIALIZER: "json", "topology.subprocess.timeout.secs": 30}
    topology = made(CHILDREN, spout={PENDING: 7}, program=said)
    later = {TICK: 60, PENDING: 8, SERIALIZER: MSGPACK, "topology.subprocess.timeout.secs": 9}
    changed = configured(StormConfig.of(later), topology, "local").topology
    assert changed.component("words").options.max_pending == 7
    assert changed.component("cat").options.tick == 5
    # Equal to what it would have been, and said all the same.
    assert (shell(changed, "cat").serializer, shell(changed, "cat").timeout) == ("json", 30)
    assert shell(changed, "same").timeout == 9


def test_a_component_may_have_fewer_tasks_than_it_asks_for() -> None:
    most = {"topology.max.task.parallelism": 2}
    topology = made(Hosting(degrees={"same": 5, "cat": 5}), bolt=most)
    assert [topology.component(name).degree for name in ("same", "cat")] == [2, 5]


def test_variables_of_a_component_are_those_of_its_child() -> None:
    topology = made(CHILDREN, program={"topology.environment": {"PLACE": 3}})
    assert shell(topology, "cat").env == {"PLACE": "3"}


# --- serializers -------------------------------------------------------------------------------

WAYS = {
    "the command": (Hosting(isolation="process", serializer="msgpack"), {}),
    "a configuration": (Hosting(isolation="process", config={SERIALIZER: MSGPACK}), {}),
    "the topology": (CHILDREN, {"config": {SERIALIZER: MSGPACK}}),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_python_child_speaks_as_its_parent_does(way: str) -> None:
    hosting, more = WAYS[way]
    topology = made(hosting, program={SERIALIZER: "json"}, **more)
    assert shell(topology, "same").serializer == "msgpack"
    assert shell(topology, "same").command[3:5] == ("-s", "msgpack")
    assert shell(topology, "cat").serializer == "json"


def test_a_python_child_speaks_as_before_when_a_configuration_comes_later() -> None:
    later = StormConfig.of({SERIALIZER: MSGPACK})
    topology = configured(later, made(CHILDREN), "local").topology
    assert shell(topology, "same").serializer == "json"
    assert shell(topology, "same").command[3:5] == ("-s", "json")
    assert shell(topology, "cat").serializer == "msgpack"  # nobody had said anything


def test_a_topology_with_another_serializer_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(__file__).rpartition("/")[0])
    config = {SERIALIZER: MSGPACK}
    words = Words.spec()
    body = {"config": config, "words": words, "same": Same.spec(inputs=[words])}
    plan = plan_of(type(Topology)("Made", (Topology,), body), "made")
    topology = configured(StormConfig.of(config), build(plan, CHILDREN), "inline").topology
    metrics = topology.run(on="inline").metrics
    assert metrics.component("same").emitted == 3


def test_a_serializer_that_is_none_is_refused_wherever_components_run() -> None:
    with pytest.raises(UsageError, match="serializer"):
        made(Hosting(serializer="xml"))


def test_an_explicit_setting_of_a_child_is_explicit_also_where_it_is_the_usual_one() -> None:
    builder = tw.TopologyBuilder("explicit")
    builder.add_spout("n", tw.items([1]), fields={"n": int})
    command = [sys.executable, "-c", ""]
    builder.add_bolt("json", ShellBolt(command, serializer="json", max_pending=1000)).shuffle("n")
    builder.add_bolt("any", ShellBolt(command)).shuffle("n")
    later = StormConfig.of({SERIALIZER: "msgpack", "topology.shellbolt.max.pending": 5})
    topology = configured(later, builder.build(), "local").topology
    told = {name: shell(topology, name) for name in ("json", "any")}
    assert (told["json"].serializer, told["json"].max_pending) == ("json", 1000)
    assert (told["any"].serializer, told["any"].max_pending) == ("msgpack", 5)


# --- keys that do nothing ----------------------------------------------------------------------


def test_a_slip_in_the_configuration_of_a_component_is_named() -> None:
    with pytest.raises(UsageError, match=r"component 'same'.*topology\.max\.spout\.pending"):
        made(bolt={"topology.max.spout.pendign": 3})
    with pytest.raises(UsageError, match=r"'topology\.tick\.tuple\.freq\.secs'.*component 'same'"):
        made(bolt={TICK: "often"})


def test_keys_that_do_nothing_for_a_component_are_named_with_it() -> None:
    words = Words.spec(config={"topology.workers": 2, "topology.priority": 1, "own": 3})
    body = {"words": words, "same": Same.spec(inputs=[words], config={TICK: 3, PENDING: 1})}
    plan = plan_of(type(Topology)("Made", (Topology,), body), "made")
    assert notes_of(plan) == [
        "topology.workers of component 'words': it is one of the whole topology",
        "topology.priority of component 'words': there are no worker processes to be placed on "
        "machines",
        "topology.max.spout.pending of component 'same': it is no spout",
    ]


def test_a_key_that_nothing_is_known_about_is_named_with_its_component() -> None:
    body = {"words": Words.spec(config={"topology.hdfs.uri": "hdfs://x", "own": 3})}
    plan = plan_of(type(Topology)("Made", (Topology,), body), "made")
    assert notes_of(plan) == [
        "topology.hdfs.uri of component 'words': not known as a key of Storm's; components see it, "
        "nobody else does"
    ]


# --- keys of ours --------------------------------------------------------------------------------

WRONG = [
    ("thalweg.isolation", "procss", "'auto' or 'process'"),
    ("thalweg.stateless", "false", "true or false"),
    ("thalweg.restarts", -1, "a whole number, 0 or more"),
    ("thalweg.isolaton", "process", r"did you mean 'thalweg\.isolation'"),
    ("thalweg.xyz", 1, r"ours are \['thalweg\.isolation', 'thalweg\.stateless'"),
]


@pytest.mark.parametrize("whose", ["who runs it", "topology", "component"])
@pytest.mark.parametrize(("key", "value", "tells"), WRONG)
def test_a_slip_in_a_key_of_ours_is_refused(whose: str, key: str, value: Any, tells: str) -> None:
    said = {key: value}
    ways: dict[str, Any] = {
        "who runs it": {"hosting": Hosting(config=said)},
        "topology": {"config": said},
        "component": {"bolt": said},
    }
    with pytest.raises(UsageError, match=tells):
        made(**ways[whose])


def test_keys_of_ours_that_are_known_need_no_note() -> None:
    said = {"thalweg.isolation": "process", "thalweg.stateless": True, "thalweg.restarts": 0}
    told = StormConfig.of(said)
    assert (told.isolation, told.stateless, told.restarts) == ("process", True, 0)
    assert (told.notes, dict(told.own)) == ((), {})


@pytest.mark.parametrize("stateless", [True, False])
def test_a_bolt_keeps_something_by_key_unless_it_is_said(stateless: bool) -> None:
    for hosting in (Hosting(), CHILDREN):
        topology = made(hosting, bolt={"thalweg.stateless": stateless})
        assert topology.component("same").body.outside_state is not stateless


LIMITS = {
    "thalweg.restarts": 7,
    "thalweg.linger": 0.5,
    "thalweg.most_held": 8,
    "thalweg.most_bytes": 900,
}


def limits(topology: tw.Topology, name: str) -> list[Any]:
    return [getattr(shell(topology, name), key.removeprefix("thalweg.")) for key in LIMITS]


def test_limits_of_children_are_set_by_keys_of_ours() -> None:
    own = {key: value + 1 for key, value in LIMITS.items()}
    topology = made(CHILDREN, config=LIMITS, program=own)
    assert limits(topology, "words") == limits(topology, "same") == list(LIMITS.values())
    assert limits(topology, "cat") == list(own.values())
    later = configured(StormConfig.of(LIMITS), made(CHILDREN, program=own), "local").topology
    assert limits(later, "same") == list(LIMITS.values())
    assert limits(later, "cat") == list(own.values())
