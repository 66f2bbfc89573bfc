"""``thalweg doctor``: what this machine has, what is missing, and what to do about it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from thalweg.cli.output import writing
from thalweg.cli.showing import print_table, result_console, rows_table, size_text
from thalweg.runtimes.spark.reaching import OLDEST_JAVA, found_java, java_version

Level = Literal["ok", "note", "problem"]

#: Bytes of memory and of disk below which runs are likely to fail, or to be slow.
_LEAST, _LITTLE = 512 << 20, 2 << 30
_LEAST_DISK, _LITTLE_DISK = 256 << 20, 5 << 30
_OLDEST_PYTHON, _OLDEST_SPARK = (3, 11), (4, 2)
_FEW_FILES = 1024
#: Packages that are not always there, by the extra that brings them; and what they are for.
_EXTRAS: Mapping[str, tuple[str, str]] = {
    "kafka": ("confluent-kafka", "sources and sinks of Kafka"),
    "mqtt": ("paho-mqtt", "sources of MQTT"),
    "postgres": ("psycopg", "the sink to_postgres"),
    "otel": ("opentelemetry-sdk", "metrics for OpenTelemetry"),
    "mtkahypar": ("mtkahypar", "another engine for key graphs"),
}


@dataclass(frozen=True)
class Machine:
    """What there is, as far as it matters."""

    python: tuple[int, int]
    cores: int
    #: Bytes: of memory in all and free, and free on the disks of this folder and of what spills.
    memory: int
    free_memory: int
    disk: int
    temporary: int
    #: Files that may be open.
    files: int
    #: Where Java is, if anywhere, and its version.
    java: str | None
    java_version: int | None
    #: Versions of installed packages.
    packages: Mapping[str, str]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    level: Level
    what: str
    found: str
    #: What to do, where something is to be done.
    advice: str = ""


def show() -> bool:
    """Print what was found; says whether all is well enough to run topologies."""
    findings = list(judged(looked()))
    rows = [
        {"": each.level, "what": each.what, "found": each.found, "what to do": each.advice}
        for each in findings
    ]
    with writing():
        print_table(result_console(), rows_table(rows))
        problems = sum(each.level == "problem" for each in findings)
        sys.stdout.write(f"{_verdict(problems)}\n")
    return not problems


def _verdict(problems: int) -> str:
    if problems:
        return f"{problems} {'problem' if problems == 1 else 'problems'}: see above what to do"
    return "ready: thalweg run FILE.py"


def looked() -> Machine:
    """Look at this machine."""
    java = found_java()
    return Machine(
        python=sys.version_info[:2],
        cores=_cores(),
        memory=_memory("MemTotal"),
        free_memory=_memory("MemAvailable"),
        disk=shutil.disk_usage(Path.cwd()).free,
        temporary=shutil.disk_usage(tempfile.gettempdir()).free,
        files=_open_files(),
        java=java,
        java_version=None if java is None else java_version(java),
        packages=dict(_installed()),
    )


def judged(machine: Machine) -> Iterator[Finding]:
    """Say what to make of it."""
    yield _python(machine)
    yield _cores_found(machine)
    yield _size("memory free", machine.free_memory, (_LEAST, _LITTLE), _FREE_MEMORY)
    yield _size("disk here", machine.disk, (_LEAST_DISK, _LITTLE_DISK), _FREE_DISK)
    yield _size("disk for what spills", machine.temporary, (_LEAST_DISK, _LITTLE_DISK), _TMPDIR)
    few = machine.files < _FEW_FILES
    advice = f"ulimit -n {4 * _FEW_FILES}" if few else ""
    yield Finding("note" if few else "ok", "open files", f"{machine.files:,}", advice)
    yield _spark(machine)
    yield _java(machine)
    for extra, (package, purpose) in _EXTRAS.items():
        if package in machine.packages:
            yield Finding("ok", extra, f"{package} {machine.packages[package]}")
        else:
            advice = f"pip install 'thalweg[{extra}]', for {purpose}"
            yield Finding("note", extra, "not installed", advice)


_FREE_MEMORY = "end other programs; Spark alone takes 1 to 2 GB"
_FREE_DISK = "free some, or keep state elsewhere (--checkpoint)"
_TMPDIR = "free some, or set TMPDIR to a folder with more room"


def _python(machine: Machine) -> Finding:
    version = ".".join(map(str, machine.python))
    if machine.python < _OLDEST_PYTHON:
        return Finding("problem", "Python", version, "install Python 3.11 or newer")
    return Finding("ok", "Python", f"{version} ({platform.machine()})")


def _cores_found(machine: Machine) -> Finding:
    if machine.cores > 1:
        return Finding("ok", "cores", str(machine.cores))
    return Finding("note", "cores", "1", "all runs here, but nothing at the same time")


def _size(what: str, free: int, bounds: tuple[int, int], advice: str) -> Finding:
    least, little = bounds
    level: Level = "problem" if free < least else "note" if free < little else "ok"
    return Finding(level, what, size_text(free), "" if level == "ok" else advice)


def _spark(machine: Machine) -> Finding:
    found = machine.packages.get("pyspark")
    if found is None:
        advice = "only for --on spark: pip install 'thalweg[spark]'"
        return Finding("note", "Spark", "not installed", advice)
    if _numbers(found)[:2] < _OLDEST_SPARK:
        return Finding("problem", "Spark", found, "pip install 'thalweg[spark]', 4.2 or newer")
    if _numbers(machine.packages.get("pandas", "0"))[:1] >= (3,):
        pandas = machine.packages["pandas"]
        return Finding(
            "problem", "Spark", f"{found} with pandas {pandas}", "pip install 'pandas<3'"
        )
    return Finding("ok", "Spark", found)


def _java(machine: Machine) -> Finding:
    needed: Level = "problem" if "pyspark" in machine.packages else "note"
    advice = f"for Spark: version {OLDEST_JAVA} or newer (apt-get install openjdk-17-jre-headless)"
    if machine.java is None:
        home = os.environ.get("JAVA_HOME")
        if home:
            where = f"none at JAVA_HOME, which is {home}"
            return Finding(needed, "Java", where, f"set JAVA_HOME rightly, or unset it; {advice}")
        return Finding(needed, "Java", "none on PATH", advice)
    version = machine.java_version
    found = f"{'?' if version is None else version} ({machine.java})"
    if version is None or version < OLDEST_JAVA:
        return Finding(needed, "Java", found, advice)
    return Finding("ok", "Java", found)


def _numbers(version: str) -> tuple[int, ...]:
    """Read the leading numbers of a version.

    >>> _numbers("4.3.0.dev1"), _numbers("3.0rc1")
    ((4, 3, 0), (3,))
    """
    found = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        found.append(int(part))
    return tuple(found)


def _cores() -> int:
    """Count the cores that this process may use; a container may have fewer than the machine."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return usable or 1


def _memory(name: str) -> int:
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) << 10
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _open_files() -> int:
    import resource  # noqa: PLC0415 (not on every system)

    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _installed() -> Iterator[tuple[str, str]]:
    for package in ("pyspark", "pandas", *(package for package, _ in _EXTRAS.values())):
        with suppress(importlib.metadata.PackageNotFoundError):
            yield package, importlib.metadata.version(package)
