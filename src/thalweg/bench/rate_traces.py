"""Rates of real streams: requests to web sites, mentions, calls of a model. They are not ours.

They are read where they are, and cut into halves: one to choose by, one to report on. Of each half
the part around its highest rate is taken.
"""

from __future__ import annotations

import csv
import gzip
import io
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from thalweg.connectors.profiles import Profile, of_counts
from thalweg.errors import StateError, explain
from thalweg.runtimes.simulator.fifo import Floats


@dataclass(frozen=True, eq=False)
class Rates:
    """Tuples in intervals of so many seconds."""

    counts: Floats
    every: float

    @property
    def halves(self) -> tuple[Rates, Rates]:
        """Cut it in the middle."""
        middle = len(self.counts) // 2
        return Rates(self.counts[:middle], self.every), Rates(self.counts[middle:], self.every)

    def around_peak(self, seconds: float) -> Rates:
        """Take as many seconds, with the highest rate two thirds behind their beginning.

        >>> Rates(np.array([1, 2, 3, 9, 3, 2, 1.0]), 10.0).around_peak(30.0).counts.tolist()
        [2.0, 3.0, 9.0]
        """
        length = min(round(seconds / self.every), len(self.counts))
        first = int(self.counts.argmax()) - length * 2 // 3
        first = min(max(first, 0), len(self.counts) - length)
        return Rates(self.counts[first : first + length], self.every)

    def profile(self, highest: float) -> Profile:
        """Make a stream of it whose highest rate is so many tuples per second."""
        return of_counts(self.counts * (highest * self.every / self.counts.max()), self.every)


def traces(folder: Path) -> Iterator[tuple[str, Rates]]:
    """Read those that a folder has."""
    for path, (names, read) in _FILES.items():
        if (folder / path).is_file():
            for name in names:
                yield name, read(folder / path, name)


def _per_minute(path: Path, _name: str) -> Rates:
    with gzip.open(path, "rt") as file:
        counts = [float(row["count"]) for row in csv.DictReader(file)]
    return Rates(np.array(counts), 60.0)


def _per_second(path: Path, _name: str) -> Rates:
    with gzip.open(path, "rt") as file:
        counts = np.array([float(line) for line in file])
    whole = counts[: len(counts) // 60 * 60]
    return Rates(whole.reshape(-1, 60).sum(axis=1), 60.0)


def _member(path: Path, name: str) -> Rates:
    """Read one series of an archive; its counts are those of 5 minutes."""
    with tarfile.open(path) as archive:
        file = archive.extractfile(f"{name}.csv")
        if file is None:
            raise StateError(explain(f"trace {name!r}", str(path), "a file", "something else"))
        rows = csv.DictReader(io.TextIOWrapper(file))
        return Rates(np.array([float(row["value"]) for row in rows]), 300.0)


def _stamps(path: Path, _name: str) -> Rates:
    """Count events in intervals of 10 s."""
    with gzip.open(path, "rt") as file:
        texts = [row["TIMESTAMP"][:26] for row in csv.DictReader(file)]
    times = np.array([datetime.fromisoformat(text).timestamp() for text in texts])
    at = ((times - times.min()) // 10).astype(np.int64)
    # The last interval is not complete.
    return Rates(np.bincount(at)[:-1].astype(np.float64), 10.0)


_NAB = (
    "elb_request_count_8c0756",
    "Twitter_volume_AAPL",
    "Twitter_volume_AMZN",
    "Twitter_volume_GOOG",
)
_FILES: Mapping[str, tuple[Iterable[str], Callable[[Path, str], Rates]]] = {
    "worldcup98/worldcup98_requests_per_minute.csv.gz": (("worldcup98",), _per_minute),
    "nasa_http/nasa_requests_per_second.txt.gz": (("nasa_http",), _per_second),
    "nab/nab_rates.tar.xz": (_NAB, _member),
    "azure_llm/AzureLLMInferenceTrace_code.csv.gz": (("azure_llm_code",), _stamps),
    "azure_llm/AzureLLMInferenceTrace_conv.csv.gz": (("azure_llm_conv",), _stamps),
}
