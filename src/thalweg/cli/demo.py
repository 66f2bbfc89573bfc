"""``thalweg demo``: the same stream by hash and locality-aware, on Spark and here."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from thalweg.cli.demo_showing import Hall, show
from thalweg.cli.running import stop_on_interrupt
from thalweg.cli.showing import error_console
from thalweg.cli.spark_session import started
from thalweg.dashboard.hub import Hub
from thalweg.demo.data import Data, made_up, of_file
from thalweg.demo.phases import CONFIG, FAST, FULL, MASTER, PHASES, Phase
from thalweg.demo.playing import Continued, Played, Stage
from thalweg.demo.reporting import about, demo_page
from thalweg.errors import UsageError, explain
from thalweg.execution import Steering
from thalweg.runtimes.spark.runtime import Spark

REPORT = Path("thalweg-demo.html")
#: Records that are made up; a longer stream begins anew with them.
_ROWS = 300_000


@dataclass(frozen=True)
class DemoOptions:
    """What the demo shows; each field is an option of the command."""

    fast: Annotated[bool, typer.Option("--fast", help="A shorter stream.")] = False
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Records of yours: CSV, JSON lines or Parquet."),
    ] = None
    keys: Annotated[
        str | None, typer.Option(metavar="A,B", help="With --data: the two columns to count by.")
    ] = None
    report: Annotated[
        Path, typer.Option(metavar="FILE.html", help="Where the page with plots goes.")
    ] = REPORT
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the records made up.")] = 1

    def records(self) -> Data:
        """Read or make the records."""
        if (self.data is None) != (self.keys is None):
            text = "--data and --keys: expected both or none"
            raise typer.BadParameter(text)
        if self.data is None or self.keys is None:
            return made_up(_ROWS, self.seed)
        return of_file(self.data, self.keys)


def demo(options: DemoOptions) -> None:
    """Play all phases, and sum up."""
    _check_writable(options.report)
    data, stop = options.records(), threading.Event()
    size = FAST if options.fast else FULL
    with ExitStack() as stack:
        stack.enter_context(stop_on_interrupt(stop))
        hub, folder = Hub(), Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = stack.enter_context(_page(hub, stop))
        hall = stack.enter_context(Hall(error_console()))
        hall.shows(address)
        hall.say(about(data))
        stage = Stage(data, size, folder, hub, stop, hall, Continued())
        played = [*_on_spark(stage, hall), *stage.play(_of("local"))]
        page = demo_page(data, played) if played else ""
    if stop.is_set():
        hall.say("stopped early: what was cut off is left out")
    if played:
        try:
            _write(options.report, page)
        except UsageError:
            show(played)  # what took minutes is not lost
            raise
        show(played, options.report)


def _on_spark(stage: Stage, hall: Hall) -> Sequence[Played]:
    """Play the phases on Spark, where there is one: all of them in one session."""
    try:
        hall.waits("Spark")
        with (
            started(Spark(master=MASTER, config=dict(CONFIG)), "demo", hall.say) as spark,
            stop_on_interrupt(stage.stop),  # once more: Spark brings a handler of its own
        ):
            stage.warm(spark.session)
            return list(stage.play(_of("spark"), spark.session))
    except UsageError as error:
        hall.say(f"without Spark, because: {error}\nthalweg doctor says what to do")
        return ()


def _of(runtime: str) -> tuple[Phase, ...]:
    return tuple(phase for phase in PHASES if phase.runtime == runtime)


@contextmanager
def _page(hub: Hub, stop: threading.Event) -> Iterator[str]:
    """Show all phases on one page; gives its address."""
    from thalweg.dashboard.actions import Actions  # noqa: PLC0415 (a web server)
    from thalweg.dashboard.serving import Dashboard  # noqa: PLC0415 (a web server)

    actions: Any = Actions(Steering(), stop, ("kill",), several=True)
    with Dashboard(hub, actions=actions) as dashboard:
        yield dashboard.address


def _check_writable(path: Path) -> None:
    """Find out now, not in the end."""
    if path.is_dir() or not path.parent.is_dir():
        got = "a folder" if path.is_dir() else f"no folder {str(path.parent)!r}"
        hint = "--report names a file in a folder that is there"
        raise UsageError(explain(f"report {str(path)!r}", "", "a file to write", got, hint))
    place = path if path.exists() else path.parent
    if not os.access(place, os.W_OK):
        got = f"no right to change {str(place)!r}"
        raise UsageError(explain(f"report {str(path)!r}", "", "a file to write", got))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        got = error.strerror or str(error)
        raise UsageError(explain(f"report {str(path)!r}", "", "to be written", got)) from error
