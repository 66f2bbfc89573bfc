"""The report of a reconfiguration reads well and survives JSON."""

from __future__ import annotations

import msgspec
import pytest

from thalweg.migration.report import Report, Score


def test_without_scores_it_is_one_line() -> None:
    report = Report(epoch=1, reason="asked", keys=1, bytes=1, steps=1, pause=0.0)
    assert report.text() == "epoch 1 (asked): moved 1 key, 1 bytes, in 1 step, pause 0.000 s"


def test_only_known_scores_are_named() -> None:
    report = Report(2, "locality", 0, 0, 0, 0.0, before=Score(0.5, 1.1), after=Score(0.625, 1.0))
    assert report.text().splitlines() == [
        "epoch 2 (locality): moved nothing",
        "locality 50.0 % before, 62.5 % after; imbalance 1.10, 1.00",
    ]


def test_it_says_how_far_off_shares_of_few_tuples_may_be() -> None:
    few = Score(0.5, 1.1, error=0.021)
    report = Report(2, "locality", 0, 0, 0, 0.0, before=few, after=Score(0.625, 1.0, error=0.011))
    assert report.text().splitlines()[1] == (
        "locality 50.0 % before, 62.5 % after (up to 3 points off); imbalance 1.10, 1.00"
    )


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999 bytes"), (1000, "1.0 kB"), (2_500_000, "2.5 MB"), (7 * 10**12, "7,000.0 GB")],
)
def test_sizes_have_a_unit_that_fits(count: int, text: str) -> None:
    assert f", {text}, in" in Report(1, "asked", 3, count, 1, 0.0).text()


def test_json_keeps_what_is_not_known_apart_from_zero() -> None:
    report = Report(1, "asked", 3, 4, 1, 0.25, predicted=Score(0.0, 1.0))
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report
