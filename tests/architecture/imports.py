"""Reads which module imports which, and says where that breaks the layers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path


@dataclass(frozen=True)
class Import:
    """An import somewhere in a module: at its top, in a function, or for type checkers only."""

    importer: str
    imported: str
    line: int


def modules_of(package: Path) -> dict[str, Path]:
    """Find the modules of a package by their full names."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = (package.name, *path.relative_to(package).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(package: Path) -> list[Import]:
    """Read all imports, of modules of the package and of others."""
    modules = modules_of(package)
    return [
        Import(name, target, line)
        for name, path in modules.items()
        for target, line in _targets(name, path, modules)
    ]


def _targets(name: str, path: Path, modules: Mapping[str, Path]) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, name, is_package=path.name == "__init__.py")
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if full in modules else base, node.lineno
        elif isinstance(node, ast.Call) and _imports_by_name(node):
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value, node.lineno


def _base(node: ast.ImportFrom, name: str, is_package: bool) -> str:
    """Give the module that ``from ... import`` names; dots count upwards from the importer."""
    if not node.level:
        return node.module or ""
    parts = name.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _imports_by_name(node: ast.Call) -> bool:
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return bool(node.args) and name in ("import_module", "__import__")


def layer_of(module: str, layers: Mapping[str, tuple[str, ...]]) -> str | None:
    """Find the layer of a module by the part of its name behind the package's."""
    part = module.split(".")[1] if "." in module else ""
    return next((layer for layer, names in layers.items() if part in names), None)


def violations(package: Path, layers: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Say what breaks the layers: modules in none of them, and imports that point upwards."""
    height = {layer: i for i, layer in enumerate(layers)}
    said = [
        f"{module}: expected to be in a layer, got none (place it in tests/architecture/layers.py)"
        for module in modules_of(package)
        if layer_of(module, layers) is None
    ]
    for found in imports_of(package):
        if found.imported.split(".")[0] != package.name:
            continue
        low, high = layer_of(found.importer, layers), layer_of(found.imported, layers)
        if low is not None and high is not None and height[high] > height[low]:
            said.append(
                f"{found.importer}, line {found.line}: imports {found.imported}; "
                f"{low!r} is below {high!r}"
            )
    return said


def imports_of_others(package: Path, layers: Mapping[str, tuple[str, ...]]) -> Iterator[Import]:
    """Give the imports from outside the package that these layers make."""
    for found in imports_of(package):
        inside = found.imported.split(".")[0] == package.name
        if not inside and layer_of(found.importer, layers) is not None:
            yield found


def cycle(package: Path) -> list[str] | None:
    """Find modules that import each other; the root, which everybody may import, is left out."""
    graph: dict[str, set[str]] = {}
    for found in imports_of(package):
        if found.imported.startswith(f"{package.name}.") and found.importer != package.name:
            graph.setdefault(found.importer, set()).add(found.imported)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None
