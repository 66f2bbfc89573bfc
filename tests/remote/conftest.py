"""State in an object store, which is a process of its own."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from s3server import Server, s3_server

from thalweg.statelog.stores import open_store


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give the server that most tests share; each works in a folder of its own."""
    pytest.importorskip("moto.server", reason="moto is not installed")
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(autouse=True)
def _connections_are_closed(_nothing_is_left: None) -> Iterator[None]:
    """Let go of file systems, which keep connections, before the check for open files."""
    yield
    open_store.cache_clear()
    gc.collect()
