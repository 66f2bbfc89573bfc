"""Children that outlive tasks: on Spark tasks come and go with each batch, and starting is dear.

They are kept in the process that started them, one for each task of a component, until nobody has
wanted them for a while: that process may outlive the run, and does not hear of its end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thalweg.contexts import TaskContext
from thalweg.multilang.child import Child
from thalweg.multilang.hosting import Conversation
from thalweg.multilang.settings import Shell

#: Children that are kept at most; the one that was used longest ago goes first.
MOST_KEPT = 64


@dataclass
class Partner:
    """A child, what it was told at its beginning, and what it has been given."""

    shell: Shell
    setup: dict[str, Any]
    child: Child
    talk: Conversation


Key = tuple[str, str, int]


class Keeper:
    """Keeps children until somebody takes them, or nobody has for as long as they may be idle."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._changed = threading.Condition()
        #: By task: its child, and when it is to end.
        self._kept: dict[Key, tuple[Partner, float]] = {}
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, key: Key) -> Partner | None:
        """Take a child out, if there is one."""
        with self._changed:
            partner, _ = self._kept.pop(key, (None, 0.0))
        return partner

    def keep(self, key: Key, partner: Partner) -> None:
        """Keep a child."""
        with self._changed:
            self._kept[key] = partner, self._now() + partner.shell.idle
            spare = list(self._kept)[: max(0, len(self._kept) - MOST_KEPT)]
            gone = [self._kept.pop(each)[0] for each in spare]
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="idle", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        _close(gone)

    def expire(self) -> float | None:
        """Let those end that are due; gives the seconds until the next is, None for none."""
        with self._changed:
            now = self._now()
            due = [key for key, (_, at) in self._kept.items() if at <= now]
            gone = [self._kept.pop(key)[0] for key in due]
            left = min((at - now for _, at in self._kept.values()), default=None)
            if left is None:
                self._thread = None
        _close(gone)
        return left

    def _watch(self) -> None:
        while (left := self.expire()) is not None:
            with self._changed:
                self._changed.wait(left)


def _close(gone: list[Partner]) -> None:
    for partner in gone:
        partner.child.close()


_keeper = Keeper()


def take(context: TaskContext, shell: Shell, setup: dict[str, Any]) -> Partner | None:
    """Take the child of a task out, if there is one, and it was told the same."""
    found = _keeper.take(_key(context))
    if found is None:
        return None
    if (found.shell, found.setup) != (shell, setup):
        found.child.close()
        return None
    return found


def keep(context: TaskContext, partner: Partner) -> None:
    """Keep a child, which holds nothing, for the next task of its kind."""
    _keeper.keep(_key(context), partner)


def _key(context: TaskContext) -> Key:
    return context.lasting, context.component, context.task
