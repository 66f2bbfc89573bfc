"""The replay of real data, on data that was made: drift and new keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from thalweg.bench.locality_real import WAYS, Options, locality_real
from thalweg.errors import UsageError

GROUPS, ROWS, PERIODS = 6, 6000, 4


@pytest.fixture
def drifting(tmp_path: Path) -> Path:
    """Users like tags of their group; tags change their group, and new ones come, every period."""
    rng = np.random.default_rng(1)
    path = tmp_path / "posts.tsv"
    lines = ["user\ttag"]
    for period in range(PERIODS):
        users = rng.integers(0, 120, ROWS)
        liked = (users + period) % GROUPS + GROUPS * rng.integers(
            10 * period, 10 * period + 30, ROWS
        )
        lines += [f"{user}\t{tag}" for user, tag in zip(users, liked, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_online_follows_drift_and_adopts_new_keys(drifting: Path, tmp_path: Path) -> None:
    said: list[str] = []
    options = Options(str(drifting), "user,tag", GROUPS, PERIODS, plots=str(tmp_path / "plots"))
    found = locality_real(False, said.append, options)
    summary, periods = found["summary"], found["results"]["periods"]
    assert list(periods) == list(WAYS)
    assert all(len(rows) == PERIODS for rows in periods.values())
    assert periods["offline"][0]["fitted"]["locality"] > 0.9
    assert summary["locality, hash"] < 0.3
    assert summary["locality, online, following"] > summary["locality, online"] + 0.1
    assert summary["worst imbalance against its bound"] <= 1
    edges = found["results"]["edges"]
    assert edges[-1]["locality"] >= edges[0]["locality"]
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {
        "locality.svg",
        "imbalance.svg",
        "edges.svg",
    }
    assert len(said) == 1 + PERIODS


def test_it_needs_data_and_keys() -> None:
    with pytest.raises(UsageError, match="--data PATH --keys FIRST,SECOND"):
        locality_real(True, print, Options())
