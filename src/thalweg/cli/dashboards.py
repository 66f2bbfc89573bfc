"""``thalweg run --ui`` and ``thalweg ui``: a page that shows a run, or a recording of one."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from thalweg.cli.bars import bar
from thalweg.cli.failures import tell
from thalweg.cli.recording import RecordOptions
from thalweg.cli.saying import log, say
from thalweg.cli.watching import Begun, Listener, Watcher
from thalweg.dashboard.hub import Hub, Limits, leading
from thalweg.dashboard.telling import Telling
from thalweg.recording.reading import Recording

#: Seconds between two looks: at a recording that is still being written, or for a Ctrl-C.
_EVERY = 0.2
LOOPBACK = "127.0.0.1"
_BEYOND = "everybody who looks needs the token of this address; there is no encryption"

Host = Annotated[str, typer.Option(metavar="ADDRESS", help="Where the page listens.")]
Port = Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0 for any that is free.")]


@dataclass(frozen=True)
class FollowOptions(RecordOptions):
    """What is kept and shown of a run; each field is an option of the command."""

    ui: Annotated[
        bool, typer.Option("--ui", help="Show the run on a web page; its address is printed.")
    ] = False
    ui_host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="With --ui: where the page listens.")
    ] = None
    ui_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, metavar="N", help="With --ui: its port, else a free one."),
    ] = None
    ui_stay: Annotated[
        bool, typer.Option("--ui-stay", help="With --ui: keep the page afterwards, until Ctrl-C.")
    ] = False

    @property
    def is_looked_at(self) -> bool:
        """Whether somebody sees what happens, now or later."""
        return self.ui or self.record is not None

    @property
    def watchers(self) -> list[Watcher]:
        """Give those who follow the run; the page is the last to go."""
        given = {"--ui-host": self.ui_host, "--ui-port": self.ui_port, "--ui-stay": self.ui_stay}
        named = [name for name, value in given.items() if value not in (None, False)]
        if named and not self.ui:
            text = f"{named[0]}: expected only together with --ui"
            raise typer.BadParameter(text)
        shown: list[Watcher] = [Page(self)] if self.ui else []
        return [*shown, *super().watchers]


@dataclass(frozen=True)
class Page:
    """Follows a run, and shows it."""

    how: FollowOptions
    steers: ClassVar[bool] = True

    @contextmanager
    def watch(self, run: Begun) -> Iterator[Listener]:
        """Serve the page while the run lasts."""
        from thalweg.dashboard.actions import Actions, supported  # noqa: PLC0415 (a web server)
        from thalweg.dashboard.serving import Dashboard, Where  # noqa: PLC0415 (a web server)

        hub = Hub()
        telling = Telling(hub, run.topology, run.runtime, run.policy)
        names, bolts = supported(run.topology, run.on)
        leads = partial(leading, hub)
        actions = Actions(run.steering, run.stop, names, lambda: bolts, leads)
        host = LOOPBACK if self.how.ui_host is None else self.how.ui_host
        where = Where(host, self.how.ui_port or 0)
        with ExitStack() as stack:
            dashboard = stack.enter_context(Dashboard(hub, where, actions))
            stack.enter_context(self._told(dashboard.address, dashboard.access.is_loopback))
            try:
                with telling:
                    yield telling.listen
            except Exception as error:
                if self.how.ui_stay:
                    tell(error, self.how.logs)  # now: the page may stay for long
                    _stay(self.how.logs)
                raise
            if self.how.ui_stay:
                _stay(self.how.logs)

    def _told(self, address: str, here: bool) -> AbstractContextManager[None]:
        if self.how.logs:
            return _log_where(address)
        _say_where(address, here)
        return nullcontext()


@contextmanager
def _terminable() -> Iterator[None]:
    """Let Ctrl-C interrupt at once, and SIGTERM do the same: here is no run that would be ended."""
    both = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, signal.default_int_handler) for each in both}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@_terminable()
def show_recording(file: Path, host: str, port: int) -> None:
    """Serve the page of a recording until Ctrl-C; what is still being written is followed."""
    from thalweg.dashboard.serving import Dashboard, Where  # noqa: PLC0415 (a web server)

    hub = Hub(Limits(looks=6000, others=20_000, bytes=32 << 20))
    with ExitStack() as stack:
        recording = stack.enter_context(Recording.open(file))
        records = sum(recording.summary().kinds.values())
        with bar(f"reading {file}", records, "records") as shown:
            read = _take(recording, hub, 0, shown.advance)
        over = recording.summary().end != "open"
        dashboard = stack.enter_context(Dashboard(hub, Where(host, port)))
        with suppress(KeyboardInterrupt):  # which may come as soon as the address is known
            _say_where(dashboard.address, dashboard.access.is_loopback)
            while True:
                time.sleep(_EVERY)
                read = read if over else _take(recording, hub, read)


@_terminable()
def show_server(root: Path, host: str, port: int) -> None:
    """Serve the pages of what a server runs until Ctrl-C."""
    from thalweg.dashboard.serving import Dashboard, Where  # noqa: PLC0415 (a web server)
    from thalweg.dashboard.several import server_app  # noqa: PLC0415 (a web server)
    from thalweg.dashboard.topologies import Topologies  # noqa: PLC0415 (a web server)

    topologies = Topologies(root)
    topologies.client.status()  # whether there is one
    make = partial(server_app, topologies)
    with Dashboard(topologies.hub, Where(host, port), make=make) as dashboard:
        try:
            with suppress(KeyboardInterrupt):  # which may come as soon as the address is known
                _say_where(dashboard.address, dashboard.access.is_loopback)
                while True:
                    topologies.look()
                    time.sleep(_EVERY)
        finally:
            topologies.close()


def _take(
    recording: Recording, hub: Hub, after: int, taken: Callable[[], None] = lambda: None
) -> int:
    """Show what a recording has behind a record; gives the number of the last one."""
    for record in recording.records(after):
        hub.add(record)
        taken()
        after = record["n"]
    return after


def _stay(logs: bool) -> None:
    """Wait for a Ctrl-C."""
    with suppress(KeyboardInterrupt), _terminable():
        say("the page stays until Ctrl-C", logs)
        while True:
            time.sleep(_EVERY)


@contextmanager
def _log_where(address: str) -> Iterator[None]:
    """Log where the page is. Logs are read by many, so the token is in a file of the owner's."""
    with tempfile.NamedTemporaryFile("w", prefix="thalweg-page-") as file:  # for the owner alone
        file.write(f"{address}\n")
        file.flush()
        record = {"kind": "page", "address": address.partition("?")[0], "token_in": file.name}
        log(record)
        yield


def _say_where(address: str, here: bool) -> None:
    """Print the address, which has the token; that is the only time that it is told."""
    say(f"page: {address}")
    if not here:
        say(_BEYOND)
