"""Configurations with Storm's keys: what they change, and what is said about the others."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from vocabulary import Pass, chain

import thalweg as tw
from thalweg.consumers import LoggingConsumer
from thalweg.hooks import TaskHook
from thalweg.multilang.bolts import ShellBolt
from thalweg.storm_config import StormConfig, configured, read_config
from thalweg.storm_config.applying import ShowEmits
from thalweg.storm_config.keys import KEYS, MEANINGLESS, OF_CLUSTERS


def applied(values: dict[str, Any], on: Any = None, **more: Any) -> Any:
    return configured(StormConfig.of(values), chain(Pass(), **more), on)


class Hook(TaskHook):
    """Named in a configuration."""

    def emit(self, info: Any) -> None:
        """Hear it."""


class Consumer:
    """Named in a configuration."""

    def __init__(self, path: str = "", level: int = 0) -> None:
        self.path, self.level = path, level

    def handle(self, task_info: Any, points: Any) -> None:
        """Take them."""


def refuse(topology: tw.Topology) -> str:
    """Named in a configuration."""
    return f"{topology.name} is not wanted"


HERE = __name__


# --- what means the same --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "setting", "meant"),
    [
        ("topology.workers", 3, "workers", 3),
        ("topology.message.timeout.secs", 7, "ack_timeout", 7),
        ("topology.enable.message.timeouts", False, "ack_timeout", math.inf),
        ("topology.executor.receive.buffer.size", 1024, "queue_rows", 1024),
        ("topology.sleep.spout.wait.strategy.time.ms", 5, "idle", 0.005),
        ("topology.state.checkpoint.interval.ms", 2000, "snapshot_every", 2.0),
        ("topology.acker.executors", 0, "acking", False),
        ("topology.acker.executors", 2, "acking", True),
    ],
)
def test_settings_of_the_local_runtime(key: str, value: Any, setting: str, meant: Any) -> None:
    assert getattr(applied({key: value}).on, setting) == meant


@pytest.mark.parametrize(
    ("strategy", "wait"),
    [
        ("com.lmax.disruptor.BlockingWaitStrategy", "blocking"),
        ("com.lmax.disruptor.SleepingWaitStrategy", "sleeping"),
        ("com.lmax.disruptor.YieldingWaitStrategy", "yielding"),
        ("com.lmax.disruptor.BusySpinWaitStrategy", "busy-spin"),
        ("org.apache.storm.policy.WaitStrategyProgressive", "sleeping"),
        ("yielding", "yielding"),
    ],
)
def test_wait_strategies_make_executors_where_that_matters(strategy: str, wait: str) -> None:
    local = applied({"topology.disruptor.wait.strategy": strategy}).on
    assert local.wait == wait
    assert local.assigning == ("workers" if wait == "blocking" else "executors")


def test_settings_that_were_given_stay_where_the_configuration_says_nothing() -> None:
    local = applied({"topology.workers": 3}, tw.Local(seed=5, workers=1)).on
    assert (local.workers, local.seed) == (3, 5)


def test_degrees_are_bounded() -> None:
    values = {"topology.max.task.parallelism": 2}
    assert applied(values, degree=5).topology.component("bolt").degree == 2
    assert applied(values, degree=1).topology.component("bolt").degree == 1


def test_ticks_are_for_bolts_that_do_not_say() -> None:
    values = {"topology.tick.tuple.freq.secs": 10}
    assert applied(values).topology.component("bolt").options.tick == 10
    assert applied(values, tick=1).topology.component("bolt").options.tick == 1
    assert applied(values).topology.component("numbers").options.tick is None


def test_pending_tuples_are_bounded_at_spouts() -> None:
    topology = applied({"topology.max.spout.pending": 12}).topology
    assert topology.component("numbers").options.max_pending == 12
    assert topology.component("bolt").options.max_pending is None


def test_a_topology_may_be_named() -> None:
    assert applied({"topology.name": "other"}).topology.name == "other"


def test_hooks_consumers_and_a_validator_are_imported() -> None:
    arguments = applied(
        {
            "topology.auto.task.hooks": [f"{HERE}:Hook", f"{HERE}.Hook"],
            "topology.metrics.consumer.register": [
                {"class": f"{HERE}:Consumer", "argument": "a.json", "parallelism.hint": 1},
                {"class": f"{HERE}:Consumer", "argument": {"level": 3}},
                {"class": "org.apache.storm.metric.LoggingMetricsConsumer"},
            ],
            "topology.builtin.metrics.bucket.size.secs": 5,
            "topology.worker.shared.thread.pool.size": 2,
            "topology.validator": f"{HERE}:refuse",
        }
    ).arguments
    assert [type(hook) for hook in arguments["hooks"]] == [Hook, Hook]
    first, second, third = arguments["consumers"]
    assert (first.path, second.level, type(third)) == ("a.json", 3, LoggingConsumer)
    assert (arguments["metrics_every"], arguments["background_threads"]) == (5, 2)
    assert arguments["validator"] is refuse


def test_debug_shows_what_is_emitted(capsys: pytest.CaptureFixture[str]) -> None:
    made = applied({"topology.debug": True})
    assert [type(hook) for hook in made.arguments["hooks"]] == [ShowEmits]
    made.topology.run(on=made.on, **made.arguments)
    shown = capsys.readouterr().err
    assert "emitting numbers:0 default (3,)" in shown
    assert "emitting bolt:0 default (3,)" in shown


def test_all_of_it_runs() -> None:
    made = applied(
        {
            "topology.workers": 2,
            "topology.max.spout.pending": 3,
            "topology.acker.executors": 1,
            "topology.disruptor.wait.strategy": "com.lmax.disruptor.SleepingWaitStrategy",
            "topology.auto.task.hooks": [f"{HERE}:Hook"],
        }
    )
    assert made.topology.run(on=made.on, **made.arguments).metrics.acked == 10


def test_a_validator_of_a_configuration_keeps_a_run_from_starting() -> None:
    made = applied({"nimbus.topology.validator": f"{HERE}:refuse"})
    with pytest.raises(tw.TopologyError, match="chain is not wanted"):
        made.topology.run(on=made.on, **made.arguments)


def test_keys_of_the_users_own_reach_components() -> None:
    seen: dict[str, str] = {}

    class Looking(Pass):
        def prepare(self, context: tw.TaskContext) -> None:
            seen.update(context.settings)

    config = StormConfig.of({"my.limit": 5, "my.names": ["a"], "my.word": "x"})
    made = configured(config, chain(Looking()), settings={"my.word": "y"})
    made.topology.run(on=made.on, **made.arguments)
    assert seen == {"my.limit": "5", "my.names": '["a"]', "my.word": "y"}
    assert [note.split(":")[0] for note in made.notes] == ["my.limit", "my.names", "my.word"]


def test_programs_in_other_languages_get_what_is_said_about_them() -> None:
    config = StormConfig.of(
        {
            "topology.multilang.serializer": "org.example.MessagePackSerializer",
            "topology.subprocess.timeout.secs": 7,
            "topology.shellbolt.max.pending": 50,
            "topology.environment": {"LEVEL": 3, "MODE": "a"},
            "my.limit": 5,
        }
    )
    bolt = ShellBolt("ruby count.rb", outputs=["n"], max_pending=9, env={"MODE": "b"})
    shell = configured(config, chain(bolt)).topology.component("bolt").body.shell
    assert (shell.serializer, shell.timeout) == ("msgpack", 7)
    assert shell.max_pending == 9  # as the bolt says itself
    assert shell.env == {"LEVEL": "3", "MODE": "b"}
    assert shell.config["my.limit"] == 5
    assert bolt.shell.serializer == "json"  # as it was


def test_consumers_have_one_thread_and_that_is_said() -> None:
    several = [{"class": f"{HERE}:Consumer", "parallelism.hint": 4}]
    notes = applied({"topology.metrics.consumer.register": several}).notes
    assert "one thread" in notes[0]


# --- what does not --------------------------------------------------------------------------------


@pytest.mark.parametrize("key", MEANINGLESS)
def test_keys_without_a_meaning_are_named_with_the_reason(key: str) -> None:
    config = StormConfig.of({key: 1})
    assert config.notes == (f"{key}: {MEANINGLESS[key]}",)
    assert not config.own


@pytest.mark.parametrize("start", OF_CLUSTERS)
def test_keys_of_clusters_are_named_with_the_reason(start: str) -> None:
    assert StormConfig.of({f"{start}anything": 1}).notes == (
        f"{start}anything: {OF_CLUSTERS[start]}",
    )


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        ("topology.worker", "topology.workers"),
        ("topolgy.workers", "topology.workers"),
        ("topology.max.spout.pendign", "topology.max.spout.pending"),
        ("topology.ticks", "topology.tasks"),
    ],
)
def test_a_slip_is_refused_with_what_was_meant(slip: str, meant: str) -> None:
    with pytest.raises(tw.UsageError, match=rf"{slip}.*did you mean '{meant}'"):
        StormConfig.of({slip: 1})


@pytest.mark.parametrize(
    "key",
    [
        "topology.version",
        "topology.disable.loadaware.messaging",
        "topology.localityaware.higher.bound",
        "topology.blobstore.map",
        "topology.readonly.users",
        "topology.multilang.log.handler",
        "topology.acker.resources.onheap.memory.mb",
        "topology.metrics.reporters",
        "topology.worker.timeout.secs",
        "topology.event.logger.register",
        "topology.bolts.window.length.count",
        "topology.ras.constraints",
        "task.heartbeat.frequency.secs",
        "client.blobstore.class",
    ],
)
def test_keys_that_storm_has_are_no_slips(key: str) -> None:
    config = StormConfig.of({key: 1})
    assert len(config.notes) == 1
    assert not config.own


def test_what_components_of_storm_say_to_us_is_no_key_without_meaning() -> None:
    config = StormConfig.of({"thalweg.isolation": "process", "thalweg.stateless": True, "my": 1})
    assert config.notes == ("my: for components, in context.settings",)


def test_a_key_of_topologies_that_nothing_is_known_about_is_named() -> None:
    config = StormConfig.of({"topology.hdfs.uri": "hdfs://x"})
    assert dict(config.own) == {"topology.hdfs.uri": "hdfs://x"}
    assert config.notes[0].startswith("topology.hdfs.uri: not known as a key of Storm's")


def test_all_slips_are_named_at_once() -> None:
    with pytest.raises(tw.UsageError, match=r"topology\.worker'.*topology\.debugs'"):
        StormConfig.of({"topology.worker": 1, "topology.debugs": True})


@given(st.sampled_from(sorted(KEYS)), st.data())
def test_every_letter_that_is_left_out_is_noticed(key: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(key) - 1))
    slip = key[:at] + key[at + 1 :]
    if slip in KEYS or slip in MEANINGLESS or slip.startswith(tuple(OF_CLUSTERS)):
        return
    with pytest.raises(tw.UsageError, match="did you mean"):
        StormConfig.of({slip: 1})


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("topology.message.timeout.secs", 0),
        ("topology.message.timeout.secs", math.nan),
        ("topology.workers", 0),
        ("topology.workers", True),
        ("topology.workers", "two"),
        ("topology.tick.tuple.freq.secs", -1),
        ("topology.debug", "yes"),
        ("topology.stats.sample.rate", 2),
        ("topology.disruptor.wait.strategy", "com.example.Napping"),
        ("topology.auto.task.hooks", [1]),
        ("topology.metrics.consumer.register", "x"),
        ("topology.environment", [1]),
        ("topology.multilang.serializer", "org.example.Kryo"),
    ],
)
def test_wrong_values_are_refused_with_what_is_expected(key: str, wrong: Any) -> None:
    with pytest.raises(tw.UsageError, match=f"key '{key}' in configuration: expected"):
        StormConfig.of({key: wrong})


@pytest.mark.parametrize(
    "values",
    [
        {"topology.auto.task.hooks": ["org.apache.storm.hooks.Hook"]},
        {"topology.metrics.consumer.register": [{"class": "com.example.Graphite"}]},
        {"topology.validator": "nowhere:check"},
        {"topology.validator": f"{HERE}:no_such_name"},
    ],
)
def test_what_cannot_be_imported_is_named(values: dict[str, Any]) -> None:
    with pytest.raises(tw.UsageError, match="something that Python can import"):
        applied(values)


@pytest.mark.parametrize("written", [3, {}, {"class": "a:b", "whitelist": ["x"]}])
def test_a_consumer_has_a_class_and_nothing_unknown(written: Any) -> None:
    with pytest.raises(tw.UsageError, match="metrics consumer"):
        applied({"topology.metrics.consumer.register": [written]})


def test_null_says_nothing() -> None:
    assert StormConfig.of({"topology.workers": None}).workers is None


def test_other_runtimes_say_what_they_have_no_use_for() -> None:
    values = {"topology.workers": 2, "topology.message.timeout.secs": 3}
    made = applied(values, "inline")
    assert made.on.ack_timeout == 3
    assert made.notes[-1] == "topology.workers: it means nothing on inline"
    on_spark = applied(values, tw.Spark())
    assert [note.split(":")[0] for note in on_spark.notes[-2:]] == [
        "topology.message.timeout.secs",
        "topology.workers",
    ]


def test_spark_refuses_what_would_be_missed() -> None:
    with pytest.raises(tw.UsageError, match=r"topology\.max\.spout\.pending"):
        applied({"topology.max.spout.pending": 5}, tw.Spark())


# --- files ----------------------------------------------------------------------------------------


def test_a_file_is_read(tmp_path: Any) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text("topology.workers: 2\n# nothing\ntopology.tick.tuple.freq.secs: 1.5\n")
    config = read_config(path)
    assert (config.workers, config.tick) == (2, 1.5)


def test_an_empty_file_says_nothing(tmp_path: Any) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text("")
    assert read_config(path) == StormConfig.of({})


@pytest.mark.parametrize("text", ["- a", "a: [b", "3", "1: 2", "!!python/object/apply:print []"])
def test_what_is_no_configuration_is_refused(tmp_path: Any, text: str) -> None:
    path = tmp_path / "storm.yaml"
    path.write_text(text)
    with pytest.raises(tw.UsageError, match=r"storm\.yaml"):
        read_config(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Any) -> None:
    with pytest.raises(tw.UsageError, match=r"nothing\.yaml"):
        read_config(tmp_path / "nothing.yaml")


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted({*KEYS, *MEANINGLESS, "my.key"})), plain))
def test_any_file_is_read_or_refused_and_no_key_is_lost(values: dict[str, Any]) -> None:
    read = yaml.safe_load(yaml.safe_dump(values))
    try:
        config = StormConfig.of(read)
    except tw.UsageError:
        return
    assert dict(config.values) == read
    told = {note.split(":")[0] for note in config.notes}
    assert all(key in told or key in KEYS for key in read)
