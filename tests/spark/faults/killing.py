"""Starts the program, lets it be killed, starts it again, and compares what it came to."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from program import Job, link, main, row

import thalweg as tw
from quickworkers import worker_settings

KILLED = -9
#: Forks drivers from a process that has loaded everything, which is much of what a start takes.
FORKING = multiprocessing.get_context("forkserver")
#: Who begins a process looks at all others, and how one has ended can be read only once.
LOCK = threading.Lock()
#: Seconds after which a process counts as hung; only a broken run takes that long. Below pytest's
#: own limit (``faulthandler_timeout``), so that the log is shown and the process does not stay.
WATCHDOG = 500


def arm(job: Job, *lines: str) -> Path:
    """Arm failpoints; gives their folder."""
    folder = Path(job.folder, "failpoints")
    folder.mkdir(exist_ok=True)
    (folder / "armed").write_text("\n".join(lines))
    return folder


def failures(job: Job) -> set[str]:
    """Name the failures that have happened so far."""
    return {path.name for path in Path(job.folder, "failpoints").iterdir() if ":" in path.name}


def start(job: Job) -> int:
    """Run the program in a process of its own until it ends; gives its exit code."""
    folder = Path(job.folder)
    failpoints = str(folder / "failpoints")
    config = {"spark.executorEnv.THALWEG_FAILPOINTS": failpoints, **worker_settings(), **job.config}
    config["spark.executor.extraJavaOptions"] = job.java
    (folder / "job.json").write_text(json.dumps({**asdict(job), "config": config}))
    if job.frame:
        write_input(job)
    here = {"PYSPARK_PYTHON": sys.executable, "TMPDIR": str(folder), "SPARK_SUBMIT_OPTS": job.java}
    env = {**os.environ, "THALWEG_FAILPOINTS": failpoints, **here}
    (folder / "log").touch()
    process = FORKING.Process(target=_drive, args=(folder, env))
    with LOCK:
        process.start()
    ended = wait([process.sentinel], WATCHDOG)
    with LOCK:
        if not ended:
            process.kill()
        process.join()
        code = process.exitcode
        process.close()
    assert ended, (folder / "log").read_text()[-5000:]
    assert code is not None
    return code


def _drive(folder: Path, env: dict[str, str]) -> None:
    """Be the program, in a process that was forked for it."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    tempfile.tempdir = None  # in the folder that the environment names
    with open(folder / "log", "ab") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    main(Path("job.json"))


def run_until_done(job: Job, look: Callable[[], None] = lambda: None) -> int:
    """Start the program again and again until nobody kills it; gives how often it was killed.

    After each time ``look`` has a look at what is there.
    """
    kills = 0
    while (code := start(job)) != 0:
        assert code == KILLED, Path(job.folder, "log").read_text()[-5000:]
        kills += 1
        look()
    look()
    return kills


#: Drivers at a time: one that starts does not keep two cores busy.
AT_ONCE = 2
#: Jobs by what happens to them, and how often their drivers were killed.
Finished = dict[Any, tuple[Job, Future[int]]]


def finish(armed: Mapping[Any, tuple[Job, list[str]]]) -> Finished:
    """Arm the failpoints of each job, and run all until they are done."""
    found: Finished = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, (job, lines) in armed.items():
            arm(job, *lines)
            found[name] = job, pool.submit(run_until_done, job)
    return found


def write_input(job: Job) -> None:
    """Write the rows as files, one per batch, for Structured Streaming to read."""
    folder = Path(job.folder, "input")
    folder.mkdir(exist_ok=True)
    for first in range(0, job.rows, job.batch):
        lines = [
            json.dumps(dict(zip(("n", "word", "tag"), row(n), strict=True)))
            for n in range(first, min(first + job.batch, job.rows))
        ]
        path = folder / f"{first:06}.json"
        if not path.exists():
            path.write_text("\n".join(lines))
            os.utime(path, (1_700_000_000 + first, 1_700_000_000 + first))  # read in this order


# --- what must come out -------------------------------------------------------------------------


def expected_tables(rows: Iterable[int]) -> dict[str, dict[str, int]]:
    """Count without Thalweg."""
    words, tags = zip(*(row(n)[1:] for n in rows), strict=True)
    return {"by_word": dict(Counter(words)), "by_tag": dict(Counter(tags))}


def expected_lines(rows: Iterable[int]) -> Counter[tuple[Any, ...]]:
    """Compute the chain of each word without Thalweg."""
    values: Counter[str] = Counter()
    lines: Counter[tuple[Any, ...]] = Counter()
    for n, word, _ in map(row, rows):
        values[word] = link(values[word], n)
        lines[n, word, values[word]] += 1
    return lines


def written_lines(job: Job) -> Counter[tuple[Any, ...]]:
    """Read what the sink beside the driver wrote."""
    lines = Path(job.folder, "out.jsonl").read_text().splitlines()
    return Counter(tuple(json.loads(line)) for line in lines)


def check(job: Job, tables: dict[str, dict[str, int]], repeated: int | None = 0) -> None:
    """Compare tables, the table sink and the file with those of an undisturbed run.

    A sink that is not a table may be given the last batch again after a crash; ``repeated`` says
    how many rows that must be, None for any. What it is given again is the same.
    """
    every = range(job.rows)
    assert tables == expected_tables(every)
    kept = tw.read_table(Path(job.folder, "kept"), verify=True).to_table().to_pylist()
    assert Counter(tuple(found.values()) for found in kept) == Counter(map(row, every))
    lines = written_lines(job)
    assert set(lines) == set(expected_lines(every))
    assert repeated in (None, lines.total() - len(lines))


def tables_of(job: Job) -> dict[str, dict[str, int]]:
    """Read the tables that the program wrote down."""
    found: dict[str, dict[str, int]] = json.loads(Path(job.folder, "tables.json").read_text())
    return found
