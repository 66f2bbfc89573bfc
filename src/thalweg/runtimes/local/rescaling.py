"""Whether a component can have another number of tasks while tuples flow."""

from __future__ import annotations

from thalweg.components import Kind
from thalweg.errors import UsageError, explain
from thalweg.groupings import All, Custom, Direct
from thalweg.runtimes.local.operators import Operator
from thalweg.runtimes.pairing import has_movable_keys
from thalweg.topology import Component

#: Bytes of state that move in one step when a degree changes.
BUDGET = 4 << 20


def check_degree(operator: Operator, degree: int) -> None:
    """Refuse a degree that a component cannot have, with the reason."""
    component, most = operator.component, operator.most
    where = f"component {component.name!r}"
    if degree < 1 or (most is not None and degree > most):
        expected = "at least 1" if most is None else f"1 to {most}"
        raise UsageError(explain("degree", where, expected, str(degree)))
    reason = fixed(component)
    if reason:
        raise UsageError(explain("degree", where, "a component that can be split", reason))
    scatters = component.kind is Kind.STATELESS and bool(component.outputs)
    if degree > 1 and scatters and not (operator.ordered or operator.pooled):
        expected, got = "one whose output is put in order", "one that had a single task"
        hint = "give it a degree of 2 or more, or an order, in the topology"
        raise UsageError(explain("degree", where, expected, got, hint))


def fixed(component: Component) -> str:
    """Say why a component keeps the number of its tasks; empty when it need not."""
    if component.kind is Kind.GLOBAL:
        return "a global one, which has one state"
    if any(isinstance(input_.grouping, All | Direct | Custom) for input_ in component.inputs):
        return "one whose senders count on its tasks (all, direct, custom)"
    if component.kind is Kind.KEYED and not has_movable_keys(component):
        return "one whose keys are bound to tasks (only fields(...) without bounds can move)"
    if component.body.fixed_degree:
        return "one whose tasks cannot come and go (fixed_degree)"
    if not component.outputs and component.options.degree is None:
        return "a sink without a degree, which writes in one place"
    return ""
