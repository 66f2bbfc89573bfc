"""Options of ``thalweg run`` that only make sense on Spark, as one value."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from typing import Annotated, Any, cast

import typer

from thalweg.control.learning import Locality
from thalweg.errors import UsageError, explain
from thalweg.runtimes.local.runtime import Local
from thalweg.runtimes.spark.deploying import AUTHENTICATE
from thalweg.runtimes.spark.runtime import Spark
from thalweg.runtimes.spark.session import submitted
from thalweg.runtimes.spark.settings import Executors, Kafka

SPARK, LOCAL = "spark", "local"
# Options that the local runtime has as well.
_ALSO_LOCAL = ("checkpoint", "table", "locality")
_DEFAULT_MASTER = "local[*]"


@dataclass(frozen=True)
class SparkOptions:
    """How to run on Spark; each field is an option of the command.

    >>> SparkOptions(checkpoint="shop/").runtime("spark").state
    'shop/state'
    >>> SparkOptions(executors="elastic").runtime("spark").executors
    'elastic'
    >>> SparkOptions(checkpoint="shop/").runtime(None).checkpoint
    'shop/'
    """

    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help=f"Spark's master; without it {_DEFAULT_MASTER}."),
    ] = None
    places: Annotated[
        int | None,
        typer.Option(metavar="N", help="Spark: where tasks run and keep state; else one per core."),
    ] = None
    trigger: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help='Spark: time between two batches, as "1 second", or available-now to end '
            "when all that is there now has been read.",
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="Keep state, and how far sources were read, in this folder, to go on from there "
            "(on spark and local).",
        ),
    ] = None
    state: Annotated[
        str | None,
        typer.Option(metavar="URI", help="Spark: keep state here, not in the checkpoint."),
    ] = None
    executors: Annotated[
        str | None,
        typer.Option(
            metavar="fixed|elastic",
            help="Spark: elastic asks the cluster for as many executors as the places need.",
        ),
    ] = None
    kafka: Annotated[
        str | None,
        typer.Option(
            metavar="driver|connector",
            help="Spark: connector reads topics at the places, with spark-sql-kafka-0-10.",
        ),
    ] = None
    table: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Begin with the places of thalweg analyze (spark, local)."
        ),
    ] = None
    locality: Annotated[
        str | None,
        typer.Option(
            metavar="off|ask|auto|TIME",
            help="Bring keys together that occur together (spark, local); auto decides every "
            "minute, ask waits for thalweg reroute.",
        ),
    ] = None
    insecure: Annotated[
        bool | None,
        typer.Option(
            "--insecure", help="Spark: use a cluster that does not ask who sends it code."
        ),
    ] = None

    def runtime(self, on: str | None) -> str | Spark | Local | None:
        """Give what to run on: a runtime with these options, or whatever was named."""
        if on == SPARK:
            return self._spark()
        here = on in (None, LOCAL)
        options = [f.name for f in fields(self) if getattr(self, f.name) is not None]
        refused = [name for name in options if not (here and name in _ALSO_LOCAL)]
        if refused:
            where = f"{SPARK} or {LOCAL}" if set(refused) <= {*_ALSO_LOCAL} else SPARK
            text = f"{_listed(refused)}: expected only together with --on {where}"
            raise typer.BadParameter(text)
        if not options:
            return on
        learning = _locality(self.locality)
        return Local(checkpoint=self.checkpoint, table=self.table, locality=learning)

    def _spark(self) -> Spark:
        if self.master and submitted():
            hint = "spark-submit has been told the master"
            raise UsageError(explain("--master", "", "none under spark-submit", self.master, hint))
        folder = self.checkpoint.rstrip("/") if self.checkpoint else None
        return Spark(
            master=self.master or _DEFAULT_MASTER,
            places=self.places,
            trigger=self.trigger,
            checkpoint=f"{folder}/offsets" if folder else None,
            state=self.state or (f"{folder}/state" if folder else None),
            table=self.table,
            locality=_locality(self.locality),
            executors=cast("Executors", self.executors or "fixed"),
            kafka=cast("Kafka", self.kafka or "driver"),
            config={AUTHENTICATE: "false"} if self.insecure else {},
        )


def _listed(options: list[str]) -> str:
    given = [f"--{name}" for name in options]
    return given[-1] if len(given) == 1 else f"{', '.join(given[:-1])} and {given[-1]}"


def with_options(
    kind: type[Any], parameter: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take the fields of a dataclass as options, and get them as one parameter."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def gathering(**arguments: Any) -> None:
            given = {field.name: arguments.pop(field.name) for field in fields(kind)}
            command(**arguments, **{parameter: kind(**given)})

        own = inspect.signature(command, eval_str=True).parameters.values()
        hints = typing.get_type_hints(kind, include_extras=True)
        added = [
            inspect.Parameter(f.name, _BY_NAME, default=_default(f), annotation=hints[f.name])
            for f in fields(kind)
        ]
        shown = [p.replace(kind=_BY_NAME) for p in own if p.name != parameter]
        gathering.__signature__ = inspect.Signature([*shown, *added])  # type: ignore[attr-defined] # read by typer
        gathering.__annotations__ = {p.name: p.annotation for p in (*shown, *added)}
        return gathering

    return decorate


def _default(option: Field[Any]) -> Any:
    return inspect.Parameter.empty if option.default is MISSING else option.default


_BY_NAME = inspect.Parameter.KEYWORD_ONLY
with_spark_options = with_options(SparkOptions, "spark")


def _locality(given: str | None) -> Locality | None:
    """Read how keys are to be brought together."""
    if given in (None, "off"):
        return None
    if given == "auto":
        return Locality()
    try:
        return Locality(every=None if given == "ask" else given)
    except UsageError:
        expected = "off, ask, auto, or a time such as '10 min'"
        raise UsageError(explain("--locality", "", expected, repr(given))) from None
