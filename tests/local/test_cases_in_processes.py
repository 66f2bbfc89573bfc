"""The conformance suite with every bolt in processes of its own, which are forked to save time."""

from __future__ import annotations

import pytest
from test_isolation import in_processes

from conformance.harness import Case, FailingCase, Settings, local
from conformance.test_conformance import CASES, FAILING, slug

pytestmark = pytest.mark.usefixtures("forked")


@pytest.mark.parametrize("case", [case for case in CASES if not case.needs], ids=slug)
def test_a_case_has_the_same_result_in_processes(case: Case) -> None:
    seen = local(workers=2)(in_processes(case.build()), case.inputs, case.settings)
    for expectation in case.expect:
        expectation.check(seen)


@pytest.mark.parametrize("case", FAILING, ids=slug)
def test_an_error_is_told_as_everywhere(case: FailingCase) -> None:
    with pytest.raises(case.error) as caught:
        local(workers=2)(in_processes(case.build()), case.inputs, Settings())
    for text in case.tells:
        assert text in str(caught.value)
    for name, value in case.attributes.items():
        assert getattr(caught.value, name) == value
