"""Starts a server that stays when the command that started it has ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from thalweg.errors import UsageError
from thalweg.server.client import wait_for
from thalweg.server.folders import Address, Root
from thalweg.server.logs import append


def start_behind(root: Path, words: Sequence[str]) -> Address:
    """Start a server, wait until it listens, and say where; what it says instead is raised."""
    folder = Root(root)
    folder.prepare()
    said = folder.path / "start.log"
    said.unlink(missing_ok=True)
    out = append(said)
    own = [sys.executable, "-P", "-m", "thalweg", "server", "start", "--foreground"]
    child = subprocess.Popen(  # noqa: S603 (this very program)
        [*own, "--root", str(root.absolute()), *words],
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=out,
        start_new_session=True,
    )

    def look() -> Address | None:
        address = folder.address()
        return address if address is not None and address.pid == child.pid else None

    found = None
    while found is None and child.poll() is None:
        found = wait_for(look, lambda seen: seen is not None, 1.0)
    if found is None:
        text = said.read_text(errors="replace").strip()
        raise UsageError(text.removeprefix("error: ") or f"it ended with {child.returncode}")
    return found
