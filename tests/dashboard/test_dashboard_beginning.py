"""A server beside a run that cannot begin says so; nobody waits for it."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Coroutine
from typing import Any

import pytest

import thalweg as tw
from thalweg.dashboard.hub import Hub
from thalweg.dashboard.serving import Dashboard


@pytest.fixture
def _no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many_files(main: Coroutine[Any, Any, None]) -> None:
        main.close()
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(asyncio, "run", too_many_files)


@pytest.mark.usefixtures("_no_loop")
def test_a_page_that_cannot_be_served_is_an_error() -> None:
    with pytest.raises(OSError, match="Too many open files"), Dashboard(Hub()):
        pass


@pytest.mark.usefixtures("_no_loop")
def test_a_source_that_cannot_answer_ends_the_run() -> None:
    flow = tw.Flow("deaf")
    flow.source("in", tw.http_source(0), fields={"n": int}).sink("out", tw.collect([]))
    with pytest.raises((tw.ComponentError, OSError), match="Too many open files"):
        flow.run(on="inline")
