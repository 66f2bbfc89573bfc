"""What is read from the recording of a phase."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, cast

from thalweg.demo.describing import Wave
from thalweg.demo.findings import Finding, found
from thalweg.demo.phases import Phase
from thalweg.recording.reading import Recording

#: 100 records of calm, from 0 s on; 1000 of a rush; 100 of calm.
WAVE = Wave.of(1.0, 100, 1000)


class Records:
    """A recording of some records."""

    def __init__(self, *records: dict[str, Any]) -> None:
        self._records = records

    def records(self, kinds: Collection[str]) -> Iterator[dict[str, Any]]:
        return (record for record in self._records if record["kind"] in kinds)


def look(
    at: float, done: int, degree: int = 4, local: int | None = 0, sent: int | None = 0
) -> dict[str, Any]:
    first = {"degree": degree, "received": done, "local": local, "shuffled": sent}
    last = {"degree": degree, "received": done, "local": 0, "shuffled": 0}
    return {"kind": "progress", "at": at, "snapshot": {"components": [{}, first, last]}}


def keys(at: float, locality: float, total: float) -> dict[str, Any]:
    return {"kind": "keys", "at": at, "links": [{"total": total, "locality": locality}]}


def read(*records: dict[str, Any]) -> Finding:
    return found(Phase("spark", True), WAVE, cast("Recording", Records(*records)))


def test_the_rate_is_that_of_the_rush_alone() -> None:
    finding = read(look(0, 0), look(10, 100), look(12, 1100), look(30, 1200))
    assert finding.rate == 500.0


def test_tuples_that_were_shuffled_are_counted_in_the_rush_alone() -> None:
    finding = read(
        look(1, 100, local=0, sent=100),
        look(2, 600, local=400, sent=200),
        look(3, 1100, local=750, sent=350),
        look(4, 1200, local=750, sent=450),
    )
    assert finding.shuffled == 0.25


def test_where_a_runtime_does_not_count_nobody_says_what_was_shuffled() -> None:
    none = {"local": None, "sent": None}
    looks = [look(at, done, **none) for at, done in ((1, 100), (2, 1100), (3, 1200))]
    finding = read(looks[0], keys(1.5, 0.75, 10), *looks[1:])
    assert (finding.locality, finding.shuffled) == (0.75, None)


def test_locality_is_weighed_by_what_was_counted_in_the_rush() -> None:
    finding = read(
        look(1, 100), keys(1, 0.0, 900), keys(1.2, 0.5, 10), keys(1.8, 1.0, 30), look(2, 1100),
        keys(2.5, 0.0, 900), look(3, 1200),
    )  # fmt: skip
    assert finding.locality == 0.875


def test_one_place_is_no_locality() -> None:
    finding = read(
        look(0, 0, 1), keys(1, 1.0, 50), look(2, 100, 1), keys(2.5, 1.0, 50), look(3, 500, 4),
        keys(3.5, 0.5, 10), look(4, 1100, 4), look(5, 1200, 1),
    )  # fmt: skip
    assert finding.locality == 0.5
    alone = read(look(0, 0, 1), keys(1, 1.0, 50), look(2, 1100, 1), look(3, 1200, 1))
    assert (alone.locality, alone.shuffled) == (None, None)


def test_tasks_are_those_over_the_whole_run() -> None:
    finding = read(
        look(0, 0, 1), look(2, 100, 4), {"kind": "reconfigured", "at": 2.0}, look(3, 1100, 4),
        look(4, 1200, 1),
    )  # fmt: skip
    assert finding.tasks == 2.5
    # The rush is from 2 s on.
    assert finding.rush_tasks == 4.0
    assert (finding.degrees[0], max(finding.degrees), finding.degrees[-1]) == (1, 4, 1)
    assert finding.reconfigurations == 1


def test_a_run_with_one_look_has_figures_as_well() -> None:
    finding = read(look(2, 1200))
    assert finding.rate == 550.0
    assert (finding.shuffled, finding.locality, finding.tasks) == (None, None, 4.0)
