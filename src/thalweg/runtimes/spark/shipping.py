"""Which code travels with a topology: all that workers could not import themselves."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from pyspark import cloudpickle


@contextmanager
def by_value() -> Iterator[None]:
    """Let modules of the user be written down as code, not as names to import."""
    chosen = [module for module in list(sys.modules.values()) if _is_users(module)]
    registered = []
    for module in chosen:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # untyped there
        registered.append(module)
    try:
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]  # untyped there


def _is_users(module: ModuleType) -> bool:
    """Say whether a module is neither Python's nor installed nor part of Thalweg."""
    file = getattr(module, "__file__", None)
    if not file or module.__name__ == "__main__" or module.__name__.split(".")[0] == "thalweg":
        return False
    path = Path(file)
    return not any(path.is_relative_to(folder) for folder in _INSTALLED)


_INSTALLED = [
    Path(path)
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
]
