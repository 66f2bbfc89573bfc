"""What a run on Spark is asked while it goes on: left beside its state, or by who steers it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from thalweg.errors import ThalwegError, UsageError, explain
from thalweg.execution import Asked, Rebalance, SetPolicy, Steering
from thalweg.runtimes.spark.engine import Engine
from thalweg.runtimes.spark.rerouting import Learning
from thalweg.runtimes.spark.scaling import Scaler
from thalweg.statelog.requests import Request, Requests

_NOT_LEARNING = (
    "this run does not learn which keys belong together; start it with --locality ask, or auto"
)


@dataclass(frozen=True)
class Hands:
    """Those who do what is asked."""

    engine: Engine
    learning: Learning | None
    scaler: Scaler | None
    #: Goes on with another number of places.
    rebalance: Callable[[int], bool]
    notice: Callable[[str], None]


class Wishes:
    """Does what is asked, between two batches; what is no request is reported."""

    def __init__(
        self, requests: Requests, steering: Steering | None, hands: Hands, lock: threading.Lock
    ) -> None:
        self._requests, self._steering, self._hands = requests, steering, hands
        #: Held while a batch runs.
        self._lock = lock

    def look(self, now: float) -> None:
        """Take what was asked, and do it."""
        request = self._left(now)
        asked = None if self._steering is None else self._steering.take()
        if request is not None:
            with self._lock:
                self._do(request)
        if asked is not None:
            with self._lock:
                self._obey(asked, now)

    def _left(self, now: float) -> Request | None:
        try:
            return self._requests.take(now)
        except ThalwegError as error:
            self._hands.notice(str(error))
            return None

    def _do(self, request: Request) -> None:
        engine = self._hands.engine
        if request.reroute is not None:
            self._reroute(
                request.reroute == "always", lambda text: self._requests.answer(request, text)
            )
        if request.avoid is not None:
            engine.anchoring.avoid(request.avoid)
        if request.places is not None and request.places != engine.plan.places:
            self._hands.rebalance(request.places)

    def _obey(self, asked: Asked, now: float) -> None:
        try:
            if isinstance(asked, SetPolicy):
                self._lead(asked, now)
            elif isinstance(asked, Rebalance):
                text = f"rebalance of {asked.component!r}"
                raise UsageError(explain(text, "", "the local runtime", "Spark", "it has places"))
            else:
                self._reroute(asked.always, self._hands.notice)
        except ThalwegError as error:
            self._hands.notice(f"nothing changes: {error}")

    def _lead(self, asked: SetPolicy, now: float) -> None:
        if self._hands.scaler is None:
            text = f"policy {asked.policy!r}"
            raise UsageError(explain(text, "", "a run with scaling", "one without", "--scale"))
        self._hands.scaler.lead(asked.policy, now, asked.by)

    def _reroute(self, always: bool, answer: Callable[[str], None]) -> None:
        """Let the learner decide after the next batch, and answer then."""
        learning = self._hands.learning
        if learning is None or not learning.ask(always, answer):
            answer(_NOT_LEARNING)
