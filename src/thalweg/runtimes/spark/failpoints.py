"""Named moments at which tests let a process fail; they do nothing unless armed.

``THALWEG_FAILPOINTS`` holds ``name=action@count`` parts, separated by ``;``: the process raises
(``raise``) or kills itself (``kill``) when it comes to the moment for the count-th time.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

from thalweg.errors import ThalwegError

_VARIABLE = "THALWEG_FAILPOINTS"
_seen: Counter[str] = Counter()


class FailpointReached(ThalwegError):
    """Raised where a test has armed a failpoint."""


def hit(name: str) -> None:
    """Pass a moment; fails when a test has asked for it."""
    armed = os.environ.get(_VARIABLE)
    if not armed:
        return
    for part in armed.split(";"):
        target, _, rest = part.partition("=")
        action, _, count = rest.partition("@")
        if target == name:
            _seen[name] += 1
            if _seen[name] == int(count or 1):
                _fail(name, action)


def _fail(name: str, action: str) -> None:
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise FailpointReached(name)
