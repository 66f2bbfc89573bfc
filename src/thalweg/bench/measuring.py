"""What benchmarks share: repetitions side by side, and the environment they ran in."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from thalweg.errors import ThalwegError, UsageError, explain

_TESTS = Path(__file__).parents[3] / "tests"
# Seconds between two looks at a process.
_LOOK_EVERY = 0.05


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


def apart(module: str, *arguments: str) -> dict[str, float]:
    """Measure in a process of its own: ``python -m MODULE ARGUMENTS`` ends with a line of JSON.

    The most threads that were seen there are added to it; looking from outside disturbs nobody.
    """
    command, threads = [sys.executable, "-m", module, *arguments], 1
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:  # noqa: S603 (this program)
        while True:
            try:
                out, told = process.communicate(timeout=_LOOK_EVERY)
                break
            except subprocess.TimeoutExpired:
                threads = max(threads, len(os.listdir(f"/proc/{process.pid}/task")))
    if process.returncode:
        text = f"{module} {arguments[0]} failed: {told.strip().splitlines()[-1:]}"
        raise ThalwegError(text)
    found: dict[str, float] = json.loads(out.splitlines()[-1])
    return {"threads": threads} | found


def installed(peer: str, report: Callable[[str], None]) -> bool:
    """Say whether a peer can be compared with, and report it if not."""
    found = importlib.util.find_spec(peer) is not None
    if not found:
        report(f"{peer} is not installed and left out (pip install 'thalweg[peers]')")
    return found


def cluster_class(bench: str) -> Any:
    """Give the class of the cluster of ``scripts/cluster``, which a checkout has."""
    return of_checkout(bench, "sparkcluster.cluster", "scripts/cluster").Cluster


def of_checkout(bench: str, module: str, script: str) -> Any:
    """Give a module that a script of a checkout uses."""
    if not (_TESTS / module.partition(".")[0]).is_dir():
        hint = "run it in a checkout of the repository"
        raise UsageError(explain(f"bench {bench!r}", "", script, "none", hint))
    if str(_TESTS) not in sys.path:
        sys.path.insert(0, str(_TESTS))
    return importlib.import_module(module)
