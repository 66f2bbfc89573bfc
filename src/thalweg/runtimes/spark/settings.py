"""Settings of the Spark runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from thalweg.clock import Clock, WallClock, seconds
from thalweg.control.learning import Locality
from thalweg.control.rerouting import Rerouter
from thalweg.control.scaling.settings import Scaling
from thalweg.control.scaling.values import Policy
from thalweg.errors import UsageError, explain
from thalweg.hashing import KEY_GROUPS
from thalweg.runtimes.spark.limits import Limits, Retries
from thalweg.runtimes.spark.placement import Placing
from thalweg.runtimes.spark.pump import PumpSettings

AVAILABLE_NOW = "available-now"
#: Who reads topics of Kafka: the client beside the driver, or Spark's own connector at places.
Kafka = Literal["driver", "connector"]
CONNECTOR: Kafka = "connector"
#: Whether a run leaves its executors as they are, or asks for some and gives others back.
Executors = Literal["fixed", "elastic"]


@dataclass(frozen=True)
class SparkSettings:
    """What a run on Spark is told.

    >>> SparkSettings(places=4, trigger="1 second").interval
    1.0
    """

    #: A session to run on; without one, a session is made and stopped at the end.
    session: Any = None
    master: str = "local[*]"
    #: Where tasks run and keep state; None for as many as Spark runs tasks at once.
    places: int | None = None
    #: Time between two batches, "available-now" to take what is there and end, or None for at once.
    trigger: str | None = None
    #: Where Structured Streaming keeps its offsets (any URI that Hadoop knows).
    checkpoint: str | None = None
    #: Where state is kept (a path, or a URI that pyarrow knows); None for a folder of the run.
    state: str | None = None
    #: Whether tuples for the sender's own place skip the exchange.
    fuse: bool = True
    #: Whether readers of a tally get its tuples where the tally gets them, an exchange earlier.
    shorten: bool = True
    #: How places are shared out among hosts: by their "cores", "equal", or a host for each.
    placing: Placing = "cores"
    #: "elastic" to ask the cluster manager for as many executors as places need, "fixed" not to.
    executors: Executors = "fixed"
    #: Who reads topics of Kafka: the client beside the "driver", or Spark's own "connector".
    kafka: Kafka = "driver"
    #: Decides which keys get places of their own; None for none.
    rerouter: Rerouter | None = None
    #: A file with places for single keys, as thalweg analyze writes it; for a state without such.
    table: str | None = None
    #: Learns which keys occur together, and brings them to the same place; None for no such thing.
    locality: Locality | None = None
    #: Lets the number of places follow the stream: a policy, its name, or all settings.
    scaling: Scaling | Policy | str | None = None
    #: With scaling: how long a batch should take; None for the trigger, or half a sample period.
    batch_time: str | float | None = None
    clock: Clock = field(default_factory=WallClock)
    seed: int = 0
    key_groups: int = KEY_GROUPS
    pump: PumpSettings = field(default_factory=PumpSettings)
    limits: Limits = field(default_factory=Limits)
    retries: Retries = field(default_factory=Retries)
    #: Further settings for a session that is made.
    config: dict[str, str] = field(default_factory=dict)
    name: str = "spark"

    def __post_init__(self) -> None:
        if self.places is not None and self.places < 1:
            raise UsageError(explain("places", expected="at least 1", got=str(self.places)))
        if self.session is not None and isinstance(self.session, str):
            hint = f"Spark(master={self.session!r})"
            raise UsageError(explain("session", "", "a SparkSession", repr(self.session), hint))
        _ = self.interval
        if self.kafka not in get_args(Kafka):
            expected = f"one of {list(get_args(Kafka))}"
            raise UsageError(explain("kafka", "", expected, repr(self.kafka)))
        self._check_executors()
        self._check_scaling()

    def _check_executors(self) -> None:
        if self.executors not in get_args(Executors):
            expected = f"one of {list(get_args(Executors))}"
            raise UsageError(explain("executors", "", expected, repr(self.executors)))
        if self.executors == "elastic" and isinstance(self.placing, tuple):
            hint = "executors come and go where the cluster manager says"
            got = "a host for each place"
            raise UsageError(
                explain("placing of elastic executors", "", "'cores' or 'equal'", got, hint)
            )

    def _check_scaling(self) -> None:
        scales = self.scales
        if scales is None:
            if self.batch_time is not None:
                raise UsageError(explain("batch_time", "", "scaling beside it", "none"))
            return
        _ = self.batch_seconds
        shared = "all components share the places"
        if isinstance(scales.most, Mapping):
            raise UsageError(explain("scaling most on Spark", "", "a number", "several", shared))
        if scales.slots is not None:
            hint = f"{shared}, so most=N bounds the tasks of each"
            got = f"{scales.slots}"
            raise UsageError(explain("scaling slots on Spark", "", "none", got, hint))
        if scales.loss:
            hint = "Spark's sources are logged, and every tuple is processed"
            raise UsageError(explain("scaling loss on Spark", "", "0", f"{scales.loss}", hint))
        if isinstance(self.placing, tuple):
            got = "a host for each place"
            raise UsageError(explain("placing with scaling", "", "'cores' or 'equal'", got))
        if self.executors == "elastic" and scales.most is None:
            hint = "otherwise there is no end to the executors that may be asked for"
            raise UsageError(explain("scaling of elastic executors", "", "most=N", "none", hint))

    @property
    def scales(self) -> Scaling | None:
        """How the number of places follows the stream; None if it stays."""
        return Scaling.of(self.scaling)

    @property
    def batch_seconds(self) -> float:
        """How long a batch should take, with scaling."""
        if self.batch_time is not None:
            return seconds(self.batch_time, "batch_time")
        half = 0.0 if self.scales is None else self.scales.leading.timing.period / 2
        return self.interval or half

    @property
    def interval(self) -> float:
        """Least seconds between the beginnings of two batches."""
        if self.trigger in (None, AVAILABLE_NOW):
            return 0.0
        return seconds(self.trigger or 0, "trigger")
