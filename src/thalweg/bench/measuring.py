"""What benchmarks share: repetitions side by side, and the environment they ran in."""

from __future__ import annotations

import gc
import importlib
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from thalweg.errors import UsageError, explain

_TESTS = Path(__file__).parents[3] / "tests"


def environment() -> dict[str, Any]:
    """Say on what the figures were measured."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "pyarrow": version("pyarrow"),
        "numpy": version("numpy"),
        "thalweg": version("thalweg"),
    }


def side_by_side(
    candidates: Mapping[str, Callable[[], int]], repeat: int, report: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    """Run the candidates in turn, ``repeat`` times; give items per second, best and median.

    Turns spread the noise of the machine over all of them. A candidate returns its item count.
    """
    rates: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(repeat):
        for name, candidate in candidates.items():
            gc.collect()
            begin = time.perf_counter()
            items = candidate()
            rates[name].append(items / (time.perf_counter() - begin))
            report(f"{turn + 1}/{repeat} {name}: {rates[name][-1]:,.0f}/s")
    return {
        name: {"best": max(values), "median": statistics.median(values), "all": values}
        for name, values in rates.items()
    }


def cluster_class(bench: str) -> Any:
    """Give the class of the cluster of ``scripts/cluster``, which a checkout has."""
    if not (_TESTS / "sparkcluster").is_dir():
        hint = "run it in a checkout of the repository"
        raise UsageError(explain(f"bench {bench!r}", "", "scripts/cluster", "none", hint))
    sys.path.insert(0, str(_TESTS))
    return importlib.import_module("sparkcluster.cluster").Cluster
