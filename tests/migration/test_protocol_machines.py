"""The two machines step by step, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from thalweg.errors import StateError, UsageError
from thalweg.migration.protocol import (
    AckReconf,
    Configuration,
    Done,
    Finish,
    GetMetrics,
    Kept,
    Manager,
    Message,
    Migrate,
    Office,
    Phase,
    Piece,
    Propagate,
    Restarted,
    Resume,
    Router,
    Save,
    Saved,
    SendMetrics,
    SendReconf,
    Sent,
    States,
    Task,
    TaskId,
    Tuple,
    Wiring,
    cut,
    reconfigurations,
)
from thalweg.migration.units import Units
from thalweg.routing.table import RoutingTable

WIRING = Wiring({"source": 1, "count": 2}, {"source": ("count",)})
SOURCE, LEFT, RIGHT = WIRING.tasks
#: With four groups the keys 0 and 1 are left, 2 and 3 right; afterwards 1 and 3 change sides.
OLD = {"count": RoutingTable.even(2, groups=4)}
NEW = {"count": RoutingTable(1, 2, np.array([0, 1, 1, 1]), np.array([3], np.uint64), np.array([0]))}
CONFIGURATION = Configuration(1, OLD, NEW)
MANAGER = Office.MANAGER


class Counting:
    """A host that counts how often it saw each key."""

    def __init__(self, states: dict[int, int] | None = None) -> None:
        self.states = states or {}
        self.processed: list[Any] = []

    def process(self, tuple_: Tuple, router: Router) -> list[Sent]:
        self.processed.append(tuple_.value)
        self.states[tuple_.hash] = self.states.get(tuple_.hash, 0) + 1
        return []

    def take(self, units: Units, wanted: frozenset[int]) -> list[Piece]:
        pieces = cut(self.states, units, wanted, keys=10)
        self.states = {
            key: state
            for key, state in self.states.items()
            if not any(key in piece.states for piece in pieces)
        }
        return pieces

    def put(self, states: States) -> None:
        self.states |= states

    def metrics(self) -> int:
        return len(self.processed)


def manager() -> Manager:
    return Manager(WIRING, lambda metrics: CONFIGURATION)


def task(name: TaskId, host: Counting, kept: Kept | None = None) -> Task:
    return Task(name, WIRING, kept or Kept({}), host)


def reconf(name: TaskId) -> SendReconf:
    return reconfigurations(CONFIGURATION, WIRING)[name]


# --- the manager -------------------------------------------------------------------------------


def test_a_round_from_statistics_to_the_end() -> None:
    it = manager()
    assert it.start() == [(name, GetMetrics(1)) for name in WIRING.tasks]
    assert it.receive(SendMetrics(1, 0), SOURCE) + it.receive(SendMetrics(1, 0), LEFT) == []
    [(store, save)] = it.receive(SendMetrics(1, 0), RIGHT)
    assert store is Office.STORE
    assert isinstance(save, Save)
    assert save.configuration is CONFIGURATION
    sent = it.receive(Saved(1), Office.STORE)
    assert [(to, type(message)) for to, message in sent] == [
        (name, SendReconf) for name in WIRING.tasks
    ]
    acks = [it.receive(AckReconf(1), name) for name in WIRING.tasks]
    assert acks == [[], [], [(SOURCE, Propagate(1))]]
    reports = [it.receive(Done(1), name) for name in WIRING.tasks]
    assert reports == [[], [], [(name, Finish(1)) for name in WIRING.tasks]]
    assert (it.phase, it.epoch) == (Phase.IDLE, 1)


def test_no_change_ends_the_round() -> None:
    it = Manager(WIRING, lambda metrics: None)
    it.start()
    assert [it.receive(SendMetrics(1, 0), name) for name in WIRING.tasks] == [[], [], []]
    assert it.phase is Phase.IDLE


def test_statistics_of_an_earlier_round_do_not_count() -> None:
    it = Manager(WIRING, lambda metrics: None)
    for _ in range(2):
        it.start()
        if it._round == 1:
            for name in WIRING.tasks:
                it.receive(SendMetrics(1, 0), name)
    for name in WIRING.tasks:
        it.receive(SendMetrics(1, 0), name)
    assert it.phase is Phase.METRICS


@pytest.mark.parametrize("message", [Saved(2), AckReconf(1), Done(1)])
def test_what_is_not_waited_for_is_passed_over(message: Message) -> None:
    it = manager()
    it.begin(CONFIGURATION)
    assert it.receive(message, LEFT) == []
    assert it.phase is Phase.SAVING


def test_a_restarted_task_is_told_what_is_under_way() -> None:
    it = manager()
    assert it.receive(Restarted(), LEFT) == [(LEFT, Resume(0))]
    it.start()
    assert it.receive(Restarted(), LEFT) == [(LEFT, Resume(0)), (LEFT, GetMetrics(1))]
    it = manager()
    it.begin(CONFIGURATION)
    assert it.receive(Restarted(), SOURCE) == [(SOURCE, Resume(0))]
    it.receive(Saved(1), Office.STORE)
    assert [type(message) for _, message in it.receive(Restarted(), SOURCE)] == [SendReconf]
    for name in WIRING.tasks:
        it.receive(AckReconf(1), name)
    kinds = [type(message) for _, message in it.receive(Restarted(), SOURCE)]
    assert kinds == [SendReconf, Propagate]


def test_another_manager_applies_what_was_saved_and_nothing_else() -> None:
    assert manager().replay(None) == [(name, Resume(0)) for name in WIRING.tasks]
    it = manager()
    assert [to for to, _ in it.replay(CONFIGURATION)] == list(WIRING.tasks)
    assert it.phase is Phase.ACKS


def test_one_reconfiguration_at_a_time() -> None:
    it = manager()
    it.start()
    for begin in (it.start, lambda: it.begin(CONFIGURATION), lambda: it.replay(None)):
        with pytest.raises(UsageError, match="no reconfiguration under way, got collecting"):
            begin()


def test_configurations_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="expected an epoch after 1, got 1"):
        Manager(WIRING, lambda metrics: None, epoch=1).begin(CONFIGURATION)
    wide = {"count": RoutingTable.even(3)}
    with pytest.raises(UsageError, match="'count': expected at most 2 places, its tasks, got 3"):
        manager().begin(Configuration(1, wide, wide))


def test_a_manager_out_of_order_says_so() -> None:
    it = manager()
    it.validate()
    it.phase = Phase.PROPAGATING
    with pytest.raises(StateError, match="a configuration exactly while one is saved or applied"):
        it.validate()


# --- tasks -------------------------------------------------------------------------------------


def test_lists_name_the_keys_and_groups_that_move() -> None:
    # The key 3 is unit 0, the groups follow.
    key, group = frozenset({0}), frozenset({2})
    assert (reconf(LEFT).send, reconf(LEFT).receive) == ({RIGHT: group}, {RIGHT: key})
    assert (reconf(RIGHT).send, reconf(RIGHT).receive) == ({LEFT: key}, {LEFT: group})
    assert reconf(SOURCE).router == NEW
    assert not reconf(SOURCE).send


def test_tuples_wait_for_their_state_from_the_acknowledgement_on() -> None:
    host = Counting({0: 5})
    it = task(LEFT, host)
    assert it.receive(reconf(LEFT), MANAGER) == [(MANAGER, AckReconf(1))]
    it.receive(Tuple(3, "moved here"), SOURCE)
    it.receive(Tuple(0, "stays"), SOURCE)
    assert host.processed == ["stays"]
    assert it.waits(np.array([0, 1, 3, 7], dtype=np.uint64)).tolist() == [0, 0, 1, 0]
    it.receive(Migrate(1, 0, Piece({3: 10}, frozenset({0}))), RIGHT)
    assert host.processed == ["stays", "moved here"]
    assert host.states == {0: 6, 3: 11}
    assert it.calm


def test_the_switch_sends_state_and_then_propagates() -> None:
    kept = Kept({})
    it = task(LEFT, Counting({0: 5, 1: 6}), kept)
    it.receive(reconf(LEFT), MANAGER)
    assert it.receive(Propagate(1), SOURCE) == [
        (RIGHT, Migrate(1, 0, Piece({1: 6}, frozenset({2}))))
    ]
    assert kept.switched == 1
    done = it.receive(Migrate(1, 0, Piece({}, frozenset({0}))), RIGHT)
    assert done == [(MANAGER, Done(1))]
    it.receive(Finish(1), MANAGER)
    assert kept == Kept(kept.router, 1, 1, 1)


def test_state_that_comes_again_or_too_late_changes_nothing() -> None:
    host = Counting()
    it = task(LEFT, host)
    it.receive(reconf(LEFT), MANAGER)
    it.receive(Propagate(1), SOURCE)
    migrate = Migrate(1, 0, Piece({3: 10}, frozenset({0})))
    it.receive(migrate, RIGHT)
    it.receive(Tuple(3, "x"), SOURCE)
    assert it.receive(migrate, RIGHT) == []
    it.receive(Finish(1), MANAGER)
    assert it.receive(migrate, RIGHT) == []
    assert host.states == {3: 11}


def test_a_restarted_task_works_when_it_knows_what_is_under_way() -> None:
    host = Counting()
    it = task(LEFT, host)
    assert it.rejoin() == [(MANAGER, Restarted())]
    it.receive(Tuple(0, "x"), SOURCE)
    assert not host.processed
    assert it.waits(np.array([0], dtype=np.uint64)).tolist() == [True]
    it.receive(Resume(0), MANAGER)
    assert host.processed == ["x"]


def test_a_new_task_begins_in_the_epoch_in_force() -> None:
    it = task(LEFT, Counting(), Kept({}, 7, 7, 7))
    it.receive(reconf(LEFT), MANAGER)
    assert it.calm
    it.validate()


def test_a_host_that_forgets_an_end_is_refused() -> None:
    class Forgetful(Counting):
        def take(self, units: Units, wanted: frozenset[int]) -> list[Piece]:
            return []

    it = task(LEFT, Forgetful())
    it.receive(reconf(LEFT), MANAGER)
    with pytest.raises(StateError, match=r"an end for each unit to count\[1\]: \[2\], got \[\]"):
        it.receive(Propagate(1), SOURCE)


def test_state_of_an_epoch_that_was_not_announced_is_refused() -> None:
    with pytest.raises(StateError, match="no state of a later epoch than 0"):
        task(LEFT, Counting()).receive(Migrate(1, 0, Piece({}, frozenset())), RIGHT)


@pytest.mark.parametrize(
    ("machine", "message"), [(manager(), Propagate(1)), (task(LEFT, Counting()), Saved(1))]
)
def test_messages_for_somebody_else_are_refused(machine: Any, message: Message) -> None:
    with pytest.raises(UsageError, match="message to"):
        machine.receive(message, LEFT)


def test_a_task_out_of_order_says_so() -> None:
    it = task(LEFT, Counting(), Kept({}, epoch=1, switched=2))
    with pytest.raises(StateError, match=r"task count\[0\]: expected settled <= switched <= epoch"):
        it.validate()


def test_a_piece_needs_room_for_a_key() -> None:
    units = Units.between(OLD["count"], NEW["count"])
    with pytest.raises(UsageError, match="keys in a piece: expected at least 1, got 0"):
        cut({}, units, [], keys=0)
