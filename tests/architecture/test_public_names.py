"""What ``import thalweg`` offers, and the tree of errors."""

from __future__ import annotations

import importlib
import inspect
import re
from types import ModuleType

import pytest

import thalweg as tw
from architecture.imports import modules_of
from architecture.places import PACKAGE
from thalweg import errors


def test_public_names_are_sorted() -> None:
    assert list(tw.__all__) == sorted(set(tw.__all__))


def test_the_root_exposes_exactly_its_public_names() -> None:
    listed = set(tw.__all__)
    exposed = {
        name
        for name, value in vars(tw).items()
        if not name.startswith("_") and (name in listed or not isinstance(value, ModuleType))
    }
    assert exposed == listed


@pytest.mark.parametrize("name", tw.__all__)
def test_every_public_name_has_a_docstring_of_its_own(name: str) -> None:
    thing = getattr(tw, name)
    text = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    assert text
    assert text.strip()
    # Dataclasses without a docstring are given their signature as one.
    assert not text.startswith(f"{name}(")


@pytest.mark.parametrize("name", [n for n in tw.__all__ if inspect.isclass(getattr(tw, n))])
def test_public_methods_have_docstrings(name: str) -> None:
    class_ = getattr(tw, name)
    bare = [
        method
        for method, value in vars(class_).items()
        if not method.startswith("_")
        and inspect.isfunction(value)
        and value.__name__ == method  # not so for a function that is the default of a field
        and not value.__doc__
    ]
    assert bare == []


def defined_errors() -> dict[str, type[BaseException]]:
    found = {}
    for module in modules_of(PACKAGE):
        for name, value in vars(importlib.import_module(module)).items():
            is_error = isinstance(value, type) and issubclass(value, BaseException)
            if is_error and value.__module__ == module:
                found[f"{module}.{name}"] = value
    return found


#: Signals that the package catches itself; no user ever sees one.
CAUGHT_INSIDE = {
    "thalweg.columns.Misfit",
    "thalweg.runtimes.failpoints.FailpointReached",
    "thalweg.runtimes.local.failing.Failed",
}


def test_all_errors_are_in_one_tree() -> None:
    others = [n for n, e in defined_errors().items() if not issubclass(e, tw.ThalwegError)]
    assert set(others) <= CAUGHT_INSIDE


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn = re.findall(r"^ +[├└]── (\w+)", errors.__doc__ or "", re.MULTILINE)
    defined = [e.__name__ for e in defined_errors().values() if e.__module__ == errors.__name__]
    assert sorted([*drawn, "ThalwegError"]) == sorted(defined)


def test_errors_of_the_tree_are_public() -> None:
    names = [e.__name__ for e in defined_errors().values() if e.__module__ == errors.__name__]
    assert set(names) <= set(tw.__all__)
