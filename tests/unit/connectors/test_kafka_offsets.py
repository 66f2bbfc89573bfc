"""Which task reads a partition, and where it begins: without a server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.connectors.kafka_offsets import (
    Bounds,
    checked_start,
    first_offsets,
    name_of,
    owned,
    settled,
    split,
)
from thalweg.errors import StateError, UsageError

TOPICS = st.dictionaries(
    st.from_regex(r"[a-zA-Z0-9._-]{1,8}", fullmatch=True), st.integers(0, 20), max_size=4
)


@given(TOPICS, st.integers(1, 6))
def test_each_partition_has_one_task(topics: dict[str, int], degree: int) -> None:
    shares = [owned(topics, task, degree) for task in range(degree)]
    expected = {name_of(topic, p) for topic, count in topics.items() for p in range(count)}
    found = [name for share in shares for name in share]
    assert sorted(found) == sorted(expected)


@given(TOPICS, st.integers(1, 6))
def test_tasks_of_a_topic_have_equally_many_partitions(topics: dict[str, int], degree: int) -> None:
    for topic, count in topics.items():
        sizes = {len(owned({topic: count}, task, degree)) for task in range(degree)}
        assert max(sizes) - min(sizes) <= 1


@given(TOPICS, TOPICS, st.integers(1, 6))
def test_partitions_stay_where_they_are_when_more_come(
    topics: dict[str, int], more: dict[str, int], degree: int
) -> None:
    grown = {
        topic: topics.get(topic, 0) + more.get(topic, 0) for topic in topics.keys() | more.keys()
    }
    for task in range(degree):
        assert set(owned(topics, task, degree)) <= set(owned(grown, task, degree))


@given(st.from_regex(r"[a-zA-Z0-9._-]{1,8}", fullmatch=True), st.integers(0, 10_000))
def test_names_of_partitions_can_be_read_back(topic: str, partition: int) -> None:
    assert split(name_of(topic, partition)) == (topic, partition)


BOUNDS = {"a/0": Bounds(5, 10), "a/1": Bounds(0, 0)}


@pytest.mark.parametrize(
    ("start", "kept", "expected"),
    [
        ("earliest", {}, {"a/0": 5, "a/1": 0}),
        ("latest", {}, {"a/0": 10, "a/1": 0}),
        ({"a/0": 7}, {}, {"a/0": 7, "a/1": 0}),
        ("latest", {"a/0": 6}, {"a/0": 6, "a/1": 0}),
    ],
)
def test_a_group_comes_before_start(start: object, kept: dict[str, int], expected: object) -> None:
    assert first_offsets(BOUNDS, start, kept) == expected  # type: ignore[arg-type] # any of them


def test_partitions_that_a_position_does_not_name_are_new() -> None:
    assert settled({"a/0": 7}, BOUNDS, skip=False) == ({"a/0": 7, "a/1": 0}, [])


def test_messages_that_are_gone_are_an_error_or_told() -> None:
    with pytest.raises(StateError, match="message 2 of partition a/0"):
        settled({"a/0": 2}, BOUNDS, skip=False)
    assert settled({"a/0": 2}, BOUNDS, skip=True) == (
        {"a/0": 5, "a/1": 0},
        ["a/0: messages 2 to 4 are gone"],
    )


@pytest.mark.parametrize("skip", [False, True])
def test_a_position_behind_the_end_is_that_of_another_topic(skip: bool) -> None:
    with pytest.raises(StateError, match="made anew"):
        settled({"a/0": 11}, BOUNDS, skip)


@pytest.mark.parametrize("start", ["middle", 7, {("b", 0): 1}, {"a": 1}])
def test_a_start_that_makes_no_sense_is_refused(start: object) -> None:
    with pytest.raises(UsageError):
        checked_start(start, ["a"])
