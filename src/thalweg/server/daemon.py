"""A server as a process: its lock, its socket, its log, and how it ends."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from logging.handlers import RotatingFileHandler
from pathlib import Path

import uvicorn

from thalweg.connectors.http_serving import server_of
from thalweg.errors import UsageError, explain
from thalweg.server.access import Access, allowed_folder, make_token
from thalweg.server.folders import Address, Root, say_holder
from thalweg.server.life import Rules
from thalweg.server.logs import LOG_BYTES
from thalweg.server.supervisor import Supervisor
from thalweg.server.web import Api, make_app

_logger = logging.getLogger("thalweg.server")
#: Requests at a time; the others are told to come again.
_MOST_REQUESTS = 64


@dataclass(frozen=True)
class ServerSettings:
    """How a server runs."""

    root: Path
    allowed: tuple[Path, ...]
    host: str = "127.0.0.1"
    #: 0 for any that is free.
    port: int = 0
    rules: Rules = field(default_factory=Rules)


def serve(settings: ServerSettings) -> None:
    """Be a server until told to stop."""
    root, allowed = Root(settings.root), tuple(map(allowed_folder, settings.allowed))
    root.prepare()
    held = root.lock.take_patiently()
    if held is None:
        hint = "thalweg server status, or thalweg server stop"
        got = f"one with process {root.lock.holder}"
        raise UsageError(explain(f"server in {str(root.path)!r}", "", "none", got, hint))
    try:
        root.leave()  # one that was killed leaves its address, where a stranger may listen now
        say_holder(held, os.getpid())
        token = make_token(root.token)
        with bound(settings.host, settings.port) as listening, _logging(root.log):
            port = int(listening.getsockname()[1])
            address = Address(
                settings.host, port, os.getpid(), time.time(), tuple(map(str, allowed))
            )
            _serve(root, address, Access(token, settings.host, port), listening, settings.rules)
    finally:
        os.close(held)


def _serve(
    root: Root, address: Address, access: Access, listening: socket.socket, rules: Rules
) -> None:
    ending = Ending()
    supervisor = Supervisor(root, tuple(map(Path, address.allowed)), rules)
    app = make_app(access, Api(supervisor, address, ending.ask))
    ending.server = server_of(app, _MOST_REQUESTS, patience=5)
    # uvicorn hears these signals from its start on, and raises them again when it has stopped.
    before = {each: signal.signal(each, ending.heard) for each in (signal.SIGTERM, signal.SIGINT)}
    supervisor.begin()
    try:
        root.announce(address)
        _logger.info("listening on %s:%d, process %d", address.host, address.port, address.pid)
        asyncio.run(ending.server.serve(sockets=[listening]))
    finally:
        root.leave()  # nobody listens there any more
        supervisor.end(ending.leave)
        _logger.info("ended%s", ", topologies run on" if ending.leave else "")
        for each, handler in before.items():
            signal.signal(each, handler)


class Ending:
    """Lets a request end the server, after it was answered."""

    def __init__(self) -> None:
        self.leave = False
        self.server: uvicorn.Server | None = None

    def ask(self, leave: bool) -> None:
        """End soon; ``leave`` topologies running."""
        self.leave = leave
        if self.server is not None:
            self.server.should_exit = True

    def heard(self, _signal: int, _frame: object) -> None:
        """Hear a signal before uvicorn does, or after."""
        self.ask(self.leave)


_ADDRESSES = "127.0.0.1 is for itself, 0.0.0.0 for all it has"
_NO_ADDRESS = f"this machine has no such address; {_ADDRESSES}"
_UNBOUND = {
    errno.EADDRINUSE: "another program listens there: choose another port, 0 for any that is free",
    errno.EACCES: "choose a port above 1023",
}


def bound(host: str, port: int) -> socket.socket:
    """Give a socket that listens."""
    if not host:  # to the system, that is all addresses of this machine
        raise UsageError(explain("address", "", "one of this machine", "none", _ADDRESSES))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named asyncio sends answers at once, and not after 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen()  # now, so that nobody who reads the address comes too early
    except OSError as error:
        made.close()
        subject, hint = f"address {host}:{port}", _UNBOUND.get(error.errno or 0, _NO_ADDRESS)
        got = error.strerror or str(error)
        raise UsageError(explain(subject, "", "one that is free here", got, hint)) from error
    return made


@contextmanager
def _logging(path: Path) -> Iterator[None]:
    """Let a server's log go to a file that stays small."""
    handler, root = (
        RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=1),
        logging.getLogger(),
    )
    handler.setFormatter(logging.Formatter("%(asctime)s  %(message)s"))
    root.addHandler(handler)
    level = root.level
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)
        handler.close()
