"""The commands and their options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from thalweg import __version__
from thalweg.cli import (
    analyzing,
    benches,
    describing,
    output,
    rebalancing,
    scaling,
    state,
    submitting,
)
from thalweg.cli.failures import reported
from thalweg.cli.loading import load
from thalweg.cli.running import run_topology
from thalweg.cli.spark_options import SparkOptions, with_options, with_spark_options
from thalweg.config import setting
from thalweg.errors import UsageError
from thalweg.execution import DEFAULT, runtime_names
from thalweg.statelog.requests import Request

app = typer.Typer(
    name="thalweg",
    help="Stateful stream topologies in Python.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Target = Annotated[
    str,
    typer.Argument(
        metavar="FILE[:NAME]",
        help="A Python file; NAME is a Flow, TopologyBuilder or Topology in it, "
        "or a function that returns one. It may be left out when there is only one.",
        show_default=False,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A value for the program; may be repeated."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Also show the longest queues, and what workers chose."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]

_WHERE = f"Where: {', '.join(runtime_names())}; without it {DEFAULT}, all cores of this machine."


def _print_version(wanted: bool) -> None:
    if wanted:
        with reported(debug=False), output.writing():
            typer.echo(f"thalweg {__version__}")
        raise typer.Exit


@app.callback()
def _thalweg(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    del version  # its callback has done everything


@app.command()
def version() -> None:
    """Show the version."""
    _print_version(True)


@dataclass(frozen=True)
class Shown:
    """How much of a run is shown."""

    quiet: Quiet = False
    verbose: Verbose = False


@app.command()
@with_spark_options
@with_options(Shown, "shown")
def run(
    target: Target,
    on: Annotated[str | None, typer.Option(metavar="RUNTIME", help=_WHERE)] = None,
    settings: Settings = None,
    debug: Debug = False,
    *,
    spark: SparkOptions,
    shown: Shown,
) -> None:
    """Run a topology until its sources end; Ctrl-C stops it early and finishes cleanly."""
    with reported(debug):
        given, runtime = _given(settings), spark.runtime(on)
        run_topology(load(target, given), runtime, given, shown.quiet, shown.verbose)


@app.command()
@with_options(submitting.SubmitOptions, "how")
@with_spark_options
def submit(
    target: Target,
    settings: Settings = None,
    quiet: Quiet = False,
    debug: Debug = False,
    *,
    spark: SparkOptions,
    how: submitting.SubmitOptions,
) -> None:
    """Run a topology on a cluster: thalweg run, handed to spark-submit."""
    with reported(debug):
        given = [f"{key}={value}" for key, value in _given(settings).items()]
        flags = [flag for flag, on in (("--quiet", quiet), ("--debug", debug)) if on]
        own = [*(word for pair in given for word in ("--set", pair)), *flags]
        if code := submitting.submit(target, own, spark, how):
            raise typer.Exit(code)


@app.command()
def describe(
    target: Target,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart.")] = False,
    svg: Annotated[bool, typer.Option("--svg", help="Print an SVG picture.")] = False,
    to: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write it to a file; .svg, .mmd or .md choose what is drawn.",
        ),
    ] = None,
    settings: Settings = None,
    debug: Debug = False,
) -> None:
    """Show the components of a topology, and what flows between them."""
    if mermaid and svg:
        raise typer.BadParameter("--mermaid and --svg exclude each other")  # noqa: EM101 (usage)
    with reported(debug):
        kind = "mermaid" if mermaid else "svg" if svg else describing.kind_for(to)
        describing.show(load(target, _given(settings)), kind, to)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Which one; without it they are listed.")
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all results to a file.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, to try it out.")] = False,
    debug: Debug = False,
) -> None:
    """Measure how fast Thalweg is on this machine; some measurements have options of their own."""
    with reported(debug):
        if name is None:
            benches.list_benches()
        else:
            benches.run_bench(name, json, quick, context.args)


@app.command()
@with_options(analyzing.AnalyzeOptions, "how")
def analyze(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="Files, a folder or a pattern: CSV, TSV, JSON lines, Parquet."
        ),
    ],
    keys: Annotated[
        str,
        typer.Option(metavar="K1,K2[,K3]", help="Key fields in the order of the stream; K1:int."),
    ],
    debug: Debug = False,
    *,
    how: analyzing.AnalyzeOptions,
) -> None:
    """Report which locality routing by table could reach on data, and write such a table."""
    with reported(debug):
        analyzing.analyze(data, keys, how)


@app.command()
def rebalance(
    state_at: state.State,
    places: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="How many places from now on.")
    ] = None,
    avoid: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="A host that is to hold no place; may be repeated."),
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Use hosts again that were to be avoided.")
    ] = False,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait for the run.")
    ] = 60.0,
    debug: Debug = False,
) -> None:
    """Let a run on Spark go on with other places; its state moves along."""
    if places is None and not avoid and not everywhere:
        raise typer.BadParameter("say --places, --avoid or --everywhere")  # noqa: EM101 (usage)
    avoided = tuple(avoid) if avoid else () if everywhere else None
    with reported(debug):
        rebalancing.rebalance(state_at, Request(places, avoided), patience)


@app.command()
def reroute(
    state_at: state.State,
    always: Annotated[
        bool, typer.Option("--always", help="Also when it hardly pays to move the state.")
    ] = False,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait for the run.")
    ] = 60.0,
    debug: Debug = False,
) -> None:
    """Let a run on Spark bring keys together that occur together, now; prints what it decides."""
    with reported(debug):
        rebalancing.reroute(state_at, always, patience)


@app.command()
def history(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What a run with a scaling policy has kept.")
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Decisions for no change as well.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Show which degrees were changed, when, and why."""
    with reported(debug):
        scaling.show_history(file, everything)


app.add_typer(state.app, name="state")


def _given(settings: list[str] | None) -> dict[str, str]:
    try:
        return dict(map(setting, settings or ()))
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error


def main() -> None:
    """Run the command line."""
    output.prepare()
    app()
