"""The quick way into a child: run as a file, it imports only what components need.

``python -m thalweg.storm.child`` would run the package first, with everything in it: a second, for
each task. Here packages are empty until somebody wants a name of theirs.
"""

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

#: Packages that import more than a component needs.
_PACKAGES = ("thalweg", "thalweg.storm", "thalweg.multilang")
#: Modules in which names of a package are looked for first.
_FIRST = {"thalweg.storm": ("bolts", "spouts", "components", "streams", "topologies", "outside")}


class Later(ModuleType):
    """A package whose code is run when one of its names is wanted; its modules do without."""

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec.name)
        self.__spec__, self.__loader__, self.__file__ = spec, spec.loader, spec.origin
        self.__path__ = list(spec.submodule_search_locations or ())
        self.__package__ = spec.name

    def __getattr__(self, name: str) -> Any:
        """Find a module, or else run the package."""
        if name.startswith("__"):
            raise AttributeError(name)
        whole = f"{self.__name__}.{name}"
        if importlib.util.find_spec(whole) is not None:
            return importlib.import_module(whole)
        for module in _FIRST.get(self.__name__, ()):
            found = getattr(self, module)
            if hasattr(found, name):
                return getattr(found, name)
        self.__class__ = ModuleType  # type: ignore[assignment]  # from now on it is like others
        assert self.__loader__ is not None  # noqa: S101 (it comes from a file)
        self.__loader__.exec_module(self)  # type: ignore[attr-defined]  # as above
        return getattr(self, name)


def install(root: Path) -> None:
    """Put empty packages in place."""
    for name in _PACKAGES:
        folder = root.joinpath(*name.split("."))
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None  # noqa: S101 (a file is enough)
        package = sys.modules[name] = Later(spec)
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, package)


def main() -> None:
    """Run a component until its input ends."""
    install(Path(__file__).parent.parent.parent)
    importlib.import_module("thalweg.storm.child").main()


if __name__ == "__main__":
    main()
