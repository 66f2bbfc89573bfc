"""What Spark's Java process says reaches people, but for noise; Ctrl-C stays as it was."""

from __future__ import annotations

import logging
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from thalweg.runtimes.spark import gateway
from thalweg.runtimes.spark.gateway import hush, own_interrupts, without_noise
from thalweg.runtimes.spark.session import _no_session


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "_ending", threading.Event())


@contextmanager
def listening() -> Iterator[int]:
    """Give the standard error for a process; what it said has been passed on at the end."""
    before = set(threading.enumerate())
    with without_noise() as error:
        yield error
    for reader in set(threading.enumerate()) - before:
        reader.join()


def say(text: str) -> None:
    """Let a process say something, and wait until it has been passed on."""
    with listening() as error:
        subprocess.run(["printf", text], stdout=error, check=True)  # noqa: S603, S607 (ours)


def test_noise_is_kept_back_and_the_rest_passes(capfd: pytest.CaptureFixture[str]) -> None:
    say("WARNING: Using incubator modules: x\nWARNING: something else\n")
    assert capfd.readouterr().err == "WARNING: something else\n"


def test_at_the_end_of_a_session_all_is_kept_back(capfd: pytest.CaptureFixture[str]) -> None:
    say("before\n")
    hush()
    say("BrokenPipeError: sent home\n")
    assert capfd.readouterr().err == "before\n"


def test_standard_error_of_this_process_is_left_alone(capfd: pytest.CaptureFixture[str]) -> None:
    with listening():
        subprocess.run(["sh", "-c", "echo own >&2"], check=True)  # noqa: S607 (ours)
    assert capfd.readouterr().err == "own\n"


def test_a_handler_of_interrupts_that_is_set_inside_does_not_stay() -> None:
    before = signal.getsignal(signal.SIGINT)
    with own_interrupts():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("An error occurred while calling x.\n: SparkException: no such master\n\tat y", "no such"),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited.", "JAVA_GATEWAY_EXITED"),
        ("", "RuntimeError"),
    ],
)
def test_why_there_is_no_session_is_said_in_one_line(text: str, reason: str) -> None:
    said = str(_no_session("local[x]", RuntimeError(text)))
    assert said.startswith("Spark at 'local[x]': expected a session, got ")
    assert reason in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("root", "KeyboardInterrupt while sending command.", False),
        ("root", "Exception while sending command.", True),
        ("py4j.clientserver", "Exception occurred while shutting down connection", False),
        ("py4j.clientserver", "Error while sending or receiving", True),
    ],
)
def test_of_what_py4j_logs_only_interrupts_are_kept_back(name: str, text: str, shown: bool) -> None:
    record = logging.LogRecord(name, logging.ERROR, "", 0, text, None, None)
    assert gateway._is_news(record) is shown
