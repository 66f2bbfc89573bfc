"""As many executors as places need; whoever is given back holds no place any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.clock import ManualClock
from thalweg.errors import UsageError
from thalweg.runtimes.spark import executors as module
from thalweg.runtimes.spark.executors import Elastic, elastic, emptied, staff_for
from thalweg.runtimes.spark.placement import Executor, place_on_hosts, slots_on_hosts
from thalweg.runtimes.spark.settings import SparkSettings
from thalweg.statelog.manifests import Manifest

HOSTS = st.sampled_from("abcd")
PLACES = st.integers(1, 20)


@st.composite
def staffs(draw: st.DrawFn) -> tuple[Executor, ...]:
    found = draw(st.lists(st.tuples(HOSTS, st.integers(1, 4)), min_size=1, max_size=8))
    return tuple(Executor(f"{n}", host, slots) for n, (host, slots) in enumerate(found))


def slots(executors: Iterable[Executor]) -> int:
    return sum(executor.slots for executor in executors)


# --- who is needed --------------------------------------------------------------------------------


@given(PLACES, staffs(), st.lists(HOSTS), st.frozensets(HOSTS, max_size=2))
def test_who_stays_is_enough_and_nobody_more_could_go(
    places: int, executors: tuple[Executor, ...], held: list[str], avoided: frozenset[str]
) -> None:
    staff = staff_for(places, executors, held, avoided)
    stay = [e for e in executors if e not in staff.leaving]
    usable = [e for e in stay if e.host not in avoided]
    if staff.leaving:
        assert slots(usable) >= places
    if slots(usable) >= places:
        assert staff.total == len(stay)
        assert stay == usable
        assert all(slots(usable) - e.slots < places for e in usable)
    else:
        assert staff.total > len(executors)


@given(PLACES, staffs(), st.lists(HOSTS), st.frozensets(HOSTS, max_size=2))
def test_what_was_decided_is_not_undone(
    places: int, executors: tuple[Executor, ...], held: list[str], avoided: frozenset[str]
) -> None:
    staff = staff_for(places, executors, held, avoided)
    if staff.leaving:
        stay = tuple(e for e in executors if e not in staff.leaving)
        again = staff_for(places, stay, [e.host for e in stay], avoided)
        assert (again.total, again.leaving) == (staff.total, ())


@given(PLACES, staffs())
def test_who_was_chosen_to_leave_is_chosen_again_when_its_places_have_left(
    places: int, executors: tuple[Executor, ...]
) -> None:
    before = place_on_hosts("cores", places, slots_on_hosts(executors))
    staff = staff_for(places, executors, before)
    gone = emptied(executors, staff.leaving)
    kept = slots_on_hosts(e for e in executors if e.host not in gone)
    again = staff_for(places, executors, place_on_hosts("cores", places, kept, before))
    assert gone <= emptied(executors, again.leaving)


def test_one_that_is_too_large_stays_and_a_smaller_one_goes() -> None:
    large, small = Executor("0", "a", 4), Executor("1", "b", 1)
    assert staff_for(4, [large, small], ["a", "a", "a", "b"]).leaving == (small,)


def test_new_ones_are_taken_to_be_like_the_others() -> None:
    executors = [Executor("0", "a", 4), Executor("1", "b", 4), Executor("2", "c", 1)]
    assert staff_for(14, executors, []).total == 5


def test_avoided_hosts_keep_theirs_while_the_others_are_too_few() -> None:
    """Else the cluster manager would start another one there, to be given back again."""
    executors = [Executor("0", "a", 1), Executor("1", "b", 1)]
    staff = staff_for(2, executors, ["b", "b"], avoided={"a"})
    assert (staff.total, staff.leaving) == (3, ())
    assert staff_for(1, executors, ["b"], avoided={"a"}).leaving == (executors[0],)


# --- asking and giving back -----------------------------------------------------------------------


class Cluster:
    """A cluster manager and the places on its hosts, without Spark."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, hosts: str) -> None:
        self.executors = tuple(Executor(f"{n}", host, 1) for n, host in enumerate(hosts))
        self.avoided: frozenset[str] = frozenset()
        self.leaving: frozenset[str] = frozenset()
        self.said: list[str] = []
        self.busy: set[str] = set()
        self.answers = True
        monkeypatch.setattr(module, "ask_for", self.ask_for)
        monkeypatch.setattr(module, "release", self.release)
        self.clock = ManualClock()
        self.elastic = Elastic(None, self, self.said.append, self.clock)  # type: ignore[arg-type] # stand-ins

    def ask_for(self, _context: Any, total: int) -> bool:
        self.said.append(f"keep {total}")
        return self.answers

    def release(self, _context: Any, ids: Sequence[str]) -> frozenset[str]:
        return frozenset(ids) - self.busy

    def leave(self, hosts: frozenset[str]) -> None:
        self.leaving = hosts

    def gone(self, ids: frozenset[str]) -> None:
        self.executors = tuple(e for e in self.executors if e.id not in ids)

    def commit(self, hosts: str, needed: int = 0) -> list[str]:
        """Commit a batch with a place on each of these hosts; gives what is said then."""
        self.said.clear()
        self.elastic.after(manifest(hosts), needed)
        return list(self.said)


def manifest(hosts: str) -> Manifest:
    return Manifest(
        version=1,
        epoch=0,
        clock=0.0,
        seed=0,
        watermark=None,
        places=len(hosts),
        hosts=list(hosts),
        key_groups=8,
        runs=[],
        topology={},
    )


def test_executors_without_a_place_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, "abc")
    assert cluster.commit("abc") == ["keep 3"]
    assert cluster.commit("bc") == ["keep 2", "gave back executors on a"]


def test_a_host_with_places_is_left_first(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, "ab")
    cluster.executors = (Executor("0", "a", 2), Executor("1", "b", 2))
    assert cluster.commit("ab") == []
    assert cluster.leaving == {"a"}
    assert cluster.commit("bb") == ["keep 1", "gave back executors on a"]


def test_whoever_is_at_work_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, "abc")
    cluster.busy = {"0"}
    assert cluster.commit("bc") == ["keep 2"]
    cluster.busy = set()
    assert cluster.commit("bc") == ["gave back executors on a"]


def test_more_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, "ab")
    assert cluster.commit("abab") == ["keep 4", "asked for 4 executors; there are 2"]
    assert cluster.commit("abab") == []


def test_nobody_is_given_back_who_would_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, "abc")
    cluster.answers = False
    assert cluster.commit("bc") == ["keep 2"]
    cluster.answers = True
    assert cluster.commit("bc") == ["keep 2", "gave back executors on a"]


def test_nothing_is_done_where_executors_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, "")
    assert cluster.commit("abab") == []


# --- where it cannot be ---------------------------------------------------------------------------


class Context:
    """A context of Spark with a master and settings."""

    def __init__(self, master: str, **conf: str) -> None:
        self.master, self.conf = master, {k.replace("_", "."): v for k, v in conf.items()}

    def getConf(self) -> dict[str, str]:
        return self.conf


@pytest.mark.parametrize(
    ("context", "told"),
    [
        (Context("local[2]"), "Spark at local[2] has none besides the driver"),
        (
            Context("spark://ant:7077", spark_dynamicAllocation_enabled="true"),
            "spark.dynamicAllocation.enabled lets Spark decide about them",
        ),
    ],
)
def test_it_says_why_executors_stay(context: Any, told: str) -> None:
    said: list[str] = []
    anchoring: Any = None
    assert elastic(SparkSettings(executors="elastic"), context, anchoring, said.append) is None
    assert said == [f"executors stay as they are: {told}"]


def test_executors_are_fixed_unless_said_otherwise() -> None:
    said: list[str] = []
    anchoring: Any = None
    context: Any = Context("spark://ant:7077")
    assert elastic(SparkSettings(), context, anchoring, said.append) is None
    assert isinstance(
        elastic(SparkSettings(executors="elastic"), context, anchoring, said.append), Elastic
    )
    assert said == []


def test_other_words_and_named_hosts_are_refused() -> None:
    wrong: Any = "many"
    with pytest.raises(UsageError, match=r"executors: expected one of \['fixed', 'elastic'\]"):
        SparkSettings(executors=wrong)
    with pytest.raises(UsageError, match="placing of elastic executors"):
        SparkSettings(executors="elastic", placing=("a",))


def test_executors_are_asked_for_before_places_need_them(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, "ab")
    assert cluster.commit("ab", needed=4) == ["keep 4", "asked for 4 executors; there are 2"]
    assert cluster.commit("ab", needed=4) == []


def test_executors_stay_that_will_be_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, "abc")
    assert cluster.commit("ab", needed=3) == ["keep 3"]
    assert cluster.commit("ab", needed=2) == ["keep 2", "gave back executors on c"]
    assert [executor.host for executor in cluster.executors] == ["a", "b"]


def test_how_long_executors_take_to_come_is_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, "a")
    cluster.commit("a", needed=2)
    guessed = cluster.elastic.starting
    cluster.clock.advance(3.0)
    cluster.commit("a", needed=2)
    assert cluster.elastic.starting == guessed
    cluster.executors += (Executor("9", "b", 1),)
    cluster.clock.advance(1.0)
    cluster.commit("a", needed=2)
    assert cluster.elastic.starting == 4.0
