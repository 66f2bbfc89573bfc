"""What a Storm topology says, whoever wrote it: streamparse's classes or Flux."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from getopt import GetoptError, gnu_getopt
from typing import Any, Literal, NamedTuple

from thalweg.errors import TopologyError, explain
from thalweg.storm.fluxing import is_spout
from thalweg.storm.streams import DEFAULT, grouping_kind

#: The program that runs a Python component in streamparse's topologies.
RUNNERS = ("streamparse_run", "pystorm_run")
#: Configuration by which a component says how it is spoken with.
SERIALIZER = "topology.multilang.serializer"
#: How names of classes begin that are Java's, where Python has none of that name.
JAVA = ("org.", "com.", "java.", "io.", "net.")


@dataclass(frozen=True)
class Reading:
    """One stream that a component reads."""

    component: str
    stream: str
    #: Storm's name of the grouping: SHUFFLE, FIELDS ...
    kind: str
    fields: tuple[str, ...] = ()
    #: Path of the class of a custom grouping, and what it is made with.
    custom: tuple[str, tuple[Any, ...]] | None = None


@dataclass(frozen=True)
class Part:
    """A component: a Python class, or a program."""

    name: str
    kind: Literal["spout", "bolt"]
    #: Path of the class; "" for a program.
    cls: str = ""
    command: tuple[str, ...] = ()
    outputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    direct: frozenset[str] = frozenset()
    reads: tuple[Reading, ...] = ()
    #: Degree, or degrees by environment.
    par: Any = 1
    config: Mapping[str, Any] = field(default_factory=dict)
    #: Variables of its child process, beside those that its configuration names.
    env: Mapping[str, str] = field(default_factory=dict)
    #: Whether its child process runs in the folder of programs, not in that of the run.
    moves: bool = True


@dataclass(frozen=True)
class Plan:
    """A topology, not yet one of ours."""

    name: str
    parts: tuple[Part, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    #: What of it changes nothing, and why, beside keys of configuration.
    notes: tuple[str, ...] = ()


def plan_of(topology: Any, name: str) -> Plan:
    """Read a class of streamparse, the real one or ours."""
    return Plan(name, tuple(map(_part, topology.specs)), dict(topology.config))


def _part(spec: Any) -> Part:
    config = json.loads(spec.config) if isinstance(spec.config, str) else dict(spec.config or {})
    found = _what(spec)
    return Part(
        name=spec.name,
        kind="spout" if is_spout(spec) else "bolt",
        cls=found.cls,
        command=found.command,
        outputs={name: tuple(info.output_fields) for name, info in spec.outputs.items()},
        direct=frozenset(name for name, info in spec.outputs.items() if info.direct),
        reads=tuple(_reading(stream, grouping) for stream, grouping in spec.inputs.items()),
        par=spec.par,
        config={**found.config, **config},
    )


class Program(NamedTuple):
    """What a command runs: a Python class, or else something with these words."""

    cls: str = ""
    command: tuple[str, ...] = ()
    #: What the command says about the component.
    config: Mapping[str, Any] = {}


def _what(spec: Any) -> Program:
    shell = spec.component_object.shell
    if shell is None:
        java = spec.component_object.java_object
        raise needs_jvm(spec.name, java.full_class_name if java else "a serialized object")
    return program(shell.execution_command, shell.script)


def program(*words: str) -> Program:
    """Tell a Python class from another program; one or two words may hold several.

    >>> program("streamparse_run", "-s json bolts.words.Count")
    Program(cls='bolts.words.Count', command=(), config={'topology.multilang.serializer': 'json'})
    >>> program("node", "split.js --fast").command
    ('node', 'split.js', '--fast')
    """
    if len(words) < 3 or _is_runner(words[0]):
        words = _split(words)
    return _of_runner(words) if _is_runner(words[0]) else Program(command=words)


def _is_runner(word: str) -> bool:
    return word.rpartition("/")[2] in RUNNERS


def _split(words: tuple[str, ...]) -> tuple[str, ...]:
    try:
        found = tuple(part for word in words for part in shlex.split(word))
    except ValueError as error:  # a quote without its other half
        raise _wrong(words, "words", str(error)) from error
    if not found:
        raise _wrong(words, "words", "none")
    return found


def _of_runner(words: tuple[str, ...]) -> Program:
    """Read the options of streamparse's program, which may stand before the class and behind it."""
    expected = "one class, and -s SERIALIZER if anything"
    try:
        options, classes = gnu_getopt(words[1:], "s:", ["serializer="])
    except GetoptError as error:
        raise _wrong(words, expected, str(error)) from error
    if len(classes) != 1:
        raise _wrong(words, expected, shlex.join(classes) or "no class")
    return Program(classes[0], config={SERIALIZER: options[-1][1]} if options else {})


def _wrong(words: tuple[str, ...], expected: str, got: str) -> TopologyError:
    return TopologyError(explain(f"command {shlex.join(words)}", expected=expected, got=got))


def _reading(stream: Any, grouping: Any) -> Reading:
    kind, custom = grouping_kind(grouping), None
    if kind == "CUSTOM_OBJECT":
        java = grouping.custom_object
        custom = java.full_class_name, tuple(java.args_list)
    fields = tuple(grouping.fields) if kind == "FIELDS" else ()
    return Reading(stream.componentId, stream.streamId or DEFAULT, kind, fields, custom)


def needs_jvm(name: str, what: str) -> TopologyError:
    """Say why a component of Java's cannot run, and what can be done."""
    return TopologyError(
        explain(
            f"component {name!r}",
            expected="a Python class, or a program that speaks Storm's protocol",
            got=f"Java: {what}",
            hint="there is no JVM here: write it in Python, or as a shell component",
        )
    )
