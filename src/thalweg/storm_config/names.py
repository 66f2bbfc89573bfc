"""From a name in a configuration to the thing of Python that it names."""

from __future__ import annotations

import importlib
from typing import Any

from thalweg.errors import UsageError, explain


def loaded(path: str) -> Any:
    """Import what a name stands for: ``package.module:Name``, or with a dot in place of the colon.

    >>> loaded("thalweg.consumers:LoggingConsumer").__name__
    'LoggingConsumer'
    """
    module, colon, name = path.partition(":")
    if not colon:
        module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        expected = "something that Python can import, 'package.module:Name'"
        hint = "classes of Java cannot run here" if _like_java(path) else ""
        text = explain(f"name {path!r}", "configuration", expected, str(error), hint)
        raise UsageError(text) from error


def made(path: str, argument: Any = None) -> Any:
    """Make an object: of a class, with its argument; what is no class is the object."""
    found = loaded(path)
    if not isinstance(found, type):
        return found
    if isinstance(argument, dict):
        return found(**argument)
    return found() if argument is None else found(argument)


def _like_java(path: str) -> bool:
    return path.split(".", maxsplit=1)[0] in ("org", "com", "backtype", "storm", "java")
