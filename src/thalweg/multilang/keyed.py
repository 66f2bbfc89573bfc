"""Bolts in child processes whose state is kept here: durable, and movable key by key.

Before the tuples of a block the child gets the values of their keys, on stream ``__restore``, and
behind them the question, on stream ``__snapshot``, which of these have changed; it answers with
``{"command": "snapshot", "entries": [[key, value], ...]}``. One that holds tuples is asked for
their keys after ticks, too. What it remembers beyond that is its own affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from thalweg.blocks import Block
from thalweg.components import Kind
from thalweg.contexts import TaskContext
from thalweg.errors import ThalwegError, explain, shorten
from thalweg.keys import key_values
from thalweg.multilang.bolts import ShellBolt
from thalweg.multilang.child import ChildError
from thalweg.multilang.hosting import RESTORE, SNAPSHOT, Changed, Ended, Said
from thalweg.multilang.wire import ProtocolError

#: Types of keys that come back from a child as they went there.
_KEPT = (str, int, float, bool, type(None))


class KeyedShellBolt(ShellBolt):
    """A bolt in a child process that gives its state to the runtime, key by key.

    It reads a stream with a fields grouping. A value None forgets its key. A key of several fields
    is a list.
    """

    kind = Kind.KEYED
    #: Values of keys belong to whole blocks.
    in_parts = False
    when_paused = "before its keys move or a snapshot"

    def prepare(self, context: TaskContext) -> None:
        """Start the child."""
        #: Keys of the tuples at hand, and, by number, of those that the child may hold.
        self._keys: dict[Any, None] = {}
        self._key_of: dict[int, Any] = {}
        #: What it has said of keys in the step at hand, and all since it was given their values.
        self._changes: dict[Any, Any] = {}
        self._told: dict[Any, Any] = {}
        self._answered = False
        #: Numbers of the tuples that it has let fail in the step at hand.
        self._failed: set[int] = set()
        #: Numbers of those that it, or one before it, has acknowledged there.
        self._acked: set[int] = set()
        super().prepare(context)

    def process_tuples(self, first: int, block: Block) -> None:
        """Give the child the values of the keys, then the tuples, and take what has changed."""
        self._note_who_waits(first, block)
        keys = key_values([block.batch.column(name) for name in self.key])
        fresh = dict.fromkeys(keys)
        self._check_keys(fresh)

        def give(data: bytes) -> None:
            self._once(data)
            for some in self._messages(first, block, self._failed):
                self._once(some)

        # Of those that it holds it may know more by now.
        self._keys, self._told = fresh | dict.fromkeys(self._key_of.values()), {}
        self._exactly(give, self._restore(fresh))
        self._remember(dict(enumerate(keys, first)))
        self._check_held()

    def _insist(self, step: Callable[[bytes], None], data: bytes = b"") -> None:
        """Do something between blocks, such as a tick: what it does to tuples it holds counts."""
        if self._key_of:
            self._keys = dict.fromkeys(self._key_of.values())
            self._exactly(step, data)
            self._remember({})
        else:
            super()._insist(step, data)

    def _exactly(self, step: Callable[[bytes], None], data: bytes) -> None:
        """Do something with the child, and take what has changed; a successor does all of it.

        Except for tuples that a child has let fail before it died: these stay failed.
        """
        held = dict(self._talk.given)
        self._failed, self._acked = set(), set()
        while True:
            self._changes = {}
            try:
                step(data)
                self._ask_for_changes()
            except ChildError as error:
                self._begin_anew(error)
                self._take_back(held)
                data = self._again()
            else:
                break
        self._put_changes()

    def _give_up(self, error: ThalwegError) -> None:
        """End the run: what is written down of keys holds without the block at hand."""
        raise error

    def _take_back(self, held: dict[str, tuple[int, bytes]]) -> None:
        """Let a new child begin with the tuples and values of before."""
        failed = self._failed
        self._talk.given = {id_: each for id_, each in held.items() if each[0] not in failed}
        self.begin_again()
        for number in failed:
            self.fail(number)

    @property
    def _has_to_finish(self) -> bool:
        return True  # values of keys are those behind all tuples

    def _check_keys(self, keys: Iterable[Any]) -> None:
        """Refuse keys that do not come back from a child as they are."""
        kept = (*_KEPT, bytes) if self.shell.serializer == "msgpack" else _KEPT
        for key in keys:
            for part in key if isinstance(key, tuple) else (key,):
                if not isinstance(part, kept) or part != part:  # noqa: PLR0124 (NaN)
                    subject = f"key {shorten(part, 60)} of {self.context.component!r}"
                    expected = f"text, a number or what else {self.shell.serializer} gives back"
                    raise ThalwegError(explain(subject, "", expected, type(part).__name__))

    def _restore(self, keys: Iterable[Any]) -> bytes:
        return self._talk.aside(RESTORE, [self._entries(keys)])

    def _entries(self, keys: Iterable[Any]) -> list[Any]:
        values = self.state.get_many(keys)
        return [[key, values.get(key)] for key in keys]

    def _ask_for_changes(self) -> None:
        """Let the child say which values have changed, and wait until it has."""
        self._answered = False
        self._once(self._talk.aside(SNAPSHOT, []))
        self._hear_until(lambda: self._answered, f"has not answered to {SNAPSHOT}")

    def _put_changes(self) -> None:
        changed, self._changes = self._changes, {}
        self._told |= changed
        self.state.put_many({key: value for key, value in changed.items() if value is not None})
        for key in (key for key, value in changed.items() if value is None):
            self.state.delete(key)

    def _remember(self, key_of: dict[int, Any]) -> None:
        """Remember the keys of the tuples that the child holds."""
        known = self._key_of | key_of
        self._key_of = {number: known[number] for number, _ in self._talk.given.values()}
        self._keys = {}

    def _again(self) -> bytes:
        """Give a new child what the old one held, behind the values of the keys."""
        return (self._restore(self._keys) if self._keys else b"") + super()._again()

    def _obey(self, said: Said | None) -> None:
        if not isinstance(said, Changed):
            if isinstance(said, Ended) and not said.ok:
                self._failed.add(said.number)
            super()._obey(said)
            return
        self._answered = True
        for given, value in said.entries:
            self._note(_hashable(given), value)

    def _succeeded(self, number: int) -> None:
        """Note a tuple that none before it has acknowledged: what these did is taken back."""
        if number not in self._acked:
            self._acked.add(number)
            super()._succeeded(number)

    def _note(self, key: Any, value: Any) -> None:
        """Note a change; what it has said before it may say again."""
        if key in self._keys:
            self._changes[key] = value
        elif key not in self._told or self._told[key] != value:
            expected = "one of those whose values it was given with the tuples at hand"
            error = ProtocolError(explain(f"key {shorten(key, 60)} of a snapshot", "", expected))
            raise self._present.broken(error)


def _hashable(given: Any) -> Any:
    return tuple(map(_hashable, given)) if isinstance(given, list) else given
