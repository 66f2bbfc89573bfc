"""Every case on Spark, in the ways that it can run there."""

from __future__ import annotations

import pytest

from conformance.harness import RUNTIMES, Case, FailingCase, RuntimeUnderTest
from conformance.test_conformance import (
    CASES,
    FAILING,
    check,
    check_failing,
    is_spark,
    slug,
)

SPARK = {name: runtime for name, runtime in RUNTIMES.items() if is_spark(name)}


@pytest.mark.parametrize("runtime", SPARK.values(), ids=SPARK)
@pytest.mark.parametrize("case", CASES, ids=slug)
def test_case_on_spark(case: Case, runtime: RuntimeUnderTest) -> None:
    check(case, runtime)


@pytest.mark.parametrize("runtime", SPARK.values(), ids=SPARK)
@pytest.mark.parametrize("case", FAILING, ids=slug)
def test_failing_case_on_spark(case: FailingCase, runtime: RuntimeUnderTest) -> None:
    check_failing(case, runtime)
