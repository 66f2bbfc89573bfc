"""Where durable state lies: a folder on this machine or in an object store.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     location = Location.of(folder)
...     location.write("runs/a", b"data")
...     location.read("runs/a").to_pybytes(), location.names("runs")
(b'data', ['a'])
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from thalweg.errors import StateError, explain
from thalweg.statelog.stores import TEMPORARY, Data, Taken, local_path, open_store

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_HINTS = {
    errno.ENOSPC: "the disk is full: free some space or choose another state location",
    errno.EDQUOT: "the quota is used up: free some space or choose another state location",
    errno.EACCES: "give the user of this process the right to read and write there",
    errno.EPERM: "give the user of this process the right to read and write there",
    errno.EROFS: "it is mounted read-only: choose another state location",
    errno.ENOTDIR: "a file is where a folder should be: choose another state location",
}
# A secret that is not escaped may hold slashes and at signs: all up to the last sign is hidden.
_USER = re.compile(r"//(?:[^/@\s]*:\S*|[^/@\s]*)@")
_SECRET_OPTION = re.compile(r"([?&][^=&\s]*(?:key|secret|sig|token|password)[^=&\s]*)=[^&\s'\"]*")
_REACHABLE = "check that this machine can reach it and may read and write there"


class MissingObject(StateError):
    """An object that should be at a location is not there."""


@dataclass(frozen=True, repr=False)
class Location:
    """A folder of immutable objects, named by a URI; cheap to send to other processes.

    The file system is opened when first used, once per process. Names may have folders in them.
    Every error is a :class:`StateError` that names the object and the location.
    """

    uri: str

    def __str__(self) -> str:
        """Give the URI without the credentials that may be in it."""
        return _without_credentials(self.uri)

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"

    @property
    def for_hadoop(self) -> str:
        """The location as Hadoop, and so Spark's readers and writers, name it."""
        folder = self.uri.partition("?")[0]
        if folder.startswith("file://"):
            return unquote(folder.removeprefix("file://"))
        # Hadoop has settings for the credentials of S3, and refuses them in a URI.
        return re.sub(r"^s3://([^/@]*@)?", "s3a://", folder)

    @classmethod
    def of(cls, place: str | os.PathLike[str]) -> Location:
        """Make a location of a path or a URI (``file://``, ``s3://``, ``hdfs://`` ...)."""
        text = os.fspath(place)
        if text.startswith("file:"):
            text = unquote(re.sub(r"^file:(//)?", "", text))
        elif _SCHEME.match(text):
            folder, mark, options = re.sub(r"^s3[an]://", "s3://", text).partition("?")
            return cls(folder.rstrip("/") + mark + options)
        if not text:
            raise StateError(explain("state location", expected="a path or URI", got="nothing"))
        return cls(Path(os.path.abspath(text)).as_uri())

    @property
    def is_local(self) -> bool:
        """Whether objects are files of this machine, to be memory-mapped where they are."""
        return self.uri.startswith("file:")

    def child(self, folder: str) -> Location:
        """Give the location of a folder in this one."""
        if self.is_local:
            return Location.of(Path(local_path(self.uri)) / folder)
        parent, mark, options = self.uri.partition("?")
        return Location(f"{parent}/{folder.strip('/')}{mark}{options}")

    def write(self, name: str, data: Data) -> None:
        """Write an object as a whole or not at all; one that is there already is replaced."""
        with self._explained("write", name):
            open_store(self.uri).write(name, data, new=False)

    def write_new(self, name: str, data: Data) -> None:
        """Write an object that must not be there yet.

        On a local file system with hard links exactly one of several writers succeeds;
        elsewhere it is checked before writing.
        """
        with self._explained("write", name):
            open_store(self.uri).write(name, data, new=True)

    def read(self, name: str) -> pa.Buffer:
        """Give the content of an object; memory-mapped on a local file system."""
        with self._explained("read", name):
            return open_store(self.uri).read(name)

    def delete(self, name: str) -> None:
        """Delete an object; one that is not there is no error."""
        with self._explained("delete", name), contextlib.suppress(FileNotFoundError):
            open_store(self.uri).delete(name)

    def exists(self, name: str) -> bool:
        """Say whether an object is there."""
        with self._explained("look for", name):
            return open_store(self.uri).exists(name)

    def names(self, folder: str = "") -> list[str]:
        """List the objects in a folder, sorted, without those in folders below it."""
        with self._explained("list", folder or "."), contextlib.suppress(FileNotFoundError):
            return sorted(name for name in open_store(self.uri).names(folder) if name[0] != ".")
        return []

    def sweep(self, folder: str = "") -> None:
        """Delete what killed writers have left in a folder; nobody may write there now."""
        with self._explained("list", folder or "."), contextlib.suppress(FileNotFoundError):
            for name in open_store(self.uri).names(folder):
                if name.startswith(".") and name.endswith(TEMPORARY):
                    self.delete(f"{folder}/{name}" if folder else name)

    def probe(self) -> None:
        """Write, read back and delete an object, so that a bad location is found out early."""
        name, data = f".probe-{secrets.token_hex(8)}", b"thalweg"
        self.write_new(name, data)
        found = self.read(name).to_pybytes()
        self.delete(name)
        if found != data:
            raise StateError(
                explain(f"state location {self}", "", repr(data), repr(found), _REACHABLE)
            )

    @contextlib.contextmanager
    def _explained(self, act: str, name: str) -> Iterator[None]:
        try:
            yield
        except (Taken, OSError, pa.ArrowException, ImportError) as error:
            subject = f"cannot {act} {name!r} at {self}"
            raise _explain_failure(subject, act, error) from error


def _explain_failure(subject: str, act: str, error: Exception) -> StateError:
    if isinstance(error, Taken):
        expected, got = "a name that is not taken", "an object of that name"
        hint = "does another run use this location?"
        return StateError(explain(subject, "", expected, got, hint))
    if isinstance(error, FileNotFoundError) and act != "write":
        hint = "was it deleted, or is the location another one?"
        return MissingObject(explain(subject, "", "an object", "none of that name", hint))
    number = error.errno if isinstance(error, OSError) else None
    got = _without_credentials(str(error))
    return StateError(explain(subject, got=got, hint=_HINTS.get(number or 0, _REACHABLE)))


def _without_credentials(text: str) -> str:
    return _SECRET_OPTION.sub(r"\1=***", _USER.sub("//***@", text))
