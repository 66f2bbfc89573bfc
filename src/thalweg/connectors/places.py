"""Where a sink makes its file: under its own name, or beside it until it is complete."""

from __future__ import annotations

import io
import os
import secrets
import shutil
from contextlib import suppress

from thalweg.errors import UsageError, explain

_FREE = "a name that is free"
#: Files that sinks of this process are making, and the place of each.
_taken: dict[str, Place] = {}


class Place:
    """The place of one file; what exists is touched only when its replacement is complete."""

    def __init__(self, path: str, subject: str, overwrite: bool) -> None:
        self.subject = subject
        self._final = os.path.realpath(path)
        self._part = ""
        if _taken.setdefault(self._final, self) is not self:
            raise self._error(_FREE, "a file that another sink writes")
        try:
            self._look(overwrite)
        except BaseException:
            self.release()
            raise

    def _look(self, overwrite: bool) -> None:
        #: Whether a file is there that is to be replaced.
        self.replaces = os.path.exists(self._final)
        #: Whether it is a pipe or a device, which cannot be replaced.
        self.special = self.replaces and not os.path.isfile(self._final)
        if self.replaces and not overwrite:
            raise self._exists(hint="overwrite=True replaces it")
        try:
            folder = os.path.dirname(self._final)
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        if not self.special and not os.access(folder, os.W_OK | os.X_OK):
            raise self._unwritable(PermissionError(f"no permission to write in {folder!r}"))

    def release(self) -> None:
        """Let others use the name."""
        if _taken.get(self._final) is self:
            del _taken[self._final]

    def open(self) -> io.FileIO:
        """Create the file under its own name."""
        try:
            return io.FileIO(self._final, "w" if self.special else "x")
        except FileExistsError as error:
            raise self._exists(hint="it appeared just now") from error
        except OSError as error:
            raise self._unwritable(error) from error

    def open_part(self) -> io.FileIO:
        """Create the file beside its name, under a name that nobody has."""
        if self.special:
            raise self._error(expected="a regular file", got="a pipe or a device")
        self._part = f"{self._final}.{secrets.token_hex(4)}.part"
        try:
            return io.FileIO(self._part, "x")
        except OSError as error:
            raise self._unwritable(error) from error

    def take_name(self) -> None:
        """Give the complete file its name."""
        try:
            if self.replaces:
                with suppress(FileNotFoundError):
                    shutil.copymode(self._final, self._part)
                os.replace(self._part, self._final)
            else:
                _rename_to_new(self._part, self._final)
        except FileExistsError as error:
            hint = f"it appeared meanwhile; the rows are in {self._part!r}"
            raise self._exists(hint) from error
        except OSError as error:
            raise self._unwritable(error) from error

    def remove_old(self) -> None:
        """Remove what is to be replaced, by nothing."""
        if self.replaces:
            with suppress(FileNotFoundError):
                os.remove(self._final)

    def remove_part(self) -> None:
        """Remove the file beside the name, which this place has made."""
        os.remove(self._part)

    def _exists(self, hint: str) -> UsageError:
        return self._error(_FREE, "a file that exists", hint)

    def _unwritable(self, error: OSError) -> UsageError:
        return self._error("a place that can be written", str(error))

    def _error(self, expected: str, got: str, hint: str = "") -> UsageError:
        return UsageError(explain(self.subject, "", expected, got, hint))


def _rename_to_new(part: str, final: str) -> None:
    """Rename a file, but never over another one."""
    try:
        os.link(part, final)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        io.FileIO(final, "x").close()
        os.replace(part, final)
    else:
        os.remove(part)
