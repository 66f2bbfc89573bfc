"""What tests of the local runtime share."""

from __future__ import annotations

from math import inf

import pytest

from thalweg.control.scaling import monitor
from thalweg.runtimes.local import sampling


@pytest.fixture
def all_samples_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let samples count however late they are taken: a busy machine may never be in time."""
    for module in (sampling, monitor):
        monkeypatch.setattr(module, "_LEAST", 0.0)
        monkeypatch.setattr(module, "_MOST", inf)
