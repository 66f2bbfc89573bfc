"""``thalweg scale``, and scaling in other commands: who decides about degrees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, ClassVar

import typer

from thalweg.cli.showing import error_console, print_table, rows_table
from thalweg.cli.spark_options import LOCAL
from thalweg.cli.watching import Begun, Listener
from thalweg.control.scaling.policies import NAMES, POLICIES
from thalweg.control.scaling.settings import Scaling
from thalweg.events import Decided, Event
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.spark.runtime import Spark

#: What can be written for a policy.
POLICY_NAMES = ", ".join([*NAMES, "learning:FILE"])

#: What a topology is run on.
Runtime = str | Spark | Local | None


@dataclass(frozen=True)
class ScaleOptions:
    """How degrees follow the stream; each field is an option of the command."""

    history: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep samples and decisions, for thalweg history."),
    ] = None
    most: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="The highest degree, or number of places."),
    ] = None
    speed: Annotated[
        float | None,
        typer.Option(metavar="N", help="Divide all seconds that policies go by; 1 without it."),
    ] = None

    loss: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="What sources may give up where the highest degrees do not do."
        ),
    ] = None

    slots: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Tasks that all components may have together."),
    ] = None

    def scaling(self, policy: str, dry_run: bool = False) -> Scaling:
        """Give the settings for a policy."""
        speed = 1.0 if self.speed is None else self.speed
        how = Scaling(policy, self.most, self.history, speed, self.loss, dry_run)
        return replace(how, slots=self.slots)


@dataclass(frozen=True)
class RunScaleOptions(ScaleOptions):
    """The same for a command that does not scale unless it is told to."""

    scale: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help=f"Let degrees or places follow the stream (local, spark): {POLICY_NAMES}.",
        ),
    ] = None

    @property
    def words(self) -> list[str]:
        """Give these options as they are written.

        >>> RunScaleOptions(scale="ds2", most=4).words
        ['--most', '4', '--scale', 'ds2']
        """
        given = {option.name: getattr(self, option.name) for option in fields(self)}
        pairs = ((f"--{name}", str(value)) for name, value in given.items() if value is not None)
        return [word for pair in pairs for word in pair]

    def applied(self, on: Runtime, compares: bool = False) -> Runtime:
        """Let what is run on follow a policy; degrees are tasks of executors then.

        ``compares`` says whether the other policies are asked as well, for those who look on.
        """
        own = [option.name for option in fields(ScaleOptions)]
        given = [name for name in own if getattr(self, name) is not None]
        if self.scale is None and given:
            text = f"--{given[0]}: expected only together with --scale"
            raise typer.BadParameter(text)
        if self.scale is None:
            return on
        how = self.scaling(self.scale)
        return scaled(on, compared(how) if compares else how)


def scaled(on: Runtime, how: Scaling) -> Local | Spark:
    """Give a runtime with a policy; without any, the local one."""
    if isinstance(on, Spark):
        return replace(on, scaling=how)
    if on in (None, LOCAL):
        on = Local()
    if not isinstance(on, Local):
        text = "--scale: expected only together with --on local or spark"
        raise typer.BadParameter(text)
    return replace(on, scaling=how, assigning="executors")


def compared(how: Scaling) -> Scaling:
    """Ask all other policies as well.

    >>> compared(Scaling("ds2")).beside
    ('thalweg', 'static', 'incremental', 'learning', 'autoscale', 'autoscale+')
    """
    leading = how.leading.name
    return replace(how, beside=tuple(name for name in POLICIES if name != leading))


@dataclass
class Wishes:
    """Shows what each policy would do, whenever that changes, and sums up at the end."""

    #: Degrees wanted, by component and policy, one for each look; and those in force.
    wanted: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    in_force: dict[str, list[int]] = field(default_factory=dict)
    _shown: dict[str, str] = field(default_factory=dict)
    #: When the first look was, and the last.
    _begin: float | None = None
    _time: float = 0.0
    #: It only looks on.
    steers: ClassVar[bool] = False

    @contextmanager
    def watch(self, run: Begun) -> Iterator[Listener]:
        """Hear what policies decide."""

        def hear(event: Event) -> None:
            if isinstance(event, Decided):
                self._hear(event, run.say)

        yield hear

    def _hear(self, event: Decided, say: Callable[[str], None]) -> None:
        leading = next(iter(next(iter(self.wanted.values()), {event.policy: []})))
        self._begin = event.time if self._begin is None else self._begin
        if event.policy == leading:
            self._show(say)  # the last look, of which all have told by now
            self._time = event.time - self._begin
        for component, (before, degree) in event.degrees.items():
            self.wanted.setdefault(component, {}).setdefault(event.policy, []).append(degree)
            if event.policy == leading:
                self.in_force.setdefault(component, []).append(before)

    def _show(self, say: Callable[[str], None]) -> None:
        for component, policies in self.wanted.items():
            wishes = ", ".join(f"{name} {degrees[-1]}" for name, degrees in policies.items())
            line = f"{component} has {self.in_force[component][-1]}: {wishes}"
            if self._shown.get(component) != line:
                self._shown[component] = line
                say(f"{self._time:.1f} s  {line}")

    def summary(self) -> None:
        """Print which degrees each policy wanted over the run."""
        rows = [
            {"component": component, "in force": _range(self.in_force[component])}
            | {name: _range(degrees) for name, degrees in policies.items()}
            for component, policies in self.wanted.items()
        ]
        if rows:
            print_table(error_console(), rows_table(rows))
        else:
            error_console().print("the run was too short: no policy has looked at it")


def _range(degrees: list[int]) -> str:
    """Say between what degrees were, and their mean.

    >>> _range([1, 1, 4]), _range([2, 2])
    ('1-4 (2.0)', '2')
    """
    low, high = min(degrees), max(degrees)
    return str(low) if low == high else f"{low}-{high} ({fmean(degrees):.1f})"
