"""A connection to PostgreSQL that is made again when it is lost, and keeps passwords to itself."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from thalweg.errors import StateError, ThalwegError, UsageError, explain

T = TypeVar("T")
_logger = logging.getLogger("thalweg.postgres")
#: What servers answer that are starting, ending, full, or only copies at the moment, and
#: transactions that met others; all of these pass.
_PASSING = frozenset(
    {"57P01", "57P02", "57P03", "53300", "40001", "40P01", "25006", "08000", "08003", "08006"}
)
#: Parts of answers to those who will never get in; the last is about settings.
_NEVER = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "pg_hba.conf",
    "role ",
    "invalid ",
)
#: A connection that is silent is given up after about half a minute.
_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
    "application_name": "thalweg",
}


@dataclass(frozen=True)
class Backoff:
    """How long to wait for a server that is away.

    >>> [Backoff(first=1, most=4).wait(tries) for tries in range(4)]
    [1, 2, 4, 4]
    """

    first: float = 0.1
    most: float = 5.0
    attempts: int = 12

    def wait(self, tries: int) -> float:
        """Give the seconds to wait after so many tries."""
        return min(self.most, self.first * 2**tries)


class Database:
    """One connection, made when it is needed; what a transaction raises closes it."""

    def __init__(
        self, dsn: str, backoff: Backoff | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._dsn, self._backoff, self._sleep = dsn, backoff or Backoff(), sleep
        self._connection: Any = None

    def __repr__(self) -> str:
        return "Database(***)"  # the string may hold a password

    def __reduce__(self) -> Any:
        raise UsageError(explain("connection string", "", "to stay in this process"))

    def copy(self) -> Database:
        """Give another connection to the same database."""
        return Database(self._dsn, self._backoff, self._sleep)

    def run(self, act: Callable[[Any], T]) -> T:
        """Run a transaction; while the server is away it is tried again, some times."""
        psycopg, tries = load(), 0
        while True:
            try:
                return self._once(act)
            except psycopg.Error as error:
                tries += 1
                passing, said = self._passes(error), self._clean(error)
                self.close()
                if not passing or tries >= self._backoff.attempts:
                    raise _failure(error, said, tries if passing else 0) from None
            except BaseException:
                self.close()
                raise
            _logger.warning("PostgreSQL is away, trying again: %s", said)
            self._sleep(self._backoff.wait(tries - 1))

    def close(self) -> None:
        """Disconnect."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _once(self, act: Callable[[Any], T]) -> T:
        if self._connection is None:
            self._connection = self._connect()
        with self._connection.transaction():
            return act(self._connection)

    def _connect(self) -> Any:
        psycopg = load()
        try:
            given = psycopg.conninfo.conninfo_to_dict(self._dsn)
        except psycopg.Error:  # its message may quote what looks like a name, and is a password
            hint = "it is not shown here, for it may hold a password"
            expected = "a URI or name=value pairs that libpq reads"
            raise UsageError(explain("dsn", "", expected, "something else", hint)) from None
        chosen = _DEFAULTS | given | {"client_encoding": "UTF8"}
        return psycopg.connect(**chosen, autocommit=True, prepare_threshold=None)

    def _passes(self, error: Any) -> bool:
        """Say whether it may go better the next time."""
        if error.sqlstate is not None:
            return error.sqlstate in _PASSING
        if self._connection is not None:
            return bool(self._connection.closed)
        away = isinstance(error, load().OperationalError)
        return away and not any(part in str(error) for part in _NEVER)

    def _clean(self, error: Exception) -> str:
        """Give what a server said, in one line and without passwords."""
        text = " ".join(str(error).split()) or type(error).__name__
        given = load().conninfo.conninfo_to_dict(self._dsn)
        secrets = [given.get("password"), given.get("sslpassword"), os.environ.get("PGPASSWORD")]
        for secret in filter(None, secrets):
            text = text.replace(str(secret), "***")
        return text


def load() -> Any:
    """Import the driver, which is an extra."""
    try:
        import psycopg  # noqa: PLC0415 (an extra)
    except ImportError as error:
        hint = "pip install 'thalweg[postgres]'"
        raise UsageError(explain("to_postgres", "", "psycopg 3", "none", hint)) from error
    return psycopg


def _failure(error: Any, said: str, tries: int) -> ThalwegError:
    """Say what a database refused, or that it stayed away."""
    if tries:
        hint = "what was committed before is there; a run with a checkpoint goes on from it"
        return StateError(explain("PostgreSQL", "", f"an answer, in {tries} tries", said, hint))
    if error.sqlstate is None:
        hint = "see dsn, the variables PG..., the service file and the password file"
        return UsageError(explain("PostgreSQL", "", "to be let in", said, hint))
    return StateError(explain("PostgreSQL", "", "a transaction without an error", said))
