"""Keys move and degrees change at the same time, while threads pause anywhere."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from delaying import delayed
from keyed_counting import WAYS, Counting, running

import thalweg as tw
from conformance.moving import Anywhere, Restless
from thalweg.components import Bolt
from thalweg.events import Event, Reconfigured
from thalweg.runtimes.local.runtime import Local


class Same(Bolt):
    """Passes keys on."""

    outputs = {"key": int}

    def process(self, t: Any) -> None:
        """Pass it on."""
        self.emit(t.key)


def topology(keys: list[int], seen: list[Any], chance: random.Random) -> tw.Topology:
    builder = tw.TopologyBuilder("changes")
    builder.add_spout("keys", tw.items(keys), fields={"key": int})
    builder.add_bolt("same", Same(), degree=chance.randint(1, 3)).shuffle("keys")
    builder.add_bolt("count", Counting(), degree=chance.randint(1, 3)).fields("same", "key")
    other = Counting()
    other.table = "beside"
    builder.add_bolt("beside", other, degree=2, order="sender").fields("same", "key")
    builder.add_bolt("out", tw.collect(seen), order="total").global_("count")
    return builder.build()


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(30))
def test_the_output_is_that_of_a_serial_execution(seed: int) -> None:
    chance, seen, told = random.Random(seed), list[Any](), list[Event]()
    keys = [chance.randrange(30) for _ in range(chance.randrange(100, 500))]
    made = topology(keys, seen, chance)
    local = Local(
        workers=chance.randint(1, 4),
        block_rows=(rows := chance.randint(1, 20)),
        most_block_rows=rows,
        window=chance.choice((2, 5, 50)),
        queue_rows=chance.choice((1, 20, 1000)),
        rerouter=Anywhere({"keys": keys}, seed, budget=chance.choice((1 << 62, 50))),
        **delayed(seed),
        **chance.choice(list(WAYS.values())),
    )
    steering = Restless(made, seed, times=8)
    result = made.run(on=local, steering=steering, listen=told.append)
    assert [(t.key, t.count) for t in seen] == running(keys)
    assert result.table("counts") == result.table("beside") == Counter(keys)
    assert any(isinstance(event, Reconfigured) for event in told)
