"""A PostgreSQL of the tests' own."""

from __future__ import annotations

import itertools
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

psycopg = pytest.importorskip("psycopg", reason="the extra 'postgres' is not installed")

SCRIPT = Path(__file__).parents[2] / "scripts" / "postgres"
#: As the script has it.
PASSWORD = "secret-of-tests"  # noqa: S105 (of a server that lives for one run of the tests)
#: What the script ends with where there is no PostgreSQL; all else is a failure.
_NONE_FOUND = 3
_NUMBERS = itertools.count()


class NoPostgres(Exception):
    """There is no server, and the reason."""


class Server:
    """A server, and what tests do with it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lock = threading.Lock()  # nobody starts it while it still stops
        self.dsn = self.start()

    def start(self) -> str:
        return self._call("start")

    def stop(self, mode: str = "fast") -> None:
        self._call("stop", mode)

    def table(self) -> str:
        """Name a table that nobody else uses."""
        return f"table_{next(_NUMBERS)}"

    def rows(self, table: str, columns: str = "*") -> list[Any]:
        """Give what is in a table, sorted unless there are nulls."""
        found = self.ask(f"SELECT {columns} FROM {table}")  # noqa: S608 (tables of our own)
        return found if any(None in row for row in found) else sorted(found)

    def ask(self, text: str, *values: Any) -> list[Any]:
        """Run one statement; gives its rows, if it has any."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(text, values or None)
            return cursor.fetchall() if cursor.description else []

    def _call(self, command: str, *arguments: str) -> str:
        with self._lock:
            done = subprocess.run(  # noqa: S603 (our own script)
                [str(SCRIPT), command, self.folder, *arguments],
                check=False,
                capture_output=True,
                text=True,
            )
        if done.returncode == _NONE_FOUND:
            raise NoPostgres(done.stderr.strip())
        assert not done.returncode, done.stderr
        return done.stdout.strip()
