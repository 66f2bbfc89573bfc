"""One cluster of two hosts for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sparkcluster.cluster import Cluster, NotPermitted


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Give a cluster; skips with the reason where the machine does not permit one."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(Cluster(hosts=2))
        except NotPermitted as reason:
            pytest.skip(str(reason))
        yield started
