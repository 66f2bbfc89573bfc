"""The clause that SQL does not have: which window.

>>> taken("SELECT count(*) FROM t WINDOW TUMBLING 1 HOUR GROUP BY a")
('SELECT count(*) FROM t  GROUP BY a', TimeWindow(size=3600000000, every=3600000000, offset=0))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from thalweg.errors import UsageError, explain
from thalweg.windows.specs import WindowSpec, landmark, rows, session, sliding, tumbling

_BY_TIME = ("tumbling", "sliding", "session", "landmark")
_FORMS = (
    "WINDOW TUMBLING 1 HOUR, SLIDING 1 HOUR EVERY 5 MINUTES, SESSION 30 MINUTES, "
    "LANDMARK 1 HOUR, or ROWS 100 [EVERY 10]"
)
_TIME = re.compile(r"\d+(\.\d+)?\s*[a-z]+", re.IGNORECASE)


def taken(query: str) -> tuple[str, WindowSpec | None]:
    """Take the window out of a query; gives the rest, which is SQL."""
    words = _words(query)
    begins = [i for i in range(len(words)) if _begins(words, i)]
    if not begins:
        return query, None
    if len(begins) > 1:
        raise UsageError(explain("query", expected="one WINDOW", got=f"{len(begins)}"))
    clause = _Clause(words, begins[0] + 1)
    spec = clause.spec()
    first, last = words[begins[0]], words[clause.next - 1]
    return query[: first.start] + query[last.end + 1 :], spec


def not_sql(error: SqlglotError) -> UsageError:
    """Make the error for what the parser does not understand."""
    plain = re.sub(r"\x1b\[\d+m", "", str(error)).splitlines()[0]
    return UsageError(explain("query", expected="SQL", got=plain))


def _words(query: str) -> list[Token]:
    """Cut a query into words, and so tell it from texts and comments."""
    try:
        return list(sqlglot.tokenize(query, read="duckdb"))
    except SqlglotError as error:
        raise not_sql(error) from error


def _begins(words: Sequence[Token], at: int) -> bool:
    """Say whether a window begins here: not a column of that name, nor WINDOW w AS (...)."""
    kinds = [word.token_type for word in words[at : at + 3]]
    if kinds[0] != TokenType.WINDOW or len(kinds) < 2 or kinds[2:] == [TokenType.ALIAS]:
        return False
    known = words[at + 1].text.lower() in (*_BY_TIME, "rows")
    return known or kinds[1] == TokenType.VAR


@dataclass
class _Clause:
    """Reads the words of a window one after the other."""

    words: Sequence[Token]
    next: int

    def spec(self) -> WindowSpec:
        """Read which window."""
        kind = self._take().lower()
        if kind == "rows":
            count, step = self._count(), self._every() and self._count()
            return rows(count, every=step or None)
        if kind not in _BY_TIME:
            got = f"WINDOW {kind.upper()}"
            raise _misread(got)
        size = self._time()
        again = self._time() if self._every() else None
        if (kind == "sliding") != (again is not None):
            raise _misread(f"WINDOW {kind.upper()} {size}" + (f" EVERY {again}" if again else ""))
        if kind == "sliding":
            return sliding(size, again or size)
        if kind == "session":
            return session(size)
        return tumbling(size) if kind == "tumbling" else landmark(size)

    def _take(self) -> str:
        if self.next == len(self.words):
            got = "the end of the query"
            raise _misread(got)
        self.next += 1
        return str(self.words[self.next - 1].text)

    def _every(self) -> bool:
        found = self.next < len(self.words) and self.words[self.next].text.lower() == "every"
        self.next += found
        return found

    def _count(self) -> int:
        text = self._take()
        if not text.isdigit():
            raise _misread(text)
        return int(text)

    def _time(self) -> str:
        text = self._take()
        if self.words[self.next - 1].token_type == TokenType.NUMBER:
            text = f"{text} {self._take()}"
        if not _TIME.fullmatch(text):
            raise _misread(text)
        return text


def _misread(got: str) -> UsageError:
    return UsageError(explain("window of the query", expected=_FORMS, got=got))
