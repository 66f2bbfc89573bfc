"""What can be said about scaling on Spark, and what cannot be."""

from __future__ import annotations

from typing import Any

import pytest

import thalweg as tw
from thalweg.control.scaling.ds2 import Ds2
from thalweg.control.scaling.values import Timing
from thalweg.errors import UsageError


@pytest.mark.parametrize("given", ["ds2", Ds2(), tw.Scaling("ds2")])
def test_a_policy_its_name_and_settings_are_the_same(given: Any) -> None:
    scales = tw.Spark(scaling=given).scales
    assert scales is not None
    assert scales.leading == Ds2()


def test_without_a_word_places_stay() -> None:
    assert tw.Spark().scales is None


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({"batch_time": "2 s", "trigger": "1 second"}, 2.0),
        ({"trigger": "1 second"}, 1.0),
        ({}, 5.0),
        ({"trigger": "available-now"}, 5.0),
    ],
)
def test_a_batch_takes_what_is_wanted_or_the_trigger_or_half_a_period(
    options: dict[str, Any], seconds: float
) -> None:
    policy = Ds2(timing=Timing(60.0, 10.0, 60.0))
    assert tw.Spark(scaling=policy, **options).batch_seconds == seconds


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"scaling": "hope"}, "scaling policy: expected one of"),
        ({"batch_time": "2 s"}, "batch_time: expected scaling beside it"),
        ({"scaling": "ds2", "batch_time": "soon"}, "batch_time: expected"),
        (
            {"scaling": tw.Scaling(most={"count": 3})},
            "scaling most on Spark: expected a number",
        ),
        ({"scaling": tw.Scaling(loss=0.1)}, "scaling loss on Spark: expected 0"),
        ({"scaling": tw.Scaling(slots=8)}, "scaling slots on Spark: expected none"),
        ({"scaling": "ds2", "placing": ("a", "b")}, "placing with scaling"),
        ({"scaling": "ds2", "executors": "elastic"}, "scaling of elastic executors"),
    ],
)
def test_what_cannot_be_is_refused_at_once(options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError) as raised:
        tw.Spark(**options)
    assert text in str(raised.value)


def test_elastic_executors_need_a_bound() -> None:
    assert tw.Spark(executors="elastic", scaling=tw.Scaling(most=4)).scales is not None
