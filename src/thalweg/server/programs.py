"""From what was submitted to something that can run: the only place that loads users' files."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from thalweg.cli.loading import import_file, load
from thalweg.errors import UsageError, explain
from thalweg.runtimes.local.runtime import Local
from thalweg.server.life import Program
from thalweg.storm import projects
from thalweg.storm.bounds import Bounds
from thalweg.storm.building import build
from thalweg.storm.settings import notes_of
from thalweg.storm_config import Configured, StormConfig, configured, read_config
from thalweg.topology import Topology

_STORM = {"streamparse", "pystorm"}
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
    path = Path(program.file)
    told = {} if program.config is None else read_config(program.config).values
    storm = is_storm(path)
    topology, values, notes = (
        _storm(program, Bounds.around(path, allowed), told) if storm else _ours(program, told)
    )
    config = StormConfig.of(values, program.config or program.file)
    made = configured(config, topology, Local(checkpoint=checkpoint), program.settings)
    given = {each.name: getattr(made, each.name) for each in fields(made)}
    given["notes"] = (*made.notes, *notes)
    return Loaded(**given, storm=values if storm else None)


def is_storm(path: Path) -> bool:
    """Say whether a file is one of Storm's world: Flux, or Python that imports streamparse."""
    if path.suffix in projects.FLUX:
        return True
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # whoever loads it says so
        return False
    return any(_STORM & _imported(node) for node in tree.body)


def _imported(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.ImportFrom):
        names = [node.module or ""]
    else:
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
    return {name.partition(".")[0] for name in names}


def _ours(program: Program, told: Mapping[str, Any]) -> _Described:
    for name in ("environment", "par", "serializer"):
        if given := getattr(program, name):
            expected = "a topology of streamparse, or a Flux file"
            hint = f"only these have --{name}"
            raise UsageError(
                explain(f"file {program.file!r}", f"--{name} {given}", expected, hint=hint)
            )
    target = program.file if program.target is None else f"{program.file}:{program.target}"
    return load(target, program.settings), told, []


def _storm(program: Program, bounds: Bounds, told: Mapping[str, Any]) -> _Described:
    path = Path(program.file)
    project = projects.Project.around(path, bounds)
    projects.make_importable(path, project)
    if path.suffix in projects.FLUX:
        plan = projects.plan_of_flux(path, project, program.settings)
    else:
        plan = projects.plan_of_module(import_file(path), path, program.target)
        given = projects.read_values(program.settings)
        StormConfig.of(given, "--set")  # says what is wrong with it
        told = {**told, **given}
    project.check_environment(program.environment, (part.par for part in plan.parts))
    hosting = project.hosting(program.environment, program.serializer, told)
    topology = build(plan, replace(hosting, degrees=program.par))
    return topology, {**plan.config, **hosting.config}, notes_of(plan)
