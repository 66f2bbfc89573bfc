"""``thalweg storm``: a streamparse project as it is, and Flux files, run by the command."""

from __future__ import annotations

import json
import sys
import textwrap
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from storm_libraries import NAMES, library
from typer.testing import CliRunner

from thalweg.cli import running, watching
from thalweg.cli.app import app
from thalweg.storm import JavaBolt, JavaSpout, ShellBolt, ShellSpout
from thalweg.storm.compat import install, is_ours
from thalweg.storm.projects import Project

FILES = {
    "config.json": '{"topology_specs": "topologies/"}',
    "topologies/wordcount.py": """
        from streamparse import Grouping, Topology
        from bolts.count import Count
        from spouts.words import Words

        class WordCount(Topology):
            words = Words.spec(par={"beta": 1, "prod": 2})
            count = Count.spec(inputs={words: Grouping.fields("word")}, par=2)
    """,
    "src/spouts/__init__.py": "",
    "src/spouts/words.py": """
        import sys
        from streamparse import Spout

        class Words(Spout):
            outputs = ["word"]

            def initialize(self, storm_conf, context):
                self.left = list(storm_conf.get("words", "to be or not to be").split())

            def next_tuple(self):
                if not self.left:
                    sys.exit(0)
                self.emit([self.left.pop(0)])
    """,
    "src/bolts/__init__.py": "",
    "src/bolts/count.py": """
        from collections import Counter
        from streamparse import Bolt

        class Count(Bolt):
            outputs = ["word", "n"]

            def initialize(self, storm_conf, context):
                self.counts = Counter()

            def process(self, tup):
                word = tup.values.word
                self.counts[word] += 1
                self.log(f"{word}={self.counts[word]}")
                self.emit([word, self.counts[word]])
    """,
}
COUNTS = {"to=1", "be=1", "or=1", "not=1", "to=2", "be=2"}


@pytest.fixture(params=NAMES)
def project(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Lay a project out; afterwards nothing of it is left in this process."""
    library(request.param)
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    before, paths = dict(sys.modules), list(sys.path)
    monkeypatch.chdir(tmp_path)
    if request.param == "ours":
        install(own=True)
        assert is_ours("streamparse")
    yield tmp_path
    sys.path[:] = paths
    for name in sys.modules.keys() - before.keys():
        if name.partition(".")[0] in ("spouts", "bolts", "wordcount", "streamparse", "pystorm"):
            del sys.modules[name]
    sys.modules.update(before)


def storm(*words: str) -> tuple[str, int]:
    """Run the command; gives what it printed, and its status."""
    done = CliRunner().invoke(app, ["storm", *words])
    return done.output, done.exit_code


def counted(text: str) -> set[str]:
    return {word for word in text.split() if "=" in word}


def test_modules_of_the_dsl_have_what_those_of_streamparse_have(project: Path) -> None:
    bolt, spout = import_module("streamparse.dsl.bolt"), import_module("streamparse.dsl.spout")
    made = bolt.ShellBoltSpec(ShellBolt, command="node", script="split.js", outputs=["word"])
    assert made.component_object.shell.script == "split.js"
    assert spout.ShellSpoutSpec(ShellSpout, command="node", script="", par=2).par == 2
    java = {"full_class_name": "a.B", "args_list": []}
    for made in (bolt.JavaBoltSpec(JavaBolt, **java), spout.JavaSpoutSpec(JavaSpout, **java)):
        assert made.component_object.java_object.full_class_name == "a.B"


def test_components_of_ours_stand_in_modules_of_the_dsl(project: Path) -> None:
    bolt, spout = import_module("streamparse.dsl.bolt"), import_module("streamparse.dsl.spout")
    if is_ours("streamparse"):
        assert (bolt.ShellBolt, spout.ShellSpout) == (ShellBolt, ShellSpout)
        assert isinstance(ShellBolt.spec(command="a", script=""), bolt.ShellBoltSpec)


@pytest.mark.parametrize("on", ["inline", "local"])
def test_a_project_runs_as_it_is(project: Path, on: str) -> None:
    text, status = storm("run", "topologies/wordcount.py", "--on", on, "-e", "beta")
    assert status == 0, text
    assert counted(text) == COUNTS
    assert "6 tuples in" in text.replace("\n", " ")


@pytest.mark.parametrize("serializer", ["json", "msgpack"])
def test_components_run_in_children_when_asked(project: Path, serializer: str) -> None:
    words = ["run", "topologies/wordcount.py", "-p", "words=1", "-s", serializer]
    text, status = storm(*words, "--isolation", "process")
    assert status == 0, text
    assert counted(text) == COUNTS


def test_degrees_and_configuration_are_given(project: Path) -> None:
    words = ["run", "topologies/wordcount.py:WordCount", "-p", "words=2", "-p", "count=1"]
    text, status = storm(*words, "--set-config", "words=a b")
    assert status == 0, text
    assert counted(text) == {"a=1", "b=1", "a=2", "b=2"}


ONLY = {
    "serializer": "msgpack",
    "envs": {"prod": {"options": {"words": "x"}, "log": {"level": "error"}, "serializer": "json"}},
}


def test_the_only_environment_is_meant_where_none_is_named(project: Path) -> None:
    (project / "config.json").write_text(json.dumps(ONLY), encoding="utf-8")
    text, status = storm("run", "topologies/wordcount.py")
    assert status == 0, text
    assert counted(text) == {"x=1", "x=2"}  # two spouts, as par says of prod
    found = Project.around(project / "topologies/wordcount.py").hosting()
    assert (found.environment, found.serializer) == ("prod", "json")
    assert found.config == {"words": "x", "pystorm.log.level": "error"}
    text, status = storm("flux", "topologies/wordcount.py")
    assert status == 0, text
    assert "parallelism: 2" in text


def test_degrees_that_do_not_know_the_only_environment_are_as_without_any(project: Path) -> None:
    (project / "config.json").write_text(json.dumps(ONLY), encoding="utf-8")
    file = project / "topologies/wordcount.py"
    told = file.read_text(encoding="utf-8")
    file.write_text(told.replace('{"beta": 1, "prod": 2}', '{"local": 3, "cluster": 3}'))
    text, status = storm("run", "topologies/wordcount.py")
    assert status == 0, text
    assert counted(text) == {"x=1", "x=2", "x=3"}
    text, status = storm("flux", "topologies/wordcount.py")
    assert "parallelism: 3" in text
    text, status = storm("run", "topologies/wordcount.py", "-e", "prod")
    assert "one of ['local', 'cluster'], got 'prod'" in text.replace("\n", " ")
    file.write_text(told.replace('{"beta": 1, "prod": 2}', '{"local": 3, "cluster": 40}'))
    text, status = storm("run", "topologies/wordcount.py")
    assert "one of ['local', 'cluster'], got None" in text.replace("\n", " ")


def test_none_of_several_environments_is_meant_where_none_is_named(project: Path) -> None:
    several = ONLY | {"envs": {**ONLY["envs"], "beta": {}}}
    (project / "config.json").write_text(json.dumps(several), encoding="utf-8")
    found = Project.around(project / "topologies/wordcount.py").hosting()
    assert (found.environment, found.serializer, found.config) == (None, "msgpack", {})


def test_a_slip_names_who_has_made_it(project: Path) -> None:
    run = "run", "topologies/wordcount.py", "-e", "beta"
    text, status = storm(*run, "--set-config", "topology.max.spout.pendign=3")
    assert status == 1
    assert "key in --set-config: expected keys that Storm has" in text.replace("\n", " ")
    slip = {"envs": {"beta": {"options": {"topology.max.spout.pendign": 3}}}}
    (project / "config.json").write_text(json.dumps(slip), encoding="utf-8")
    text, status = storm(*run)
    assert status == 1
    assert "key in options of 'beta' in " in text.replace("\n", " ")
    assert "config.json: expected keys" in text.replace("\n", "")


def test_what_spark_would_refuse_is_refused_before_it_starts(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(running, "started", start)
    text, status = storm("run", "topologies/wordcount.py", "-e", "beta", "--on", "spark")
    assert status == 1
    told = text.replace("\n", " ")
    assert "component 'count' with a fields grouping: expected state that can be written" in told
    assert "stateless = True in the class, or thalweg.stateless: true" in told
    in_child = "--isolation", "process"
    text, status = storm("run", "topologies/wordcount.py", "-e", "beta", "--on", "spark", *in_child)
    assert "stateless = True in the class, or thalweg.stateless: true" in text.replace("\n", " ")


def test_options_of_an_environment_are_taken_from_the_configuration(project: Path) -> None:
    prod = {"options": {"words": "x"}, "log": {"path": "", "level": "error"}}
    config = {"serializer": "msgpack", "envs": {"prod": prod}}
    (project / "config.json").write_text(json.dumps(config), encoding="utf-8")
    text, status = storm("run", "topologies/wordcount.py", "-e", "prod")
    assert status == 0, text
    assert counted(text) == {"x=1", "x=2"}  # two spouts
    options = Project.around(project / "topologies/wordcount.py")
    assert options.serializer("prod") == "msgpack"
    assert options.options("prod") == {"pystorm.log.level": "error", "words": "x"}


def test_an_environment_that_nobody_knows_is_refused_with_those_there_are(project: Path) -> None:
    (project / "config.json").write_text('{"envs": {"live": {}}}', encoding="utf-8")
    for command in ("run", "flux"):
        text, status = storm(command, "topologies/wordcount.py", "-e", "prodd")
        assert status == 1
        told = text.replace("\n", " ")
        assert "environment 'prodd': expected one of ['live', 'beta', 'prod']" in told
        assert "(did you mean 'prod'?)" in told


def test_within_a_project_the_name_is_enough(project: Path) -> None:
    text, status = storm("run", "wordcount", "-e", "beta")
    assert status == 0, text
    assert counted(text) == COUNTS
    text, status = storm("run", "wordcuont", "-e", "beta")
    assert status == 1
    assert "no such file" in text.replace("\n", " ")


def test_a_topology_is_printed_as_flux_and_that_runs(project: Path) -> None:
    text, status = storm("flux", "topologies/wordcount.py", "-e", "beta")
    assert status == 0, text
    told = yaml.safe_load(text)
    told["spouts"][0]["parallelism"] = "${tasks}"
    (project / "topology.yaml").write_text(yaml.safe_dump(told), encoding="utf-8")
    text, status = storm("run", "topology.yaml", "--property", "tasks=1")
    assert status == 0, text
    assert counted(text) == COUNTS


def test_a_topology_without_an_end_ends_by_time(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = threading.Event()

    class Timer(threading.Timer):
        """Lets time pass when all words were given, however long it took to begin."""

        def run(self) -> None:
            while not (given.wait(0.01) or self.finished.is_set()):
                pass
            super().run()

    monkeypatch.setattr(watching.threading, "Timer", Timer)
    monkeypatch.setattr(sys, "all_given", given.set, raising=False)  # the spout has no other way
    endless = FILES["src/spouts/words.py"].replace("sys.exit(0)", "return sys.all_given()")
    (project / "src/spouts/words.py").write_text(textwrap.dedent(endless), encoding="utf-8")
    text, status = storm("run", "topologies/wordcount.py", "-e", "beta", "-t", "0.3")
    assert status == 0, text
    assert counted(text) == COUNTS
    assert "stopped early" in text


def test_what_modules_log_is_shown_from_the_level_on(project: Path) -> None:
    lines = ["import logging", "log = logging.getLogger(__name__)"]
    own = FILES["src/bolts/count.py"].replace("self.log(", 'log.debug("quiet"); log.info(')
    text = "\n".join([*lines, textwrap.dedent(own)])
    (project / "src/bolts/count.py").write_text(text, encoding="utf-8")
    shown, status = storm("run", "wordcount", "-e", "beta")
    assert status == 0, shown
    assert counted(shown) == COUNTS
    assert "quiet" not in shown
    hushed, _ = storm("run", "wordcount", "-e", "beta", "--set-config", "pystorm.log.level=error")
    assert counted(hushed) == set()


def test_keys_that_mean_nothing_here_are_named_and_those_of_components_are_not(
    project: Path,
) -> None:
    config = ["--set-config", "topology.priority=3", "--set-config", "words=a"]
    text, status = storm("run", "topologies/wordcount.py", "-e", "beta", *config)
    assert status == 0, text
    assert "topology.priority: there are no worker processes" in text.replace("\n", " ")
    assert "for components" not in text


WRONG = {
    "no environment": ((), "--environment NAME"),
    "an unknown component": (("-p", "cuont=2"), "cuont"),
    "a degree that is none": (("-p", "count=none"), "N 1 or more"),
    "an isolation that is none": (("--isolation", "cell"), "'cell'"),
    "an unknown key": (("-e", "beta", "--set-config", "topology.wokers=2"), "topology.workers"),
    "an unknown serializer": (
        ("-e", "beta", "--isolation", "process", "-s", "xml"),
        "serializer",
    ),
    "a property of what is no Flux file": (
        ("-e", "beta", "--property", "words=a"),
        "--property words: expected a Flux file, got topologies/wordcount.py (--set-config gives",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_explained(project: Path, case: str) -> None:
    words, told = WRONG[case]
    text, status = storm("run", "topologies/wordcount.py", *words)
    assert status == 1
    assert told in text.replace("\n", " ")


def test_a_file_without_a_topology_says_so(project: Path) -> None:
    text, status = storm("run", "src/spouts/words.py")
    assert status == 1
    assert "derives from Topology" in text


def test_a_java_component_is_refused_with_what_to_do(project: Path) -> None:
    (project / "java.py").write_text(
        textwrap.dedent("""
            from streamparse import JavaBolt, Topology
            from spouts.words import Words

            class Mixed(Topology):
                words = Words.spec(par=1)
                java = JavaBolt.spec(
                    full_class_name="org.example.Count", args_list=[], inputs=[words], outputs=["n"]
                )
        """),
        encoding="utf-8",
    )
    text, status = storm("run", "java.py")
    assert status == 1
    assert "org.example.Count" in text
    assert "there is no JVM here" in text.replace("\n", " ")
    text, status = storm("flux", "java.py")
    assert status == 0
    assert "org.example.Count" in text
