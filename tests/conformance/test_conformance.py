"""Every case on every runtime."""

from __future__ import annotations

import pytest

from conformance import (
    cases_acks,
    cases_degrees,
    cases_errors,
    cases_groupings,
    cases_keyed,
    cases_keys,
    cases_order,
    cases_spreading,
    cases_stateless,
    cases_storm,
    cases_time,
)
from conformance.harness import RUNTIMES, Case, FailingCase, RuntimeUnderTest, Settings

MODULES = (
    cases_stateless,
    cases_keyed,
    cases_keys,
    cases_groupings,
    cases_order,
    cases_spreading,
    cases_storm,
    cases_errors,
    cases_time,
    cases_acks,
    cases_degrees,
)
CASES = [case for module in MODULES for case in module.CASES]


def slug(case: Case | FailingCase) -> str:
    return case.name.replace(",", "").replace(" ", "-")


@pytest.mark.parametrize("runtime", RUNTIMES.values(), ids=RUNTIMES)
@pytest.mark.parametrize("case", CASES, ids=slug)
def test_case(case: Case, runtime: RuntimeUnderTest) -> None:
    if case.needs & runtime.lacks:
        pytest.skip(f"this runtime has no {', '.join(sorted(case.needs & runtime.lacks))}")
    seen = runtime.run(case.build(), case.inputs, case.settings)
    for expectation in case.expect:
        expectation.check(seen)


@pytest.mark.parametrize("runtime", RUNTIMES.values(), ids=RUNTIMES)
@pytest.mark.parametrize("case", cases_errors.FAILING, ids=slug)
def test_failing_case(case: FailingCase, runtime: RuntimeUnderTest) -> None:
    with pytest.raises(case.error) as caught:
        runtime.run(case.build(), case.inputs, Settings())
    for text in case.tells:
        assert text in str(caught.value)
    for name, value in case.attributes.items():
        assert getattr(caught.value, name) == value


def test_case_names_are_unique() -> None:
    names = [slug(case) for case in [*CASES, *cases_errors.FAILING]]
    assert sorted(set(names)) == sorted(names)
