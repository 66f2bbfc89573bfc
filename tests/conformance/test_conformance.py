"""Every case on every runtime; those of Spark are in a file of their own, to run beside."""

from __future__ import annotations

import pytest

from conformance import (
    cases_acks,
    cases_anything,
    cases_degrees,
    cases_errors,
    cases_exits,
    cases_groupings,
    cases_joins,
    cases_keyed,
    cases_keys,
    cases_multilang,
    cases_order,
    cases_spreading,
    cases_stateless,
    cases_storm,
    cases_time,
    cases_timers,
    cases_windows,
)
from conformance.harness import RUNTIMES, Case, FailingCase, RuntimeUnderTest, Settings

pytestmark = pytest.mark.usefixtures("forked")

MODULES = (
    cases_stateless,
    cases_joins,
    cases_keyed,
    cases_keys,
    cases_groupings,
    cases_order,
    cases_spreading,
    cases_storm,
    cases_errors,
    cases_exits,
    cases_time,
    cases_timers,
    cases_acks,
    cases_degrees,
    cases_anything,
    cases_multilang,
    cases_windows,
)
CASES = [case for module in MODULES for case in module.CASES]
FAILING = [*cases_errors.FAILING, *cases_exits.FAILING]


def slug(case: Case | FailingCase) -> str:
    return case.name.replace(",", "").replace(" ", "-")


def check(case: Case, runtime: RuntimeUnderTest) -> None:
    if case.needs & runtime.lacks:
        pytest.skip(f"this runtime has no {', '.join(sorted(case.needs & runtime.lacks))}")
    seen = runtime.run(case.build(), case.inputs, case.settings)
    for expectation in case.expect:
        expectation.check(seen)


def check_failing(case: FailingCase, runtime: RuntimeUnderTest) -> None:
    with pytest.raises(case.error) as caught:
        runtime.run(case.build(), case.inputs, Settings())
    for text in case.tells:
        assert text in str(caught.value)
    for name, value in case.attributes.items():
        assert getattr(caught.value, name) == value


def is_spark(name: str) -> bool:
    return name.startswith("spark/")


HERE = {name: runtime for name, runtime in RUNTIMES.items() if not is_spark(name)}


@pytest.mark.parametrize("runtime", HERE.values(), ids=HERE)
@pytest.mark.parametrize("case", CASES, ids=slug)
def test_case(case: Case, runtime: RuntimeUnderTest) -> None:
    check(case, runtime)


@pytest.mark.parametrize("runtime", HERE.values(), ids=HERE)
@pytest.mark.parametrize("case", FAILING, ids=slug)
def test_failing_case(case: FailingCase, runtime: RuntimeUnderTest) -> None:
    check_failing(case, runtime)


def test_case_names_are_unique() -> None:
    names = [slug(case) for case in [*CASES, *FAILING]]
    assert sorted(set(names)) == sorted(names)
