"""Whether a component can leave this process: nobody here would miss anything it does or knows.

It looks at what the code of the component refers to. Values that cannot change, other such
functions, and installed packages are fine. A list that a function appends to, a lock, a file, an
attribute that a bolt changes, or a call of ``print`` are reasons to stay. In doubt it stays.

>>> why_not_function(lambda n: n * n)
>>> seen = []
>>> why_not_function(seen.append)
"it refers to 'append', a list, which others may see"
"""

from __future__ import annotations

import builtins
import datetime
import decimal
import dis
import enum
import fractions
import functools
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from thalweg.components import BlockBolt, Body, Bolt
from thalweg.runtimes.shipping import is_users
from thalweg.topology import Component

#: Values that nobody can change.
_PLAIN = (
    *(type(None), bool, int, float, complex, str, bytes, range, enum.Enum, re.Pattern, uuid.UUID),
    *(decimal.Decimal, fractions.Fraction),
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo),
)
#: What speaks to the world, or is about this process.
_TALKS = frozenset({"print", "input", "open", "exec", "eval", "globals", "breakpoint"})
_TALKING = frozenset(
    {"asyncio", "contextvars", "logging", "queue", "signal", "socket", "sqlite3", "subprocess"}
    | {"sys", "threading", "warnings"}
)
#: What a runtime puts onto a body.
_GIVEN = frozenset(
    {"ack", "context", "emit", "emit_direct", "fail", "key", "make_batch", "origin", "send"}
    | {"state", "timers", "values", "outputs"}
)
#: What bolts say of themselves.
_SAID = frozenset(dir(Bolt)) | frozenset(dir(BlockBolt))
Found = str | None


def why_not(component: Component, bodies: Iterable[Body]) -> Found:
    """Say why a component has to stay where it is; None if it can go. Bodies are its tasks'."""
    body = component.body
    if component.options.isolation == "thread":
        return "it says isolation='thread'"
    if component.is_spout or not component.outputs:
        return "sources and sinks stay where they are"
    if isinstance(body, Bolt) and not body.auto_ack:
        return "it may hold tuples that it has not acknowledged"
    look = _Look()
    found = look.members(type(body)) or look.attributes(body)
    for own in bodies:
        found = found or remembers(body, own)
    return found


def why_not_function(function: Callable[..., Any]) -> Found:
    """Say why a function has to stay in this process; None if it can go."""
    return _Look().value(getattr(function, "__name__", "it"), function)


def remembers(body: Body, own: Body) -> Found:
    """Say which attribute of a task's body would be lost."""
    before = vars(body)
    for name, value in vars(own).items():
        if name in _GIVEN | _SAID or (name in before and _same(before[name], value)):
            continue
        if type(own).__module__.startswith("thalweg."):
            continue  # what it keeps beside its state it can make again
        return f"it keeps {name!r} outside of its state"
    return None


class _Look:
    """Goes through what code refers to, once each."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def members(self, kind: type) -> Found:
        """Look at the methods and attributes of a user's class."""
        for base in kind.__mro__:
            if base.__module__.startswith("thalweg.") or not _is_users_own(base):
                continue
            own = (pair for pair in vars(base).items() if _is_own(*pair))
            if found := self._any(own):
                return found
        return None

    def attributes(self, thing: Any) -> Found:
        """Look at what an object of ours holds, which may be functions of the user."""
        given = (pair for pair in vars(thing).items() if pair[0] not in _GIVEN)
        return self._any(given)

    def value(self, name: str, value: Any) -> Found:
        """Look at a value that is known by a name."""
        if isinstance(value, _PLAIN) or id(value) in self._seen:
            return None
        self._seen.add(id(value))
        if isinstance(value, tuple | frozenset):
            return self._any((name, part) for part in value)
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, staticmethod | classmethod | functools.partial | property):
            return self._wrapped(name, value)
        if isinstance(value, ModuleType):
            return self._module(name, value)
        if isinstance(value, type):
            return self.members(value)
        if _is_call_of_c(value):
            if _talks(value):
                return f"it calls {name}"
            return self._any([(name, getattr(value, "__self__", None))])
        if type(value).__module__.startswith("thalweg.") and not isinstance(value, MethodType):
            return self.attributes(value) if hasattr(value, "__dict__") else None
        return f"it refers to {name!r}, a {type(value).__name__}, which others may see"

    def _any(self, named: Iterable[tuple[str, Any]]) -> Found:
        return next((found for name, value in named if (found := self.value(name, value))), None)

    def _wrapped(self, name: str, value: Any) -> Found:
        if isinstance(value, functools.partial):
            return self._any((name, v) for v in (value.func, *value.args, *value.keywords.values()))
        inner = value.fget if isinstance(value, property) else value.__func__
        return self.value(name, inner)

    def _module(self, name: str, module: ModuleType) -> Found:
        if is_users(module):
            return f"it refers to the module {name!r}, which may keep something"
        root = module.__name__.split(".")[0]
        return f"it uses {root!r}, which is about this process" if root in _TALKING else None

    def _function(self, function: FunctionType) -> Found:
        if not _is_users_own(function):
            return None
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
        held = {name: cell.cell_contents for name, cell in cells if _filled(cell)}
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        return (
            self._code(function.__code__, function.__globals__)
            or self._any(held.items())
            or self._any((f"a default of {function.__name__}", value) for value in defaults)
        )

    def _code(self, code: CodeType, known: Mapping[str, Any]) -> Found:
        for step in dis.get_instructions(code):
            if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                return f"it changes the global variable {step.argval!r}"
            if step.opname == "STORE_DEREF" and step.argval in code.co_freevars:
                return f"it changes the variable {step.argval!r} of the function around it"
        for name in code.co_names:
            if name in known:
                if found := self.value(name, known[name]):
                    return found
            elif name in _TALKS:
                return f"it calls {name}"
        inner = (const for const in code.co_consts if isinstance(const, CodeType))
        return next((found for each in inner if (found := self._code(each, known))), None)


def _is_own(name: str, value: Any) -> bool:
    """Say whether a member of a class is more than what every bolt says of itself."""
    if isinstance(value, FunctionType):
        return True
    return not name.startswith("__") and name not in _SAID


def _is_users_own(thing: Any) -> bool:
    """Say whether a class or function is the user's own."""
    module = sys.modules.get(thing.__module__ or "")
    return module is None or module.__name__ == "__main__" or is_users(module)


def _talks(value: Any) -> bool:
    name = getattr(value, "__name__", "")
    return name in _TALKS and vars(builtins).get(name) is value


def _is_call_of_c(value: Any) -> bool:
    kinds = (BuiltinFunctionType, type(str.upper), type(int.__add__), type(print))
    return isinstance(value, kinds)


def _same(before: Any, now: Any) -> bool:
    if before is now:
        return True
    return isinstance(now, _PLAIN) and type(before) is type(now) and bool(before == now)


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # not set yet
        return False
