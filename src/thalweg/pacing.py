"""How long a spout that gives little at a time is asked in a row."""

from __future__ import annotations

#: Seconds after which it is not asked again at once, so that what it gave goes on.
PATIENCE = 0.02
