"""Spouts of pystorm: asked for tuples, and told how they ended."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from thalweg.storm.components import Component
from thalweg.storm.outside import ShellSpout, python_object
from thalweg.storm.specs import SpoutSpec, Wanted


class Spout(Component, ShellSpout):
    """A source: ``next_tuple`` emits what there is now, without waiting."""

    @classmethod
    def spec(  # type: ignore[override]  # no command: the class is it
        cls, name: str | None = None, par: Any = None, config: Any = None
    ) -> SpoutSpec:
        """Describe its place in a topology."""
        return SpoutSpec(cls, python_object(cls), Wanted(name, None, par, config))

    def next_tuple(self) -> None:
        """Emit none, one or several tuples."""
        raise NotImplementedError

    def ack(self, tup_id: Any) -> None:
        """Hear that a tuple has been processed completely."""

    def fail(self, tup_id: Any) -> None:
        """Hear that a tuple failed; emit it again to have it replayed."""

    def activate(self) -> None:
        """Begin, or go on, to be asked."""

    def deactivate(self) -> None:
        """Stop being asked for now."""

    def emit(  # type: ignore[override]  # bolts have anchors, spouts have ids
        self,
        tup: Any,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Send a tuple; with ``tup_id`` its end is told."""
        return super().emit(tup, tup_id, stream, None, direct_task, need_task_ids)

    def _run(self) -> None:
        told = self.read_command()
        match told.get("command"):
            case "next":
                self.next_tuple()
            case "ack":
                self.ack(told["id"])
            case "fail":
                self.fail(told["id"])
            case "activate":
                self.activate()
            case "deactivate":
                self.deactivate()
            case _:
                self.logger.error("a command that spouts do not know: %r", told)
        self.send_message({"command": "sync"})


class ReliableSpout(Spout):
    """A spout whose tuples are replayed when they fail, up to ``max_fails`` times."""

    max_fails: ClassVar[int] = 3

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.failed_tuples: Counter[Any] = Counter()
        #: What ``emit`` was called with, by id.
        self.unacked_tuples: dict[Any, tuple[Any, ...]] = {}

    def emit(  # type: ignore[override]  # see Spout
        self,
        tup: Any,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Send a tuple and remember it until it is done."""
        if tup_id is None:
            text = "a ReliableSpout emits each tuple with a tup_id, to know how it ends"
            raise ValueError(text)
        self.unacked_tuples[tup_id] = tup, stream, direct_task, need_task_ids
        return super().emit(tup, tup_id, stream, direct_task, need_task_ids)

    def ack(self, tup_id: Any) -> None:
        """Forget a tuple that is done."""
        self.failed_tuples.pop(tup_id, None)
        if self.unacked_tuples.pop(tup_id, None) is None:
            self.logger.error("ack of a tuple that is not open: %r", tup_id)

    def fail(self, tup_id: Any) -> None:
        """Send a tuple again, unless that has happened often enough."""
        told = self.unacked_tuples.get(tup_id)
        if told is None:
            self.logger.error("fail of a tuple that is not open: %r", tup_id)
        elif self.failed_tuples[tup_id] < self.max_fails:
            tup, *more = told
            self.emit(tup, tup_id, *more)
            self.failed_tuples[tup_id] += 1
        else:
            self.logger.info("tuple %r is given up after %d fails", tup_id, self.max_fails)
            self.ack(tup_id)
