"""Bolts of pystorm: tuple by tuple, or in batches by tick or by time."""

from __future__ import annotations

import re
import threading
from collections import defaultdict, namedtuple
from typing import Any, ClassVar

from thalweg.storm.components import Component, Tuple
from thalweg.storm.outside import ShellBolt, python_object
from thalweg.storm.specs import BoltSpec, Wanted


class Bolt(Component, ShellBolt):
    """An operator: ``process`` gets one tuple at a time."""

    #: Whether what is emitted stems from the tuple at hand, unless anchors are given.
    auto_anchor: ClassVar[bool] = True
    #: Whether a tuple is acknowledged when ``process`` returns.
    auto_ack: ClassVar[bool] = True
    #: Whether a tuple fails when ``process`` raises.
    auto_fail: ClassVar[bool] = True

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        #: Tuples that are being processed.
        self._current_tups: list[Tuple] = []
        #: Types of values by component and stream.
        self._source_tuple_types: dict[str, dict[str, Any]] = {}

    @classmethod
    def spec(  # type: ignore[override]  # no command: the class is it
        cls,
        name: str | None = None,
        inputs: Any = None,
        par: Any = None,
        config: Any = None,
    ) -> BoltSpec:
        """Describe its place in a topology."""
        return BoltSpec(cls, python_object(cls), Wanted(name, inputs, par, config))

    # --- what bolts override -------------------------------------------------------------------

    def process(self, tup: Tuple) -> None:
        """Handle one tuple."""
        raise NotImplementedError

    def process_tick(self, tup: Tuple) -> None:
        """Do what is done at intervals (``topology.tick.tuple.freq.secs``)."""

    # --- what bolts call -----------------------------------------------------------------------

    def emit(  # type: ignore[override]  # bolts have anchors, spouts have ids
        self,
        tup: Any,
        stream: str | None = None,
        anchors: Any = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Send a tuple, which stems from ``anchors``: tuples or their ids."""
        if anchors is None:
            anchors = self._current_tups if self.auto_anchor else []
        ids = [anchor.id if hasattr(anchor, "id") else anchor for anchor in anchors]
        return super().emit(tup, None, stream, ids, direct_task, need_task_ids)

    def ack(self, tup: Any) -> None:
        """Say that a tuple, or the one with this id, has been processed."""
        self.send_message({"command": "ack", "id": getattr(tup, "id", tup)})

    def fail(self, tup: Any) -> None:
        """Say that a tuple, or the one with this id, has failed."""
        self.send_message({"command": "fail", "id": getattr(tup, "id", tup)})

    @staticmethod
    def is_tick(tup: Tuple) -> bool:
        """Say whether a tuple is a tick."""
        return tup.component == "__system" and tup.stream == "__tick"

    # --- the life of a child process -----------------------------------------------------------

    def _tell(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        super()._tell(storm_conf, context)
        sources = context.get("source->stream->fields", {})
        self._source_tuple_types = {
            source: {name: values_type(source, name, fields) for name, fields in streams.items()}
            for source, streams in sources.items()
        }

    def read_tuple(self) -> Tuple:
        """Wait for the next tuple."""
        told = self.read_command()
        source, stream, values = told["comp"], told["stream"], told["tuple"]
        kind = self._source_tuple_types.get(source, {}).get(stream)
        named = tuple(values) if kind is None else kind(*values)
        return Tuple(told["id"], source, stream, told["task"], named)

    def _run(self) -> None:
        tup = self.read_tuple()
        # Stays when user code raises: these tuples are to fail.
        self._current_tups = [tup]
        self._handle(tup)
        self._current_tups = []

    def _handle(self, tup: Tuple) -> None:
        if self.is_heartbeat(tup):
            self.send_message({"command": "sync"})
            return
        (self.process_tick if self.is_tick(tup) else self.process)(tup)
        if self.auto_ack:
            self.ack(tup)

    def _handle_run_exception(self, error: Exception) -> None:
        for tup in self._current_tups[:1]:
            self.raise_exception(error, tup)
            if self.auto_fail:
                self.fail(tup)


class BatchingBolt(Bolt):
    """An operator that gets the tuples between ticks together, by ``group_key``."""

    #: A batch is processed with the tick that is one more than this many.
    ticks_between_batches: ClassVar[int] = 1

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._batches: dict[Any, list[Tuple]] = defaultdict(list)
        self._tick_counter = 0
        self._current_key: Any = None

    def group_key(self, tup: Tuple) -> Any:
        """Say to which batch a tuple belongs."""
        return None

    def process_batch(self, key: Any, tups: list[Tuple]) -> None:
        """Handle the tuples with one key."""
        raise NotImplementedError

    def emit(self, tup: Any, **more: Any) -> None:  # type: ignore[override]  # tells no tasks
        """Send a tuple, which stems from the whole batch unless anchors are given."""
        super().emit(tup, **(more | {"need_task_ids": False}))

    def process(self, tup: Tuple) -> None:
        """Put a tuple into its batch."""
        self._batches[self.group_key(tup)].append(tup)

    def process_tick(self, tup: Tuple) -> None:
        """Count, and process the batches when it is time."""
        self._tick_counter += 1
        self.ack(tup)
        if self._batches and self._tick_counter > self.ticks_between_batches:
            self.process_batches()
            self._tick_counter = 0

    def process_batches(self) -> None:
        """Process all batches, each acknowledged by itself."""
        for key, batch in list(self._batches.items()):
            self._current_tups, self._current_key = batch, key
            self.process_batch(key, batch)
            if self.auto_ack:
                for tup in batch:
                    self.ack(tup)
            self._current_key = None
            del self._batches[key]  # done, should a later one raise

    def _handle(self, tup: Tuple) -> None:
        if self.is_heartbeat(tup):
            self.send_message({"command": "sync"})
        elif self.is_tick(tup):
            self.process_tick(tup)
        else:
            self.process(tup)

    def _handle_run_exception(self, error: Exception) -> None:
        self.raise_exception(error, self._current_tups)
        if not self.auto_fail:
            return
        # All batches are lost with the process; without that, only the one at hand.
        lost = [
            batch
            for key, batch in self._batches.items()
            if self.exit_on_exception or key == self._current_key
        ]
        failing = {tup.id: tup for batch in (*lost, self._current_tups) for tup in batch}
        for tup in failing.values():
            self.fail(tup)
        self._batches.pop(self._current_key, None)
        self._current_key = None


class TicklessBatchingBolt(BatchingBolt):
    """Batches by time: ``process_batch`` is called every ``secs_between_batches``, without ticks.

    In a child process a thread does that; inside a run its clock does.
    """

    secs_between_batches: ClassVar[float] = 2

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._batch_lock = threading.RLock()

    def process_tick(self, tup: Tuple) -> None:
        """Ticks mean nothing here."""
        self.ack(tup)

    def run(self) -> None:
        """Start the clock, then do as all components."""
        threading.Thread(target=self._batch_by_time, daemon=True).start()
        super().run()

    def _batch_by_time(self) -> None:
        wait = threading.Event().wait
        while not wait(self.secs_between_batches):
            with self._batch_lock:
                if not self._batches:
                    continue
                try:
                    self.process_batches()
                except Exception as error:
                    self._run_failed(error)
                    if self.exit_on_exception:
                        self._exit(1)
                finally:
                    self._current_tups = []

    def _run(self) -> None:
        tup = self.read_tuple()  # without the lock: it may take long
        with self._batch_lock:
            self._current_tups = [tup]
            self._handle(tup)
            self._current_tups = []


def values_type(source: str, stream: str, fields: list[str]) -> Any:
    """Make the type of the values of a stream, with the fields as attributes."""
    words = (re.sub(r"\W|^(?=\d)", "_", word.title()) for word in (source, stream))
    return namedtuple("".join(words) + "Tuple", fields)
