"""Requests lie beside the state until the run takes them, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from thalweg.errors import StateError, UsageError
from thalweg.statelog.location import Location
from thalweg.statelog.requests import Request, Requests


def test_a_request_is_taken_once(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    Requests(location).ask(Request(3))
    run = Requests(location)
    assert run.wait_to_be_taken()
    assert run.take(now=0.0) == Request(3)
    assert not run.wait_to_be_taken()
    assert run.take(now=5.0) is None


def test_the_last_request_counts(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    Requests(location).ask(Request(3))
    Requests(location).ask(Request(5))
    assert Requests(location).take(now=0.0) == Request(5)


def test_a_run_looks_once_a_second(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    run = Requests(location)
    assert run.take(now=0.0) is None
    Requests(location).ask(Request(2))
    assert run.take(now=0.5) is None
    assert run.take(now=1.0) == Request(2)


def test_what_nobody_here_wrote_is_refused_and_gone(tmp_path: Path) -> None:
    location = Location.of(tmp_path)
    location.write("requests/places", b"many")
    run = Requests(location)
    with pytest.raises(StateError, match="requests/places"):
        run.take(now=0.0)
    assert run.take(now=2.0) is None


def test_fewer_than_one_place_cannot_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        Requests(Location.of(tmp_path)).ask(Request(0))
