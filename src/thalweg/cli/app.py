"""The commands and their options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from thalweg import __version__
from thalweg.cli import (
    analyzing,
    benches,
    checking,
    describing,
    output,
    rebalancing,
    serving,
    state,
    storming,
    submitting,
)
from thalweg.cli.configuring import Given
from thalweg.cli.dashboards import LOOPBACK, Host, Port, show_recording, show_server
from thalweg.cli.demo import DemoOptions
from thalweg.cli.demo import demo as play_demo
from thalweg.cli.failures import reported
from thalweg.cli.histories import HistoryOptions, show_history
from thalweg.cli.loading import load
from thalweg.cli.overview import OneScreen
from thalweg.cli.querying import QueryOptions, query_topology, waits_for
from thalweg.cli.recording import write_report
from thalweg.cli.running import run_topology
from thalweg.cli.saying import say
from thalweg.cli.scaling import (
    RunScaleOptions,
    ScaleOptions,
    Wishes,
    compared,
    scaled,
)
from thalweg.cli.shown import Debug, Followed, Handed, Settings, Shown, Target, Timed
from thalweg.cli.spark_options import SPARK, SparkOptions, with_options, with_spark_options
from thalweg.cli.training import TrainOptions, train_table
from thalweg.config import setting
from thalweg.errors import UsageError
from thalweg.execution import DEFAULT, runtime_names

V = TypeVar("V")

app = typer.Typer(
    name="thalweg",
    cls=OneScreen,
    help="Stateful stream topologies in Python.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

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


@app.command(short_help="Run a topology until its sources end.")
@with_spark_options
@with_options(RunScaleOptions, "scaling")
@with_options(Timed, "shown")
@with_options(Given, "given")
def run(
    target: Target,
    on: Annotated[str | None, typer.Option(metavar="RUNTIME", help=_WHERE)] = None,
    *,
    given: Given,
    spark: SparkOptions,
    scaling: RunScaleOptions,
    shown: Timed,
) -> None:
    """Run a topology until its sources end; Ctrl-C stops it early and finishes cleanly."""
    with reported(shown.debug, shown.logs):
        quiet = shown.quiet or shown.logs
        runtime = scaling.applied(spark.runtime(on), shown.is_looked_at)
        made = given.apply(target, runtime, quiet)
        followed = shown.watchers
        run_topology(made.topology, made.on, made.arguments, quiet, shown.verbose, followed)


@app.command(short_help="Show what it can do: keys together, tasks that follow.")
@with_options(DemoOptions, "how")
def demo(debug: Debug = False, *, how: DemoOptions) -> None:
    """Run one stream by hash and locality-aware, on Spark and here, and say what was seen."""
    with reported(debug):
        play_demo(how)


@app.command()
@with_options(QueryOptions, "how")
@with_options(Followed, "shown")
def sql(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="SELECT ... FROM ... [WINDOW ...] [GROUP BY ...]")
    ],
    on: Annotated[str | None, typer.Option(metavar="RUNTIME", help=_WHERE)] = None,
    *,
    how: QueryOptions,
    shown: Followed,
) -> None:
    """Run a query on files and streams, and print its results."""
    with reported(shown.debug, shown.logs):
        topology, quiet = query_topology(query, how), shown.quiet or shown.logs
        runtime = SparkOptions().runtime(on)
        if not shown.quiet and (waits := waits_for(topology)):
            say(waits, shown.logs)
        run_topology(topology, runtime, {}, quiet, shown.verbose, shown.watchers)


@app.command(short_help="Run it with a scaling policy; show what others would do.")
@with_options(ScaleOptions, "how")
@with_options(Followed, "shown")
def scale(
    target: Target,
    policy: Annotated[
        str, typer.Option(metavar="POLICY", help="The scaling policy that leads.")
    ] = "thalweg",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done; degrees stay.")
    ] = False,
    settings: Settings = None,
    *,
    how: ScaleOptions,
    shown: Followed,
) -> None:
    """Run a topology here with a scaling policy, and show what every other one would have done."""
    with reported(shown.debug, shown.logs):
        given, wishes = _given(settings), Wishes()
        runtime = scaled(None, compared(how.scaling(policy, dry_run)))
        told, watchers = {"settings": given}, [*shown.watchers, wishes]
        quiet = shown.quiet or shown.logs
        run_topology(load(target, given), runtime, told, quiet, shown.verbose, watchers)
        if not shown.logs:
            wishes.summary()


@app.command(short_help="Learn degrees from a trace, for policy learning:FILE.")
@with_options(TrainOptions, "how")
def train(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE",
            help="Counts per interval, a number per line or a column of a CSV file; "
            "or what a run has kept with --history.",
        ),
    ],
    to: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the table goes (JSON).")
    ],
    debug: Debug = False,
    *,
    how: TrainOptions,
) -> None:
    """Learn which degrees were best at which rates, for scaling policy learning:FILE."""
    with reported(debug):
        train_table(trace, to, how)


@app.command(short_help="Run a topology on a cluster, through spark-submit.")
@with_options(submitting.SubmitOptions, "how")
@with_options(RunScaleOptions, "scaling")
@with_options(Handed, "shown")
@with_spark_options
def submit(
    target: Target,
    settings: Settings = None,
    *,
    spark: SparkOptions,
    shown: Handed,
    scaling: RunScaleOptions,
    how: submitting.SubmitOptions,
) -> None:
    """Run a topology on a cluster: thalweg run, handed to spark-submit."""
    with reported(shown.debug, shown.logs):
        given = [f"{key}={value}" for key, value in _given(settings).items()]
        flags = [f"--{option.name}" for option in fields(Shown) if getattr(shown, option.name)]
        scaling.applied(spark.runtime(SPARK))
        own = [*(word for pair in given for word in ("--set", pair)), *flags]
        own += [*scaling.words, *shown.words]
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


@app.command(
    short_help="Measure how fast Thalweg is on this machine.",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
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


@app.command(short_help="Report which locality a routing table could reach.")
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


@app.command(short_help="Let a run go on with other degrees or places.")
@with_options(rebalancing.PlaceOptions, "where")
def rebalance(
    state_at: state.State,
    degrees: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMPONENT=DEGREE", help="Degrees, on this machine."),
    ] = None,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait for the run.")
    ] = 60.0,
    debug: Debug = False,
    *,
    where: rebalancing.PlaceOptions,
) -> None:
    """Let a run go on with other degrees, or on Spark with other places; its state moves along."""
    request = where.request()
    if (request is None) != bool(degrees):
        text = "say either COMPONENT=DEGREE, or --places, --avoid or --everywhere"
        raise typer.BadParameter(text)
    asked = _pairs(rebalancing.degree, degrees or ())
    with reported(debug):
        if request is None:
            rebalancing.change_degrees(state_at, asked, patience)
        else:
            rebalancing.rebalance(state_at, request, patience)


@app.command(short_help="Let a run bring keys together that occur together.")
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
    """Let a run bring keys together that occur together, now; prints what it decides."""
    with reported(debug):
        rebalancing.reroute(state_at, always, patience)


@app.command(short_help="Write a recording as one page with plots.")
def report(
    file: Annotated[Path, typer.Argument(metavar="FILE.sqlite", help="What --record has kept.")],
    to: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.html", help="Without it, standard output."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Write what a run has recorded as one page with plots, which needs nothing else."""
    with reported(debug):
        write_report(file, to)


@app.command(short_help="Show a recording, or a server, on a web page.")
def ui(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE.sqlite]", help="What --record has kept.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar=serving.ROOT_VARIABLE,
            help="Without a file: the folder of the server to show.",
        ),
    ] = None,
    host: Host = LOOPBACK,
    port: Port = 0,
    debug: Debug = False,
) -> None:
    """Show a recording, or what a server runs, on a web page until Ctrl-C."""
    if file is None and root is None:
        text = f"expected FILE.sqlite, or the --root of a server (or {serving.ROOT_VARIABLE})"
        raise typer.BadParameter(text)
    source = context.get_parameter_source("root")  # a variable is there for other commands too
    if file is not None and source is not None and source.name == "COMMANDLINE":
        text = "--root: expected only without FILE.sqlite"
        raise typer.BadParameter(text)
    with reported(debug):
        if file is not None:
            show_recording(file, host, port)
        elif root is not None:
            show_server(root, host, port)


@app.command(short_help="Check this machine, and say what to do.")
def doctor(debug: Debug = False) -> None:
    """Check this machine: Python, Java, Spark, cores, memory, disk; say what to do."""
    with reported(debug):
        if not checking.show():
            raise typer.Exit(1)


@app.command()
@with_options(HistoryOptions, "shown")
def history(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What a run with a scaling policy has kept.")
    ],
    shown: HistoryOptions,
    debug: Debug = False,
) -> None:
    """Show which degrees were changed, or only wished, when, and why."""
    with reported(debug):
        show_history(file, shown)


@app.command(hidden=True)  # --version is on the first screen
def version() -> None:
    """Show the version."""
    _print_version(True)


app.add_typer(state.app, name="state")
app.add_typer(serving.app, name="server", short_help="Run several topologies, and keep them.")
app.add_typer(storming.app, name="storm")


def _given(settings: list[str] | None) -> dict[str, str]:
    return _pairs(setting, settings or ())


def _pairs(read: Callable[[str], tuple[str, V]], texts: Iterable[str]) -> dict[str, V]:
    """Read names with values; what is none is a mistake in the command."""
    try:
        return dict(map(read, texts))
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error


def main() -> None:
    """Run the command line."""
    output.prepare()
    app()
