"""From what was submitted to something that can run: the only place that loads users' files."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from thalweg.cli.loading import described, import_file, load_from, no_runs
from thalweg.errors import UsageError, explain
from thalweg.runtimes.local.runtime import Local
from thalweg.server.life import Program
from thalweg.storm import projects
from thalweg.storm.bounds import Bounds
from thalweg.storm.building import build
from thalweg.storm.compat import install
from thalweg.storm.settings import notes_of
from thalweg.storm_config import Configured, StormConfig, configured, read_config
from thalweg.topology import Topology

#: Modules of which a topology of Storm's world is made.
_STORM = ("streamparse", "pystorm", "thalweg.storm")
#: A topology, its configuration with Storm's keys, and what of it changes nothing.
_Described = tuple[Topology, Mapping[str, Any], Sequence[str]]


@dataclass(frozen=True)
class Loaded(Configured):
    """A program that can run."""

    #: Configuration of components of Storm's world, by which their modules log; None for others.
    storm: Mapping[str, Any] | None = None


def prepared(program: Program, checkpoint: Path, allowed: Sequence[Path] = ()) -> Loaded:
    """Load a program: a topology, this machine with its state kept, and what the run is told.

    Beside the file itself, only what is below the folders that are allowed has a say.
    """
    told = {} if program.config is None else read_config(program.config).values
    bounds = Bounds.around(Path(program.file), allowed)
    module = _imported(program, bounds)
    storm = True
    if module is not None and not _describes_storm(module, program):
        storm, (topology, values, notes) = False, _ours(module, program, told)
    else:
        topology, values, notes = _storm(module, program, bounds, told)
    config = StormConfig.of(values, program.config or program.file)
    made = configured(config, topology, Local(checkpoint=checkpoint), program.settings)
    given = {each.name: getattr(made, each.name) for each in fields(made)}
    given["notes"] = (*made.notes, *notes)
    return Loaded(**given, storm=values if storm else None)


def is_storm(path: Path) -> bool:
    """Say whether a file looks like one of Storm's world: Flux, or Python that imports it."""
    if path.suffix in projects.FLUX:
        return True
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # whoever loads it says so
        return False
    names = (f"{name}." for node in tree.body for name in _names(node))
    return any(name.startswith(f"{known}.") for name in names for known in _STORM)


def _names(node: ast.stmt) -> list[str]:
    """Name the modules that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module or ''}.{each.name}" for each in node.names]
    return [each.name for each in node.names] if isinstance(node, ast.Import) else []


def _imported(program: Program, bounds: Bounds) -> ModuleType | None:
    """Import a file, with what such files need; None for Flux."""
    path = Path(program.file)
    project = _project(path, bounds)
    if project is not None:
        projects.make_importable(path, project)
    elif find_spec("streamparse") is None:
        install()  # a module of the user's may need it
    if path.suffix in projects.FLUX:
        return None
    with no_runs():
        return import_file(path)


def _project(path: Path, bounds: Bounds) -> projects.Project | None:
    """Find the project of a file: another file of it may be what makes it one of Storm's world."""
    if is_storm(path):
        return projects.Project.around(path, bounds)
    try:
        found = projects.Project.around(path, bounds)
    except UsageError:  # a configuration of something else
        return None
    return found if found.config else None


def _describes_storm(module: ModuleType, program: Program) -> bool:
    """Say whether what is meant is a topology of Storm's world; one of ours comes first."""
    classes, name = projects.topology_classes(module), program.target
    if name is not None and hasattr(module, name):
        return name in classes
    return not described(module) and (bool(classes) or is_storm(Path(program.file)))


def _ours(module: ModuleType, program: Program, told: Mapping[str, Any]) -> _Described:
    for name in ("environment", "par", "serializer"):
        if given := getattr(program, name):
            expected = "a topology of streamparse, or a Flux file"
            hint = f"only these have --{name}"
            raise UsageError(
                explain(f"file {program.file!r}", f"--{name} {given}", expected, hint=hint)
            )
    with no_runs():
        made = load_from(module, Path(program.file), program.target, program.settings)
    return made, told, []


def _storm(
    module: ModuleType | None, program: Program, bounds: Bounds, told: Mapping[str, Any]
) -> _Described:
    path = Path(program.file)
    project = projects.Project.around(path, bounds)
    projects.make_importable(path, project)
    if module is None:
        plan = projects.plan_of_flux(path, project, program.settings)
    else:
        plan = projects.plan_of_module(module, path, program.target)
        given = projects.read_values(program.settings)
        StormConfig.of(given, "--set")  # says what is wrong with it
        told = {**told, **given}
    project.check_environment(program.environment, (part.par for part in plan.parts))
    hosting = project.hosting(program.environment, program.serializer, told)
    topology = build(plan, replace(hosting, degrees=program.par))
    return topology, {**plan.config, **hosting.config}, notes_of(plan)
