"""What people can do about an error of the system: a full disk, a missing folder, a taken port."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

_RELATIVE = "is the path right? a relative one starts at the current folder"

_REMEDIES: Mapping[int, str] = {
    errno.EACCES: "may you read and write there? ls -ld shows who may; choose another place if not",
    errno.EPERM: "may you do that here? choose another place if not",
    errno.EROFS: "nothing can be written there: choose another place",
    errno.ENOSPC: "the disk is full: df -h shows it; free some, or choose another place",
    errno.EDQUOT: "you may not use more of this disk: free some, or choose another place",
    errno.EISDIR: "it is a folder: name a file in it",
    errno.ENOTDIR: "a file is where a folder should be: choose another path",
    errno.EEXIST: "something is there already: delete it, or choose another name",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EMFILE: "too many files are open: ulimit -n 4096 allows more",
    errno.ENFILE: "too many files are open on this machine: end other programs",
    errno.ENOMEM: "memory is used up: end other programs, or give it less at a time",
    errno.EADDRINUSE: "another program listens there: choose another port, 0 for any that is free",
    errno.ECONNREFUSED: "nobody listens there: is the address right, and does the program run?",
}


def remedy(error: OSError) -> str:
    """Say what to do; nothing where that is not known.

    >>> remedy(FileNotFoundError(errno.ENOENT, "No such file", "nowhere/at/all.txt"))
    "there is no folder 'nowhere/at': make it first, or is the path wrong?"
    >>> remedy(OSError(errno.ENOSPC, "No space left on device")).split(":")[0]
    'the disk is full'
    """
    if error.errno == errno.ENOENT:
        folder = Path(os.fsdecode(error.filename)).parent if _named(error) else Path()
        if folder.is_dir():
            return _RELATIVE
        return f"there is no folder {str(folder)!r}: make it first, or is the path wrong?"
    return _REMEDIES.get(error.errno or 0, "")


def remedy_for(error: BaseException | None) -> str:
    """Say what to do about the first error of the system that one stems from.

    >>> remedy_for(ValueError("no number"))
    ''
    """
    while error is not None:
        if isinstance(error, OSError) and (found := remedy(error)):
            return found
        error = error.__cause__
    return ""


def _named(error: OSError) -> bool:
    return isinstance(error.filename, str | bytes) and bool(error.filename)
