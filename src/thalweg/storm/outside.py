"""Components of streamparse's topologies that are not Python: programs, and Java classes."""

from __future__ import annotations

from typing import Any, ClassVar

from thalweg.storm.specs import BoltSpec, ComponentObject, ShellComponent, SpoutSpec, Wanted
from thalweg.storm.streams import JavaObject


class Described:
    """What classes of components may say about themselves."""

    #: Fields of the default stream, or streams.
    outputs: ClassVar[Any] = None
    #: Degree, or degrees by environment.
    par: ClassVar[Any] = 1
    #: Configuration of the component.
    config: ClassVar[Any] = None


class ShellBoltSpec(BoltSpec):
    """A bolt in a topology that is a program."""

    def __init__(
        self,
        component_cls: type,
        name: str | None = None,
        command: Any = None,
        script: Any = None,
        **wanted: Any,
    ) -> None:
        super().__init__(component_cls, _shell(command, script), Wanted(name, **wanted))


class ShellSpoutSpec(SpoutSpec):
    """A spout in a topology that is a program."""

    def __init__(
        self,
        component_cls: type,
        name: str | None = None,
        command: Any = None,
        script: Any = None,
        **wanted: Any,
    ) -> None:
        super().__init__(component_cls, _shell(command, script), Wanted(name, **wanted))


class JavaBoltSpec(BoltSpec):
    """A bolt in a topology that is a Java class."""

    def __init__(self, component_cls: type, name: str | None = None, **wanted: Any) -> None:
        super().__init__(component_cls, _java(wanted), Wanted(name, **wanted))


class JavaSpoutSpec(SpoutSpec):
    """A spout in a topology that is a Java class."""

    def __init__(self, component_cls: type, name: str | None = None, **wanted: Any) -> None:
        super().__init__(component_cls, _java(wanted), Wanted(name, **wanted))


class ShellBolt(Described):
    """A bolt that is a program in any language."""

    @classmethod
    def spec(
        cls, name: str | None = None, command: Any = None, script: Any = None, **wanted: Any
    ) -> BoltSpec:
        """Describe its place in a topology."""
        return ShellBoltSpec(cls, name, command, script, **wanted)


class ShellSpout(Described):
    """A spout that is a program in any language."""

    @classmethod
    def spec(
        cls, name: str | None = None, command: Any = None, script: Any = None, **wanted: Any
    ) -> SpoutSpec:
        """Describe its place in a topology."""
        return ShellSpoutSpec(cls, name, command, script, **wanted)


class JavaBolt(Described):
    """A bolt that is a Java class: it can be described, and written as Flux, but not run here."""

    @classmethod
    def spec(cls, **wanted: Any) -> BoltSpec:
        """Describe its place in a topology."""
        return JavaBoltSpec(cls, **wanted)


class JavaSpout(Described):
    """A spout that is a Java class: it can be described, and written as Flux, but not run here."""

    @classmethod
    def spec(cls, **wanted: Any) -> SpoutSpec:
        """Describe its place in a topology."""
        return JavaSpoutSpec(cls, **wanted)


def python_object(cls: type) -> ComponentObject:
    """Describe a Python class as the program that runs it, as streamparse does."""
    return ComponentObject(ShellComponent("streamparse_run", f"{cls.__module__}.{cls.__name__}"))


def _shell(command: Any, script: Any) -> ComponentObject:
    if not command:
        text = "a shell component needs its command"
        raise ValueError(text)
    if script is None:
        text = "a shell component needs its script; '' for a command without arguments"
        raise TypeError(text)
    return ComponentObject(ShellComponent(command, script))


def _java(wanted: dict[str, Any]) -> ComponentObject:
    """Take what is Java's out of the arguments of ``spec``."""
    serialized = wanted.pop("serialized_java", None)
    name, arguments = wanted.pop("full_class_name", None), wanted.pop("args_list", None)
    if serialized is not None:
        if not isinstance(serialized, bytes):
            text = f"serialized_java is bytes; given: {serialized!r}"
            raise TypeError(text)
        return ComponentObject(serialized_java=serialized)
    if not name:
        text = "a Java component needs its full_class_name"
        raise ValueError(text)
    if arguments is None:
        text = "a Java component needs args_list; [] for a class without arguments"
        raise TypeError(text)
    for argument in arguments:
        if not isinstance(argument, bool | int | float | str | bytes):
            text = f"args_list takes numbers, strings, bytes and booleans; given: {argument!r}"
            raise TypeError(text)
    return ComponentObject(java_object=JavaObject(name, tuple(arguments)))
