"""One PostgreSQL for all tests, in a folder of its own; skipped with the reason where none is."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from postgresserver import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Give the server; it is not in pytest's folders, which only their owner may enter."""
    from postgresserver import NoPostgres, Server  # noqa: PLC0415 (needs the extra)

    folder = tempfile.mkdtemp(prefix="thalweg-postgres-")
    try:
        try:
            made = Server(folder)
        except NoPostgres as reason:
            pytest.skip(f"PostgreSQL cannot be had here: {reason}")
        yield made
        made.stop("immediate")
    finally:
        shutil.rmtree(folder)
