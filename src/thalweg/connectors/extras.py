"""Packages that are there only with an extra, loaded when a run begins."""

from __future__ import annotations

import importlib
from typing import Any

from thalweg.errors import UsageError, explain


def loaded(subject: str, extra: str, package: str, *modules: str) -> Any:
    """Import modules of a package, and give the last; says what to install where it is missing.

    >>> loaded("X", "x", "some-x", "math").sqrt(4)
    2.0
    >>> loaded("X", "x", "some-x", "some_x")
    Traceback (most recent call last):
        ...
    thalweg.errors.UsageError: X: expected the package some-x, got none (pip install 'thalweg[x]')
    """
    try:
        return [importlib.import_module(name) for name in modules][-1]
    except ImportError as error:
        hint = f"pip install 'thalweg[{extra}]'"
        expected = f"the package {package}"
        raise UsageError(explain(subject, expected=expected, got="none", hint=hint)) from error
