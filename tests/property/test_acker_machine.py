"""The acker under random use, against a model that keeps every delivery."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
)

from thalweg.acking import Acker, Completed


class AckerMachine(RuleBasedStateMachine):
    """Opens roots, delivers and releases tuples that stem from them, lets them fail and expire."""

    roots = Bundle("roots")

    @initialize(timeout=st.integers(1, 20))
    def begin(self, timeout: int) -> None:
        self.acker = Acker(timeout)
        self.timeout = timeout
        self.now = 0
        #: Model: deadline of each root of which something is under way, those of them that have
        #: failed, and deliveries under way (each the tuple of roots it stems from; a root that
        #: nothing is known of any more stays in them).
        self.deadline: dict[int, int] = {}
        self.failed: set[int] = set()
        self.under_way: list[tuple[int, ...]] = []
        self.ended: list[int] = []

    def end(self, roots: list[int], ok: bool) -> list[Completed]:
        """Say what the acker must report when these are over: what has failed was reported."""
        reported = [Completed(root, ok) for root in roots if root not in self.failed]
        self.ended += [end.root for end in reported]
        for root in roots:
            del self.deadline[root]
            self.failed.discard(root)
        return reported

    def held(self, root: int) -> int:
        return sum(roots.count(root) for roots in self.under_way)

    @rule(target=roots)
    def open(self) -> int:
        root = self.acker.open(self.now)
        assert root not in self.deadline
        assert root not in self.ended
        self.deadline[root] = self.now + self.timeout
        return root

    @rule(target=roots, count=st.integers(2, 4))
    def open_several(self, count: int) -> object:
        return multiple(*(self.open() for _ in range(count)))

    @rule(rows=st.lists(st.lists(roots, min_size=1, max_size=3, unique=True), max_size=3))
    def hold(self, rows: list[list[int]]) -> None:
        made = [tuple(row) for row in rows]
        self.acker.hold(made)
        # A delivery holds only those of its roots that are still open.
        self.under_way += [tuple(r for r in row if r in self.deadline) for row in made]

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        chosen = (
            data.draw(st.sets(st.sampled_from(range(len(self.under_way))), max_size=4))
            if (self.under_way)
            else set()
        )
        rows = [self.under_way[i] for i in sorted(chosen)]
        self.under_way = [row for i, row in enumerate(self.under_way) if i not in chosen]
        touched = dict.fromkeys(root for row in rows for root in row if root in self.deadline)
        complete = [root for root in touched if not self.held(root)]
        assert Counter(self.acker.release(rows)) == Counter(self.end(complete, ok=True))

    @rule(rows=st.lists(st.lists(roots, max_size=3), max_size=3))
    def fail(self, rows: list[list[int]]) -> None:
        """Let roots fail: this is told at once, and once, whatever else stems from them."""
        fresh = {root for row in rows for root in row if root in self.deadline} - self.failed
        found = self.acker.fail([tuple(row) for row in rows])
        assert Counter(found) == Counter(Completed(root, False) for root in fresh)
        self.failed |= fresh
        self.ended += fresh

    @rule(root=roots)
    def settle(self, root: int) -> None:
        nobody_reads = root in self.deadline and not self.held(root)
        assert self.acker.settle(root) == (self.end([root], ok=True) if nobody_reads else [])

    @rule(seconds=st.integers(0, 9))
    def let_time_pass(self, seconds: int) -> None:
        self.now += seconds
        self.expire(self.now)

    def expire(self, now: float) -> None:
        """Name what is late, also what has failed, for bolts may keep something of it."""
        late = [root for root, deadline in self.deadline.items() if deadline <= now]
        named, ended = self.acker.expire(now)
        assert named == late
        assert ended == self.end(late, ok=False)

    @invariant()
    def agrees_with_the_model(self) -> None:
        if hasattr(self, "acker"):
            self.acker.validate()
            assert len(self.acker) == len(self.deadline.keys() - self.failed)
            assert self.acker.counts == bool(self.deadline)
            assert len(set(self.ended)) == len(self.ended), "a root ended twice"

    def teardown(self) -> None:
        """Release everything: every root that was held ends, and with its right end."""
        if not hasattr(self, "acker"):
            return
        rows, self.under_way = self.under_way, []
        touched = dict.fromkeys(root for row in rows for root in row if root in self.deadline)
        assert Counter(self.acker.release(rows)) == Counter(self.end(list(touched), ok=True))
        self.expire(float("inf"))
        assert len(self.acker) == 0
        assert not self.acker.counts


TestAcker = AckerMachine.TestCase
TestAcker.settings = settings(max_examples=100, stateful_step_count=25)
