"""Arguments and options that several commands have: what to run, and how much of it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from thalweg.cli.dashboards import FollowOptions
from thalweg.cli.recording import RecordOptions
from thalweg.cli.watching import Seconds, Watcher, ending

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


@dataclass(frozen=True)
class Shown:
    """How much of a run is shown."""

    quiet: Quiet = False
    verbose: Verbose = False
    debug: Debug = False


@dataclass(frozen=True)
class Followed(FollowOptions, Shown):
    """What is shown and kept of a run that a command starts itself."""


@dataclass(frozen=True)
class Timed(Followed):
    """The same of a run that may end after a while."""

    seconds: Seconds = None

    @property
    def watchers(self) -> list[Watcher]:
        """Give those who follow the run, and what ends it."""
        return [*super().watchers, *ending(self.seconds)]


@dataclass(frozen=True)
class Handed(RecordOptions, Shown):
    """The same of a run that another program starts."""
