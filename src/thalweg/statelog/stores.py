"""The file systems below a :class:`thalweg.statelog.location.Location`."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import secrets
from pathlib import Path
from typing import Protocol, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from thalweg.errors import StateError

Data: TypeAlias = "bytes | pa.Buffer"

#: Ends the hidden names of objects that are not complete.
TEMPORARY = ".tmp"
#: Stores in which an object appears as a whole or not at all; elsewhere it is renamed into place.
_ATOMIC_STORES = frozenset({"s3", "gcs", "abfs"})
#: What file systems without hard links answer; there a name is checked before it is taken.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class Taken(StateError):
    """The name of a new object is taken."""


class Store(Protocol):
    """What a location needs of a file system; paths are below the location's folder."""

    def write(self, name: str, data: Data, new: bool) -> None:
        """Write an object as a whole; raise Taken when it must be ``new`` and is not."""

    def read(self, name: str) -> pa.Buffer:
        """Give the content of an object."""

    def delete(self, name: str) -> None:
        """Delete an object."""

    def exists(self, name: str) -> bool:
        """Say whether an object is there."""

    def names(self, folder: str) -> list[str]:
        """List the objects of a folder."""


@functools.lru_cache(maxsize=256)
def open_store(uri: str) -> Store:
    """Open the file system of a location, once per process."""
    if uri.startswith("file:"):
        return _LocalStore(local_path(uri))
    return _RemoteStore(*_file_system(uri))


def _file_system(uri: str) -> tuple[fs.FileSystem, str]:
    """Open the file system that a URI names, and give the path of its folder there."""
    if uri.startswith("s3://"):
        # Small objects are then put by one request, not by the three of a multipart upload.
        with contextlib.suppress(pa.ArrowInvalid):  # an older pyarrow does not know it
            return fs.FileSystem.from_uri(f"{uri}{'&' if '?' in uri else '?'}allow_delayed_open=1")
    return fs.FileSystem.from_uri(uri)


def local_path(uri: str) -> str:
    """Give the path that a file URI names."""
    return unquote(uri.removeprefix("file://"))


class _LocalStore:
    """Files of this machine."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def write(self, name: str, data: Data, new: bool) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{TEMPORARY}")
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if new:
                _link(temporary, path)
            else:
                os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)

    def read(self, name: str) -> pa.Buffer:
        path = self._folder / name
        if not path.stat().st_size:  # an empty file cannot be mapped
            return pa.py_buffer(b"")
        with pa.memory_map(str(path)) as file:
            return file.read_buffer()

    def delete(self, name: str) -> None:
        (self._folder / name).unlink()

    def exists(self, name: str) -> bool:
        return (self._folder / name).is_file()

    def names(self, folder: str) -> list[str]:
        with os.scandir(self._folder / folder) as found:
            return [entry.name for entry in found if entry.is_file()]


def _link(temporary: Path, path: Path) -> None:
    """Give a file its name, unless that is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError as error:
        raise Taken from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():
            raise Taken from error
        os.replace(temporary, path)


def _sync_folder(folder: Path) -> None:
    """Make a new name survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _RemoteStore:
    """Objects of any file system that Arrow knows."""

    def __init__(self, file_system: fs.FileSystem, folder: str) -> None:
        self._fs = file_system
        self._folder = folder.rstrip("/")

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}" if name else self._folder

    def write(self, name: str, data: Data, new: bool) -> None:
        path = self._path(name)
        if new and self.exists(name):
            raise Taken
        if self._fs.type_name in _ATOMIC_STORES:
            self._put(path, data)
            return
        folder, _, last = path.rpartition("/")
        self._fs.create_dir(folder, recursive=True)
        temporary = f"{folder}/.{last}.{secrets.token_hex(8)}{TEMPORARY}"
        self._put(temporary, data)
        if not new and self.exists(name):  # some file systems refuse to rename over a file
            self._fs.delete_file(path)
        self._fs.move(temporary, path)

    def _put(self, path: str, data: Data) -> None:
        # Without that, the end of a name would decide whether the data is compressed.
        with self._fs.open_output_stream(path, compression=None) as stream:
            stream.write(data)

    def read(self, name: str) -> pa.Buffer:
        with self._fs.open_input_file(self._path(name)) as file:
            return file.read_buffer()

    def delete(self, name: str) -> None:
        self._fs.delete_file(self._path(name))

    def exists(self, name: str) -> bool:
        path = self._path(name)
        if self._fs.type_name != "s3":
            return self._fs.get_file_info(path).type == fs.FileType.File
        try:  # one request; asking for information lists a folder too when there is no object
            self._fs.open_input_file(path).close()
        except FileNotFoundError:
            return False
        return True

    def names(self, folder: str) -> list[str]:
        selector = fs.FileSelector(self._path(folder), allow_not_found=True)
        found = self._fs.get_file_info(selector)
        return [info.base_name for info in found if info.type == fs.FileType.File]
