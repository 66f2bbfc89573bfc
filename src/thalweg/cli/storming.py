"""``thalweg storm``: topologies of Storm's Python world, streamparse's files and Flux."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
import yaml

from thalweg.cli.dashboards import FollowOptions
from thalweg.cli.failures import reported
from thalweg.cli.loading import import_file, split_target
from thalweg.cli.output import writing
from thalweg.cli.running import run_topology
from thalweg.cli.showing import error_console
from thalweg.cli.spark_options import SparkOptions, with_options
from thalweg.cli.watching import Seconds, ending
from thalweg.config import setting
from thalweg.errors import UsageError, explain
from thalweg.storm import projects
from thalweg.storm.building import ISOLATIONS, Hosting, Isolation, build, degree_in
from thalweg.storm.fluxing import flux_dict
from thalweg.storm.hosting import forwarded
from thalweg.storm.plans import Plan
from thalweg.storm.settings import notes_of
from thalweg.storm_config import StormConfig, configured

V = TypeVar("V")

app = typer.Typer(
    help="Run topologies of streamparse, and Flux files, without a JVM.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Target = Annotated[
    str,
    typer.Argument(
        metavar="FILE[:NAME]",
        help="A file with a streamparse topology (NAME is its class, where there are several), "
        "or a Flux file (.yaml); within a project the topology's name will do.",
        show_default=False,
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", metavar="NAME=VALUE", help="Flux: a value for ${NAME}."),
]


Environment = Annotated[
    str | None,
    typer.Option(
        "-e",
        "--environment",
        metavar="NAME",
        help="Which degrees, where par is a dictionary; and options of config.json.",
    ),
]


@dataclass(frozen=True)
class StormOptions:
    """How components run, and how long."""

    on: Annotated[
        str | None, typer.Option(metavar="RUNTIME", help="Where: local, inline or spark.")
    ] = None
    serializer: Annotated[
        str | None,
        typer.Option(
            "-s", "--serializer", metavar="NAME", help="For child processes: json, msgpack."
        ),
    ] = None
    par: Annotated[
        list[str] | None,
        typer.Option(
            "-p", "--par", metavar="COMPONENT=N", help="Degree of a component; may be repeated."
        ),
    ] = None
    environment: Environment = None
    config: Annotated[
        list[str] | None,
        typer.Option("--set-config", metavar="KEY=VALUE", help="Storm's configuration."),
    ] = None
    isolation: Annotated[
        str,
        typer.Option(
            metavar="HOW", help="auto: Python inside the run, where safe; process: in children."
        ),
    ] = "auto"
    seconds: Seconds = None

    def hosting(self, project: projects.Project) -> Hosting:
        """Check the options of components."""
        config = projects.read_values(_pairs(setting, self.config or ()))
        StormConfig.of(config, "--set-config")  # says what is wrong with it
        return replace(
            project.hosting(self.environment, self.serializer, config),
            isolation=_isolation(self.isolation),
            degrees=_pairs(_degree, self.par or ()),
        )


@dataclass(frozen=True)
class Shown:
    """How much of a run is shown."""

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")] = (
        False
    )
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show the longest queues.")
    ] = False
    debug: Debug = False


@app.command()
@with_options(StormOptions, "how")
@with_options(FollowOptions, "kept")
@with_options(Shown, "shown")
def run(
    target: Target,
    properties: Properties = None,
    *,
    how: StormOptions,
    kept: FollowOptions,
    shown: Shown,
) -> None:
    """Run a streamparse topology or a Flux file."""
    with reported(shown.debug, kept.logs):
        path, name = _target(target)
        project = projects.Project.around(path)
        plan = _plan(path, name, project, _pairs(setting, properties or ()))
        project.check_environment(how.environment, (part.par for part in plan.parts))
        hosting = how.hosting(project)
        told = StormConfig.of({**plan.config, **hosting.config}, str(path))
        made = configured(told, build(plan, hosting), SparkOptions().runtime(how.on))
        quiet = shown.quiet or kept.logs
        if not quiet:
            _print_notes(path, (*made.notes, *notes_of(plan)), told)
        watchers = [*kept.watchers, *ending(how.seconds)]
        with nullcontext() if quiet else forwarded(told.values, _print_log):
            run_topology(made.topology, made.on, made.arguments, quiet, shown.verbose, watchers)


@app.command()
def flux(target: Target, environment: Environment = None, debug: Debug = False) -> None:
    """Print a streamparse topology as Flux YAML."""
    with reported(debug):
        path, name = _target(target)
        project = projects.Project.around(path)
        module = _module(path, project)
        chosen = projects.chosen_class(module, path, name)
        try:
            told = flux_dict(chosen, name or path.stem)
        except TypeError as error:
            raise UsageError(str(error)) from error
        parts = [*told["spouts"], *told.get("bolts", ())]
        project.check_environment(environment, (part["parallelism"] for part in parts))
        chosen = project.environment(environment)
        for part in parts:
            par, named = part["parallelism"], environment is not None
            part["parallelism"] = degree_in(chosen, par, part["id"], named)
        with writing():
            typer.echo(yaml.safe_dump(told, sort_keys=False), nl=False)


def _target(text: str) -> tuple[Path, str | None]:
    path, name = split_target(text)
    return projects.find(path), name


def _print_notes(path: Path, notes: Iterable[str], config: StormConfig) -> None:
    """Say which keys change nothing; those that are none of Storm's are for components."""
    for note in notes:
        if note.partition(":")[0] not in config.own:
            error_console().print(f"{path}: {note}", markup=False, soft_wrap=True)


def _print_log(text: str) -> None:
    error_console().print(text, markup=False, highlight=False, soft_wrap=True)


def _plan(
    path: Path, name: str | None, project: projects.Project, properties: Mapping[str, str]
) -> Plan:
    if path.suffix in projects.FLUX:
        projects.make_importable(path, project)
        return projects.plan_of_flux(path, project, properties)
    if properties:
        subject, expected = f"--property {', '.join(properties)}", "a Flux file"
        hint = "--set-config gives values to components"
        raise UsageError(explain(subject, "", expected, str(path), hint))
    return projects.plan_of_module(_module(path, project), path, name)


def _module(path: Path, project: projects.Project) -> Any:
    projects.make_importable(path, project)
    return import_file(path)


def _isolation(text: str) -> Isolation:
    for known in ISOLATIONS:
        if text == known:
            return known
    raise UsageError(explain("--isolation", expected=f"one of {ISOLATIONS}", got=repr(text)))


def _degree(text: str) -> tuple[str, int]:
    name, value = setting(text)
    if not value.isdecimal() or int(value) < 1:
        raise UsageError(explain(f"--par {text}", expected="COMPONENT=N, N 1 or more"))
    return name, int(value)


def _pairs(read: Callable[[str], tuple[str, V]], texts: Iterable[str]) -> dict[str, V]:
    return dict(map(read, texts))
