"""Tasks that move in the simulator: where a link is full, a core overloaded, a machine idle."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from thalweg.connectors.profiles import constant, steps
from thalweg.control.assigning import Triggers
from thalweg.control.scaling.policies import NAMES, named
from thalweg.control.scaling.static import Static
from thalweg.control.scaling.values import Decision, Timing, View
from thalweg.groupings import Fields, Grouping, Shuffle
from thalweg.placement.values import Machine, Need
from thalweg.runtimes.simulator.outcome import Outcome
from thalweg.runtimes.simulator.runtime import Simulator
from thalweg.workloads.stages import Law, Reads, Stage, Staged

#: Nobody moves.
NEVER = Triggers(link=float("inf"), over=float("inf"))
#: 1 MB/s can leave each machine; tasks are dealt out to machines in turn.
NARROW = tuple(Machine(f"m{i}", bandwidth=1e6) for i in range(8))
WORLD = Simulator(NARROW, noise=0.0, strategy="equal")
#: 20 tuples/s of 100 kB: twice what a link can carry.
RATE = constant(20, "20 minutes")


def chain(grouping: Grouping | None = None) -> Staged:
    """Source -> a -> b, with large tuples from a to b; a task of b can do 100 tuples/s."""
    reads = Reads("a", size=100_000.0)
    return Staged(
        "chain",
        (
            Stage("a", (Reads("source"),), (0.001,), Need(0.2, 256.0)),
            Stage("b", (reads,), (0.01,), Need(0.5, 256.0), grouping=grouping or Shuffle()),
        ),
        values=7,
    )


@dataclass(frozen=True)
class More:
    """Scales b out as if that helped, up to six tasks."""

    timing: Timing = Timing(grace=0.0)  # noqa: RUF009 (frozen)
    name: str = "more"

    def decide(self, view: View) -> tuple[Decision, ...]:
        degree = view.degrees["b"]
        return (Decision("b", min(6, degree + 1), degree, "tuples are late"),)


def late_in_the_end(outcome: Outcome) -> float:
    """Seconds that tuples take in the last five minutes."""
    taken = [m.latency for m in outcome.course[-30:] if m.latency is not None]
    return max(taken)


def test_a_full_link_congests_and_more_tasks_do_not_help() -> None:
    world = replace(WORLD, assigning=NEVER)
    for policy in (Static(), More()):
        outcome = world.run(chain(), RATE, Law(7), policy)
        assert outcome.links["a -> b"] > 0.95
        assert outcome.lost > 0.4
    assert outcome.course[-1].degrees["b"] == 6


@pytest.mark.parametrize("grouping", [Shuffle(), Fields(("value",))], ids=["shuffle", "fields"])
def test_tasks_that_talk_much_are_brought_together_and_the_congestion_ends(
    grouping: Grouping,
) -> None:
    outcome = WORLD.run(chain(grouping), RATE, Law(7), Static())
    ((time, made),) = outcome.moves
    assert time <= 60.0
    assert made.components == ("b",)  # a stays
    assert made.reason == "the link of 'a' -> 'b' is 100 % full"
    assert outcome.lost < 0.05
    assert late_in_the_end(outcome) < 0.1
    assert outcome.emitted == outcome.in_time + outcome.late + outcome.pending


def test_whoever_moves_rests_for_a_pause() -> None:
    world = replace(WORLD, pause=40.0)
    outcome = world.run(chain(), RATE, Law(7), Static())
    ((time, _),) = outcome.moves
    resting = [m for m in outcome.course if time < m.time <= time + 40]
    assert [m.done for m in resting] == [0] * 4
    assert outcome.course[-1].done > 0
    assert outcome.reconfigurations == 1


@pytest.mark.parametrize("name", [*NAMES, "more"])
def test_no_policy_scales_out_what_a_link_limits(name: str) -> None:
    """Nobody can move: both stages need most of a machine's memory."""
    far = Staged(
        "far",
        tuple(replace(stage, need=Need(0.2, 3000.0)) for stage in chain().stages),
        values=7,
    )
    policy = More() if name == "more" else named(name)
    outcome = WORLD.run(far, RATE, Law(7), policy)
    assert outcome.moves == ()
    assert {m.degrees["b"] for m in outcome.course} == {1}
    for each in outcome.applied:
        assert "the link of 'a' -> 'b' is 100 % full, and more tasks do not help" in each.refused
    assert name != "more" or outcome.applied


def test_links_that_are_not_full_move_nobody() -> None:
    outcome = WORLD.run(chain(), constant(8, "10 minutes"), Law(7), Static())
    assert 0.7 < outcome.links["a -> b"] < 0.9
    assert outcome.moves == ()


def test_streams_that_fill_a_link_only_together_count_as_well() -> None:
    both = (Reads("a", size=60_000.0),)
    stages = [replace(chain().stages[1], name=name, reads=both) for name in ("b", "c")]
    topology = Staged("two", (chain().stages[0], *stages), values=7)
    outcome = WORLD.run(topology, constant(10, "20 minutes"), Law(7), Static())
    assert outcome.links["a -> b"] < 0.7
    assert outcome.moves != ()
    assert late_in_the_end(outcome) < 0.1


def test_where_nothing_is_better_nobody_moves() -> None:
    """Six tasks of b do not fit beside a, and most of what it sends has to leave its machine."""
    world = replace(WORLD, machines=NARROW[:3])
    busy = Staged(
        "busy",
        tuple(replace(stage, need=Need(1.0, 256.0)) for stage in chain().stages),
        values=7,
    )
    outcome = world.run(busy, RATE, Law(7), Static(), {"b": 5})
    assert outcome.moves == ()


# --- machines -------------------------------------------------------------------------------------


def test_an_overloaded_core_gives_tasks_to_one_that_has_room() -> None:
    """Three tasks come to share two cores; when another component has gone they can spread."""
    stages = tuple(
        Stage(name, (Reads("source"),), (cost,), Need(1.0, 256.0), most=8)
        for name, cost in (("a", 0.04), ("b", 0.04))
    )
    topology = Staged("crowded", stages)
    world = Simulator((Machine("m0"), Machine("m1")), noise=0.0)

    @dataclass(frozen=True)
    class Goes:
        """One task of a less after ten minutes."""

        timing: Timing = Timing(grace=0.0)  # noqa: RUF009 (frozen)
        name: str = "goes"

        def decide(self, view: View) -> tuple[Decision, ...]:
            degree = view.degrees["a"]
            return (Decision("a", 3 if view.now < 600 else 1, degree, "it is time"),)

    profile = steps([(20, "20 minutes")])
    stuck = replace(world, assigning=NEVER)
    degrees = {"a": 3, "b": 2}
    before = stuck.run(topology, profile, Law(), Goes(), degrees)
    after = world.run(topology, profile, Law(), Goes(), degrees)
    assert before.moves == ()
    assert [made.components for _, made in after.moves] != []
    assert all("more of a core than there is" in made.reason for _, made in after.moves)
    assert late_in_the_end(after) < late_in_the_end(before)


def test_a_machine_that_does_little_is_emptied_if_that_is_asked_for() -> None:
    topology = Staged(
        "idle",
        tuple(
            Stage(name, (Reads("source"),), (0.01,), Need(0.2, 256.0)) for name in ("a", "b", "c")
        ),
    )
    world = Simulator(tuple(Machine(f"m{i}") for i in range(3)), noise=0.0, strategy="equal")
    profile = constant(5, "20 minutes")
    spread = world.run(topology, profile, Law(), Static())
    assert spread.moves == ()
    assert spread.machine_seconds == 3 * 1200
    packing = replace(world, assigning=Triggers(under=0.2))
    packed = packing.run(topology, profile, Law(), Static())
    assert packed.machine_seconds < 1.5 * 1200
    assert packed.late == spread.late == 0
    assert all("a machine is used to" in made.reason for _, made in packed.moves)
