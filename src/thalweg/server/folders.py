"""What a server keeps on disk, and where; each file has one writer."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from thalweg.errors import UsageError, explain
from thalweg.metrics import Snapshot
from thalweg.server.life import Outcome, Record

T = TypeVar("T")
#: How often a lock is tried that somebody may only be looking at, and seconds in between.
_LOOKS, _LOOK = 10, 0.01


class Address(msgspec.Struct, frozen=True):
    """Where a server listens, and what it runs."""

    host: str
    port: int
    pid: int
    started: float
    allowed: tuple[str, ...] = ()


class Status(msgspec.Struct, frozen=True):
    """What a runner says of itself, again and again."""

    pid: int
    #: When something was heard of the run; one that hangs is silent.
    updated: float
    #: Name of the topology in its program; empty before it is loaded.
    topology: str = ""
    #: When tuples began to flow; None before.
    since: float | None = None
    #: Whether its sources are asked.
    active: bool = True
    snapshot: Snapshot | None = None
    #: The scaling policy that leads; empty where there is none.
    policy: str = ""
    #: What was refused last, and why; empty where nothing was.
    refused: str = ""


class View(msgspec.Struct, frozen=True):
    """What there is to know of a topology."""

    record: Record
    alive: bool
    #: What its runner said last; of one that is over, what it said at the end.
    status: Status | None = None
    pid: int | None = None

    @property
    def last_error(self) -> str:
        """What went wrong last: what its process has refused, or how the one before died."""
        died, refused = self.record.error, self.status.refused if self.status else ""
        return (refused or died) if self.alive else (died or refused)


def write(path: Path, value: Any, lasting: bool = True) -> None:
    """Write a value as JSON: there is the old one or the new one, also after a power cut."""
    new = path.with_name(f".{path.name}.new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(value))
        file.flush()
        if lasting:
            os.fsync(file.fileno())
    new.replace(path)
    if lasting:
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def read(path: Path, kind: type[T]) -> T | None:
    """Read a value; None when there is none. What cannot be read raises."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise UsageError(
            explain(f"file {str(path)!r}", "", "what a server wrote", str(error))
        ) from error


class Lock:
    """A file that one process holds; the kernel lets go of it when that process is gone."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take_patiently(self) -> int | None:
        """Take it, also while somebody only looks: that takes it for a moment."""
        for _ in range(_LOOKS):
            if (held := self.take()) is not None:
                return held
            time.sleep(_LOOK)
        return None

    def take(self) -> int | None:
        """Give a descriptor that holds it; None while somebody else does."""
        held = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            return None
        return held

    @property
    def held(self) -> bool:
        """Whether a process holds it; several may look at once."""
        try:
            looking = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(looking, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(looking)
        return False

    @property
    def holder(self) -> int | None:
        """The process that said so last; only while it is held."""
        with suppress(OSError, ValueError):
            return int(self._path.read_text())
        return None


def say_holder(held: int, pid: int | None) -> None:
    """Write down who holds a lock; None when that is not known yet."""
    os.ftruncate(held, 0)
    os.pwrite(held, b"" if pid is None else str(pid).encode(), 0)


@dataclass(frozen=True)
class Home:
    """The folder of one topology."""

    path: Path

    @property
    def name(self) -> str:
        """The name of the topology."""
        return self.path.name

    @property
    def log(self) -> Path:
        """What it prints, and what happens to it; the older half has ``.1`` behind its name."""
        return self.path / "log"

    @property
    def checkpoint(self) -> Path:
        """Its state."""
        return self.path / "checkpoint"

    def recordings(self) -> list[Path]:
        """Give what its runners have recorded, the newest last."""
        found = (path for path in self.path.glob("run-*.sqlite") if _number(path) is not None)
        return sorted(found, key=lambda path: _number(path) or 0)

    def next_recording(self) -> Path:
        """Give the file for a new runner; of those before, only the last one stays."""
        before = self.recordings()
        for path in before[:-1]:
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                path.with_name(name).unlink(missing_ok=True)
        number = (_number(before[-1]) or 0) + 1 if before else 1
        return self.path / f"run-{number}.sqlite"

    @property
    def lock(self) -> Lock:
        """What its runner holds."""
        return Lock(self.path / "runner")

    def record(self) -> Record | None:
        """Read what is wanted; the server writes it."""
        return read(self.path / "record.json", Record)

    def keep(self, record: Record) -> None:
        """Write down what is wanted."""
        write(self.path / "record.json", record)

    def status(self) -> Status | None:
        """Read how a runner is; the runner writes it. One of another version may say nothing."""
        with suppress(UsageError):
            return read(self.path / "status.json", Status)
        return None

    def say(self, status: Status) -> None:
        """Write down how the runner is."""
        write(self.path / "status.json", status, lasting=False)

    def outcome(self) -> Outcome | None:
        """Read how a runner ended; the runner writes it. One of another version may say nothing."""
        with suppress(UsageError):
            return read(self.path / "outcome.json", Outcome)
        return None

    def end(self, outcome: Outcome) -> None:
        """Write down how the runner ended."""
        write(self.path / "outcome.json", outcome)

    def clear(self) -> None:
        """Forget what the last runner said."""
        for name in ("status.json", "outcome.json"):
            (self.path / name).unlink(missing_ok=True)


def _number(recording: Path) -> int | None:
    number = recording.stem.removeprefix("run-")
    return int(number) if number.isdecimal() else None


@dataclass(frozen=True)
class Root:
    """The folder of a server."""

    path: Path

    def prepare(self) -> None:
        """Make the folder; one that others can look into is refused."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)
        mode = stat.S_IMODE(self.path.stat().st_mode)
        if mode & 0o077:
            hint = f"state and settings are in it; if it is yours alone: chmod 700 {self.path}"
            subject = f"folder {str(self.path)!r}"
            raise UsageError(explain(subject, "", "mode 700", f"{mode:o}", hint))
        self._topologies.mkdir(exist_ok=True)

    @property
    def token(self) -> Path:
        """The file with the token."""
        return self.path / "token"

    @property
    def log(self) -> Path:
        """What happens to the server."""
        return self.path / "server.log"

    @property
    def lock(self) -> Lock:
        """What a server that runs holds."""
        return Lock(self.path / "server")

    @property
    def _topologies(self) -> Path:
        return self.path / "topologies"

    def home(self, name: str) -> Home:
        """Give the folder of a topology."""
        return Home(self._topologies / name)

    def homes(self) -> list[Home]:
        """Give the folders of all topologies that were ever submitted and not forgotten."""
        if not self._topologies.is_dir():
            return []
        return [Home(path) for path in sorted(self._topologies.iterdir()) if path.is_dir()]

    def address(self) -> Address | None:
        """Read where the server listens."""
        return read(self.path / "server.json", Address)

    def announce(self, address: Address) -> None:
        """Write down where the server listens."""
        write(self.path / "server.json", address)

    def leave(self) -> None:
        """Take the address away."""
        (self.path / "server.json").unlink(missing_ok=True)
