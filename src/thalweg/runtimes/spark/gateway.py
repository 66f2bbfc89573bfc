"""Starting Spark's Java process, and passing on what it says, but for what nobody needs.

Its Python workers on this machine say what they say through it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

#: How lines begin that are kept back. Java says this before it reads any setting.
NOISE = (b"WARNING: Using incubator modules",)
#: What Py4J logs, by the name of its logger, when Ctrl-C interrupts a call: it also raises that.
_INTERRUPTED = {
    "root": "KeyboardInterrupt while sending command",
    "py4j.clientserver": "Exception occurred while shutting down connection",
}
_READER = "thalweg-stderr"
#: Set when a session of ours ends: workers that are sent home in the middle of a task grumble.
_ending = threading.Event()


def start_gateway(settings: Mapping[str, str]) -> None:
    """Start the Java process with the settings of a session, unless there is one."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 (an extra: only for its users)
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 (an extra: only for its users)

    _ending.clear()
    if SparkContext._gateway is None:
        for name in _INTERRUPTED:
            logging.getLogger(name).addFilter(_is_news)
        conf = SparkConf().setAll(list(settings.items()))
        with without_noise() as writing:
            # What is sent to our group is not meant for it: it ends when its input does.
            how = {"stderr": writing, "start_new_session": True}
            gateway = launch_gateway(conf, how)  # type: ignore[no-untyped-call]  # untyped there
        SparkContext._ensure_initialized(gateway=gateway)


def hush() -> None:
    """Keep back all that is said from now on, until the next session starts."""
    _ending.set()


@contextmanager
def without_noise() -> Iterator[int]:
    """Give the standard error for a process that is started in here: a pipe.

    It is read for as long as the process, or one that it has started, lives. All but noise goes
    to the standard error of this process.
    """
    reading, writing = os.pipe()
    to = os.dup(2)
    threading.Thread(target=_forward, args=(reading, to), name=_READER, daemon=True).start()
    try:
        yield writing
    finally:
        os.close(writing)


def _forward(reading: int, to: int) -> None:
    with open(reading, "rb") as lines:
        for line in lines:
            if not (_ending.is_set() or line.startswith(NOISE)):
                with contextlib.suppress(OSError):  # nobody reads; the process must not wait
                    os.write(to, line)
    os.close(to)


def _is_news(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(_INTERRUPTED[record.name])


@contextmanager
def own_interrupts() -> Iterator[None]:
    """Keep the handler of Ctrl-C: that of PySpark calls Java in the middle of a call to Java."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
