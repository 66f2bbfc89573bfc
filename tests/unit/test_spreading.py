"""Spread aggregates: what they consist of, what they send, and what they refuse."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import thalweg as tw
from thalweg.flow import KeyedStream
from thalweg.testing import PAUSE, ManualClock, run_inline

POSTS = [("eu", 1), ("us", 2), ("eu", 3), ("eu", None), ("us", 5), ("eu", 6)]


def keyed(key: str = "region") -> KeyedStream:
    fields = {"region": str, "likes": int}
    return tw.Flow("posts").source("posts", tw.items([]), fields=fields).key_by(key)


def run(stream: Any, rows: list[Any] = POSTS, block_rows: int = 2) -> Any:
    runtime = tw.Inline(block_rows=block_rows)
    return run_inline(stream.flow.build(), {"posts": rows}, runtime=runtime)


def test_a_spread_aggregate_is_two_components() -> None:
    counts = keyed().count("counts", spread=True, degree=3, on_error="skip", ttl="7 days")
    parts, table = list(counts.flow.build())[1:]
    assert (parts.name, parts.kind, parts.table) == ("counts.parts", tw.Kind.STATELESS, "")
    assert (table.name, table.kind, table.table) == ("counts", tw.Kind.KEYED, "counts")
    assert (parts.degree, parts.options.on_error, parts.options.ttl) == (3, "skip", None)
    assert (table.degree, table.options.on_error, table.options.ttl) == (3, "skip", 7 * 86400.0)
    assert [type(i.grouping).__name__ for c in (parts, table) for i in c.inputs] == [
        "Shuffle",
        "Fields",
    ]


def test_one_partial_value_per_key_and_block_goes_to_the_table() -> None:
    outcome = run(keyed().count("counts", spread=True), [("eu", 1)] * 50, block_rows=10)
    assert outcome.result.metrics.component("counts").received == 5
    assert outcome.table("counts") == {"eu": 50}


@pytest.mark.parametrize("spread", [False, True])
def test_changes_are_those_of_the_aggregate_that_is_not_spread(spread: bool) -> None:
    stream = keyed().sum("likes", "likes", into="total", spread=spread)
    stream.sink("out", tw.call(lambda t: None))
    assert stream.fields.describe() == "region: string, total: int64"
    sent = [tuple(row) for row in run(stream).outputs["out"]]
    assert sent == [("eu", 1), ("us", 2), ("eu", 4), ("us", 7), ("eu", 10)]


def test_changes_of_a_fold_have_the_type_of_its_values() -> None:
    fold = keyed().fold("n", 0.0, lambda n: n + 0.5, merge=lambda a, b: a + b, spread=True)
    fold.sink("out", tw.call(lambda t: None))
    assert [tuple(t) for t in run(fold, block_rows=6).outputs["out"]] == [("eu", 2.0), ("us", 1.0)]


@pytest.mark.parametrize("merge", [None, 3])
def test_a_fold_without_merge_is_not_spread(merge: Any) -> None:
    with pytest.raises(tw.TopologyError, match=r"fold 'n' with spread=True: expected merge="):
        keyed().fold("n", 0, lambda n: n + 1, merge=merge, spread=True)


def test_a_merge_for_later_does_no_harm() -> None:
    fold = keyed().fold("n", 0, lambda n: n + 1, merge=lambda a, b: a + b)
    assert run(fold).table("n") == {"eu": 4, "us": 2}


def test_an_error_names_the_part_and_the_tuple() -> None:
    fold = keyed().fold("n", 0, lambda n, likes: n + likes, merge=int.__add__, spread=True)
    with pytest.raises(tw.ComponentError, match=r"'n\.parts'(.|\n)*likes=None"):
        run(fold)


def test_what_cannot_be_merged_is_refused_and_the_rest_stays() -> None:
    def strict(a: int, b: int) -> int:
        if b == 2:
            raise ValueError(b)
        return a + b

    fold = keyed().fold("n", 0, lambda n: n + 1, merge=strict, spread=True, on_error="skip")
    outcome = run(fold, [("eu", 1)] * 7, block_rows=3)
    assert outcome.table("n") == {"eu": 7}
    outcome = run(fold, [("eu", 1)] * 5, block_rows=3)
    assert outcome.table("n") == {"eu": 3}
    assert outcome.result.metrics.component("n").errors == 1


def test_values_that_state_cannot_hold_are_not_spread() -> None:
    fold = keyed().fold("n", Decimal(0), lambda n: n + 1, merge=lambda a, b: a + b, spread=True)
    with pytest.raises(tw.StateError, match=r"'n\.parts': expected plain values.*got Decimal"):
        run(fold)


def test_reduce_keeps_what_values_are() -> None:
    def longer(a: Any, b: Any) -> Any:
        return max(a, b, key=lambda v: (v is not None, v))

    assert run(keyed().reduce("most", "likes", longer, spread=True)).table("most") == {
        "eu": 6,
        "us": 5,
    }


def test_partial_values_come_back_as_what_they_are() -> None:
    def noted(value: tuple[int, frozenset[Any]], likes: int | None) -> Any:
        return value[0] + 1, value[1] | {likes}

    def united(a: Any, b: Any) -> Any:
        return a[0] + b[0], a[1] | b[1]

    flow = tw.Flow("posts")
    posts = flow.source("posts", tw.items(POSTS), fields={"region": str, "likes": int})
    posts.key_by("region").fold("seen", (0, frozenset()), noted, merge=united, spread=True)
    found = flow.run(on=tw.Inline(block_rows=2)).table("seen")
    assert found == {"eu": (4, frozenset([1, 3, None, 6])), "us": (2, frozenset([2, 5]))}


@pytest.mark.parametrize("spread", [False, True])
def test_a_key_is_forgotten_after_its_time(spread: bool) -> None:
    rows = [("eu", 1), ("eu", 1), PAUSE(2), ("eu", 1), PAUSE(4), ("eu", 1)]
    counts = keyed().count("counts", ttl="3 s", spread=spread)
    runtime = tw.Inline(block_rows=1, clock=ManualClock())
    outcome = run_inline(counts.flow.build(), {"posts": rows}, runtime=runtime)
    assert [tuple(row) for row in outcome.outputs["counts"]] == [
        ("eu", 1),
        ("eu", 2),
        ("eu", 3),
        ("eu", 1),
    ]


def test_a_tally_passes_tuples_on_and_is_not_spread() -> None:
    with pytest.raises(tw.TopologyError, match="option 'spread'"):
        keyed().stream.tally("n", key="region", spread=True)
