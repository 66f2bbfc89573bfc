"""Spark's Java processes live for seconds in tests: with these options they start in less time.

Nothing of PySpark is imported here: commands of a cluster must not wait for that.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

#: Code is compiled once, one thread collects garbage, and nothing is said of an archive.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xlog:disable"
_PROGRAM = Path(__file__).parents[1] / "examples" / "trending.py"


def java_options() -> str:
    """Give the options; they do no harm where there is no archive yet."""
    return f'{_SHORT_LIVED} -XX:SharedArchiveFile="{_archive()}"'


def make_archive() -> None:
    """Make the archive, unless it is there; another process may be at it."""
    archive = _archive()
    with open(archive.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            _make(archive)


def _archive() -> Path:
    """Name the file with classes as a JVM has them in memory; one of another Java is not used."""
    return Path(sys.prefix, f"spark-{importlib.metadata.version('pyspark')}.jsa")


def _make(archive: Path) -> None:
    """Run a program once; spark-submit is its parent, so that the JVM ends in good order."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    submit = Path(found.origin).with_name("bin") / "spark-submit"
    command = [submit, "--master", "local[2]", __file__, "run", _PROGRAM, "--on", "spark"]
    new = archive.with_suffix(".new")
    options = f'{_SHORT_LIVED} -XX:ArchiveClassesAtExit="{new}"'
    env = {**os.environ, "SPARK_SUBMIT_OPTS": options, "PYSPARK_PYTHON": sys.executable}
    subprocess.run(  # noqa: S603 (our own command)
        [*command, "--set", "posts=20_000"], env=env, capture_output=True, check=True
    )
    new.replace(archive)


if __name__ == "__main__":  # spark-submit takes programs that end in .py
    from thalweg.cli import main

    main()
