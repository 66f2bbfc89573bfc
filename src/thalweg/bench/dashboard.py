"""What ``--ui --record`` costs a word count on the local runtime, with one visitor of the page.

Also where half of the words are refused: that has figures of its own.

Every run has a process of its own and all cores. Runs without and with come as without, with,
with, without, so that neither gets the better half of a machine that changes. The visitor is
another process, which listens to the stream of records until the run ends.
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any, ClassVar

import thalweg as tw
from thalweg.bench import dashboard_visitor
from thalweg.bench import inline_wordcount as chains
from thalweg.bench.measuring import apart, environment
from thalweg.bench.wordcount import vectorised_flow
from thalweg.cli.dashboards import FollowOptions
from thalweg.cli.running import run_topology
from thalweg.cli.watching import Begun, Listener
from thalweg.errors import ThalwegError
from thalweg.events import Event, RunFinished, RunStarted
from thalweg.topology import Topology

#: Words that are made; they come again and again.
_MADE = 1_000_000
#: Words that are counted before a run is measured.
_WARM = 10_000
#: Whole blocks get more words, because they hardly take any time; refusals take long.
_SHARES = {"bolts": 1.0, "blocks": 8.0, "refused": 0.125}
#: Those whose loss is the loss of all.
_USUAL = ("bolts", "blocks")
# Names of files in the folder of a run: its recording, and what says that it has a visitor.
_RECORDING, _VISITED = "run.sqlite", "visited"
# Seconds to wait for the visitor, and between two looks for it.
_PATIENCE, _LOOK = 120.0, 0.01
PLAIN, SHOWN = "without", "with"
_MEASURES = {"overhead_share": "per_second", "cpu_overhead_share": "per_cpu_second"}
_TURN = (PLAIN, SHOWN, SHOWN, PLAIN)


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    words: int = 4_000_000
    #: Turns; in each there are two runs without and two with.
    repeat: int = 9


def topology(name: str, lines: list[str]) -> Topology:
    """Describe a word count: with bolts in plain Python, with whole blocks, or with refusals."""
    if name == "bolts":
        return chains.bolts_topology(lines, chains.Arrivals())
    if name == "refused":
        return _refusing(lines)
    return vectorised_flow(lines).build()


def _refusing(lines: list[str]) -> Topology:
    """Describe a word count that refuses every second word."""
    turns = cycle((True, False))

    def known(word: str) -> str:
        if next(turns):
            text = "no such word"
            raise ValueError(text)
        return word

    flow = tw.Flow("wordcount")
    source = flow.source("sentences", tw.items(lines), fields={"sentence": str})
    words = source.flat_map(str.split, name="split", fields={"word": str})
    kept = words.map(known, name="known", fields={"word": str}, on_error="skip")
    kept.sink("end", chains.Arrivals())
    return flow.build()


@dataclass
class Timed:
    """Follows a run: notes time and processor time at its beginning and end, and the words."""

    #: A file without which the run does not begin: the visitor makes it when it listens.
    visited: Path | None = None
    noted: list[tuple[float, float]] = field(default_factory=list)
    words: int = 0
    steers: ClassVar[bool] = False

    @contextmanager
    def watch(self, _run: Begun) -> Iterator[Listener]:
        """Listen, when the visitor does."""
        until = time.monotonic() + _PATIENCE
        while self.visited is not None and not self.visited.exists():
            if time.monotonic() > until:
                text = f"nobody has visited the page within {_PATIENCE:.0f} s"
                raise ThalwegError(text)
            time.sleep(_LOOK)
        yield self._listen

    def _listen(self, event: Event) -> None:
        if isinstance(event, RunFinished):
            self.words = event.snapshot.component("split").emitted
        if isinstance(event, RunStarted | RunFinished):
            self.noted.append((time.perf_counter(), time.process_time()))


def measured(
    name: str, words: int, follow: FollowOptions, visited: Path | None = None
) -> dict[str, float]:
    """Count words as ``thalweg run`` does; start and end of page and recording are told apart."""
    run_topology(topology(name, chains.sentences(_WARM)), tw.Local(), {}, quiet=True)
    lines = chains.sentences(min(words, _MADE)) * max(1, words // _MADE)
    timed, begin = Timed(visited), time.perf_counter()
    watchers = [*follow.watchers, timed]
    run_topology(topology(name, lines), tw.Local(), {}, quiet=True, watchers=watchers)
    over, expected = time.perf_counter(), len(lines) * chains.SENTENCE
    if timed.words != expected:
        text = f"{name} saw {timed.words} words instead of {expected}"
        raise ThalwegError(text)
    (began, used_before), (ended, used) = timed.noted
    return {
        "per_second": expected / (ended - began),
        "per_cpu_second": expected / (used - used_before),
        "before": began - begin,
        "after": over - ended,
    }


def once(name: str, how: str, words: int) -> dict[str, float]:
    """Measure one run in a process of its own; the page has a visitor in another."""
    module, job = "thalweg.bench.dashboard", (name, str(words))
    if how == PLAIN:
        return apart(module, *job)
    with tempfile.TemporaryDirectory() as folder:
        port = str(_free_port())
        with _visitor(port, folder) as came:
            found = apart(module, *job, folder, port)
            size = (Path(folder) / _RECORDING).stat().st_size
            return found | {"visitor_records": came(), "bytes": size}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def _visitor(port: str, folder: str) -> Iterator[Callable[[], int]]:
    """Start the visitor; what is given waits for its end, and says how many records came."""
    listens = str(Path(folder) / _VISITED)
    command = [sys.executable, "-P", dashboard_visitor.__file__, port, listens]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 (ours)

        def came() -> int:
            records = int(process.communicate()[0])
            if not records:
                text = "the visitor of the page has seen nothing"
                raise ThalwegError(text)
            return records

        try:
            yield came
        finally:
            process.kill()


def run(quick: bool, report: Callable[[str], None], options: Options) -> dict[str, Any]:
    """Word count without and with --ui --record and a visitor of the page: what that costs."""
    if quick:
        options = Options(400_000, 1)
    results: dict[str, dict[str, list[dict[str, float]]]] = {
        name: {PLAIN: [], SHOWN: []} for name in _SHARES
    }
    for turn in range(options.repeat):
        for name, share in _SHARES.items():
            for how in _TURN:
                found = once(name, how, int(options.words * share))
                results[name][how].append(found)
                said = f"{turn + 1}/{options.repeat} {name} {how}"
                report(f"{said}: {found['per_second']:,.0f} words/s")
    return {
        "name": "dashboard",
        "environment": environment() | asdict(options),
        "results": results,
        "summary": summary(results),
    }


def summary(results: Mapping[str, Mapping[str, Sequence[Mapping[str, float]]]]) -> dict[str, float]:
    """Say which share of the words per second is lost: turn by turn, and the median of that.

    In a turn the machine is about the same for both, and between turns it is not. ``_best`` and
    ``_median`` compare the best and the median of all runs; ``cpu_overhead_share`` is the same for
    words per second of processor time. Without a name it is the worse of bolts and blocks.

    >>> speeds = {"without": (100.0, 90.0, 50.0, 50.0), "with": (98.0, 92.0, 49.0, 49.0)}
    >>> turns = {
    ...     how: [{"per_second": each, "per_cpu_second": 7.0} for each in all]
    ...     for how, all in speeds.items()
    ... }
    >>> found = summary({"bolts": turns, "blocks": turns})
    >>> [round(found[f"overhead_share{kind}"], 3) for kind in ("", "_best", "_median")]
    [0.01, 0.02, -0.007]
    >>> found["cpu_overhead_share"]
    0.0
    """
    found: dict[str, float] = {}
    for measure, rate in _MEASURES.items():
        for kind, compare in _COMPARED.items():
            shares = {
                f"{name}_{measure}{kind}": 1
                - compare([t[rate] for t in hows[SHOWN]], [t[rate] for t in hows[PLAIN]])
                for name, hows in results.items()
            }
            worst = max(shares[f"{name}_{measure}{kind}"] for name in _USUAL)
            found |= {f"{measure}{kind}": worst, **shares}
    return found


def _by_turn(shown: Sequence[float], plain: Sequence[float]) -> float:
    turns = range(0, len(plain), 2)
    return statistics.median(sum(shown[n : n + 2]) / sum(plain[n : n + 2]) for n in turns)


_COMPARED: Mapping[str, Callable[[Sequence[float], Sequence[float]], float]] = {
    "": _by_turn,
    "_best": lambda shown, plain: max(shown) / max(plain),
    "_median": lambda shown, plain: statistics.median(shown) / statistics.median(plain),
}


def main(name: str, words: str, folder: str = "", port: str = "0") -> None:
    """Measure one run, for another process."""
    follow, visited = FollowOptions(), None
    if folder:
        follow = FollowOptions(record=Path(folder) / _RECORDING, ui=True, ui_port=int(port))
        visited = Path(folder) / _VISITED
    sys.stdout.write(json.dumps(measured(name, int(words), follow, visited)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
