"""One cluster for all tests of a module, which says how many hosts it has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from quickjava import java_options, make_archive
from sparkcluster.cluster import Cluster, NotPermitted


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Give a cluster; skips with the reason where the machine does not permit one."""
    make_archive()
    with ExitStack() as stack:
        try:
            cluster = Cluster(**request.module.CLUSTER, java=java_options())
            started = stack.enter_context(cluster)
        except NotPermitted as reason:
            pytest.skip(str(reason))
        yield started
