"""From ``FILE[:NAME]`` to a topology: imports the user's file and finds what it describes."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from thalweg import execution
from thalweg.builder import TopologyBuilder
from thalweg.cli.failures import user_error
from thalweg.errors import UsageError, explain, meant, shorten
from thalweg.flow import Flow
from thalweg.storm.projects import is_topology, topology_classes
from thalweg.topology import Topology

#: Looked for, in this order, when a file holds several topologies.
USUAL_NAMES = ("flow", "topology", "builder", "main")

Described = Flow | TopologyBuilder | Topology
_WANTED = "a Flow, TopologyBuilder or Topology"
_STORM = "a topology of streamparse is run by: thalweg storm run"


def load(target: str, settings: Mapping[str, str]) -> Topology:
    """Load a file and build the topology that it describes."""
    path, name = split_target(target)
    with no_runs():
        return load_from(import_file(path), path, name, settings)


def load_from(
    module: ModuleType, path: Path, name: str | None, settings: Mapping[str, str]
) -> Topology:
    """Build the topology that a module which was imported describes."""
    chosen = name or _only_name(module, path)
    if not hasattr(module, chosen):
        raise _no_such_name(module, path, chosen)
    return _build(getattr(module, chosen), f"{path}:{chosen}", settings)


def split_target(target: str) -> tuple[Path, str | None]:
    """Split ``FILE[:NAME]``; a file whose own name has a colon is found as well.

    >>> split_target("examples/trending.py:flow")
    (PosixPath('examples/trending.py'), 'flow')
    """
    file, colon, name = target.rpartition(":")
    if colon and name.isidentifier() and not Path(target).exists():
        return Path(file), name
    return Path(target), None


def check_file(path: Path) -> None:
    """Refuse a file that is not there, and say which one may be meant."""
    if path.is_file():
        return
    got, hint = "no such file", "a relative path starts at the current folder"
    folder = path if path.is_dir() else path.parent
    names = sorted(each.name for each in folder.glob("*.py")) if folder.is_dir() else []
    if path.is_dir():
        got = "a folder"
        hint = f"name a file in it: {path / names[0]}" if names else "name a Python file"
    else:
        hint = meant(path.name, names, show=lambda near: str(folder / near)) or hint
    raise UsageError(explain(f"file {str(path)!r}", "", "a Python file", got, hint))


def import_file(path: Path) -> ModuleType:
    """Import a file as ``python FILE`` would, but not as ``__main__``."""
    check_file(path)
    # By its location, so that it has a __file__: runtimes ship the code of such modules.
    spec = importlib.util.spec_from_file_location(_module_name(path), loader=_loader(path))
    assert spec is not None  # noqa: S101 (there is a loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    with _explained(path):
        assert spec.loader is not None  # noqa: S101 (given above)
        spec.loader.exec_module(module)
    return module


def _loader(path: Path) -> importlib.machinery.SourceFileLoader:
    # Named outright, because the file's name need not end in .py.
    return importlib.machinery.SourceFileLoader(_module_name(path), str(path.resolve()))


def _module_name(path: Path) -> str:
    """Name the module after its file, unless that would hide a module that others need."""
    name = path.stem
    taken = name in sys.stdlib_module_names or name in sys.modules
    return f"{name}__user" if taken or not name.isidentifier() else name


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn whatever a user's file raises into an error that names its file and line."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        text = explain(f"file {str(path)!r}", expected="a description", got="sys.exit()")
        raise UsageError(text) from error
    except Exception as error:
        raise user_error(error, path) from error


@contextmanager
def no_runs() -> Iterator[None]:
    """Refuse runs that a file starts by itself; the command would run it a second time."""

    def refuse(*_arguments: Any, **_more: Any) -> execution.Result:
        raise UsageError(
            explain(
                "a run while the file is loaded",
                expected="only a description",
                hint='put .run() under: if __name__ == "__main__":',
            )
        )

    run, execution.run = execution.run, refuse
    try:
        yield
    finally:
        execution.run = run


def _only_name(module: ModuleType, path: Path) -> str:
    """Find the one name that is meant when none is given."""
    found = _candidates(module)
    if len(found) == 1:
        return found[0]
    for name in USUAL_NAMES:
        if name in found:
            return name
    if found:
        raise UsageError(
            explain(
                f"file {str(path)!r}",
                expected="one topology",
                got=f"{len(found)}: {', '.join(found)}",
                hint=f"say which one: {path}:{found[0]}",
            )
        )
    raise UsageError(
        explain(
            f"file {str(path)!r}",
            expected=_WANTED,
            got="none",
            hint=_way_to_name(module, path),
        )
    )


def _way_to_name(module: ModuleType, path: Path) -> str:
    """Say how to make a topology known; a function that may give one is named."""
    if topology_classes(module):
        return f"{_STORM} {path}"
    functions = [name for name, value in vars(module).items() if _may_give(value, module)]
    if not functions:
        return "hold it in a variable, or return it from a function called main"
    name = functions[-1]
    return f"does {name}() return it? annotate it -> tw.Flow, or name it: {path}:{name}"


def _may_give(value: object, module: ModuleType) -> bool:
    if not isinstance(value, FunctionType) or value.__module__ != module.__name__:
        return False
    return not value.__name__.startswith("_") and not _unknown_needs(value)


def _candidates(module: ModuleType) -> list[str]:
    """Name the variables and annotated functions that give a topology; else functions by name."""
    usual = [n for n in USUAL_NAMES if isinstance(vars(module).get(n), FunctionType)]
    return described(module) or usual


def described(module: ModuleType) -> list[str]:
    """Name the variables and annotated functions of a module that give a topology."""
    found: dict[int, str] = {}
    for name, value in vars(module).items():
        if not name.startswith("_") and (isinstance(value, Described) or _gives(value, module)):
            found.setdefault(id(value), name)
    return list(found.values())


def _gives(value: object, module: ModuleType) -> bool:
    if not isinstance(value, FunctionType) or value.__module__ != module.__name__:
        return False
    try:
        returned = inspect.signature(value, eval_str=True).return_annotation
    except (NameError, AttributeError, TypeError, SyntaxError):
        return False
    return isinstance(returned, type) and issubclass(returned, Described)


def _build(value: object, where: str, settings: Mapping[str, str]) -> Topology:
    if isinstance(value, FunctionType):
        value = _called(value, where, settings)
    if not isinstance(value, Described):
        hint = f"{_STORM} {where}" if is_topology(value) else ""
        raise UsageError(explain(where, expected=_WANTED, got=shorten(value, 80), hint=hint))
    return value if isinstance(value, Topology) else value.build()


def _called(function: Callable[..., object], where: str, settings: Mapping[str, str]) -> object:
    if _unknown_needs(function):
        raise UsageError(
            explain(
                f"function {where}",
                expected="no required parameters but 'settings'",
                got=f"({', '.join(_needs(function))})",
            )
        )
    takes_settings = "settings" in inspect.signature(function).parameters
    with _explained(Path(where)):
        return function(settings=dict(settings)) if takes_settings else function()


def _needs(function: Callable[..., object]) -> list[str]:
    """Name the parameters without which a function cannot be called."""
    parameters = inspect.signature(function).parameters.values()
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in optional]


def _unknown_needs(function: Callable[..., object]) -> list[str]:
    return [name for name in _needs(function) if name != "settings"]


def _no_such_name(module: ModuleType, path: Path, name: str) -> UsageError:
    known = _candidates(module)
    return UsageError(
        explain(
            f"name {name!r}",
            f"file {str(path)!r}",
            f"one of {known}" if known else _WANTED,
            "a name that is not there",
            meant(name, known),
        )
    )
