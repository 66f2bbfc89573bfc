"""Some cases on Spark, with keys that get other places after every batch.

On the reference runtime all cases run so: it is in RUNTIMES.
"""

from __future__ import annotations

import pytest

from conformance.harness import NOT_ON_SPARK, Inputs, spark
from conformance.moving import Anywhere
from conformance.test_conformance import CASES, slug

#: Cases in which keys have something to move, and the places that their components need for it.
PLACES = {
    "tally with a key of two fields": 3,
    "two keyed components in a row": 3,
    "running_count under total order is the serial one": 3,
    "stateful with a struct under total order": 3,
    "running counts of unicode texts": 3,
    "total order survives scattering and keyed operators": 3,
    "key order survives keyed operators in between": 3,
    "a keyed block bolt": 3,
    "five tables, degree 2": 2,
    "top of a tally, degree 2": 2,
    "timers at the ends of minutes make windows": 2,
}
BY_NAME = {case.name: case for case in CASES}


@pytest.mark.parametrize("name", PLACES, ids=lambda name: f"spark/{slug(BY_NAME[name])}")
def test_case(name: str) -> None:
    case, made = BY_NAME[name], []

    def moving(inputs: Inputs) -> Anywhere:
        made.append(Anywhere(inputs, 3, groups=False))
        return made[0]

    assert not case.needs & NOT_ON_SPARK
    seen = spark(PLACES[name], moving=moving)(case.build(), case.inputs, case.settings)
    for expectation in case.expect:
        expectation.check(seen)
    assert made[0].moved > 0
