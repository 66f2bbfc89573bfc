"""Imports point downwards only."""

from __future__ import annotations

from pathlib import Path

import pytest

from architecture.imports import cycle, imports_of_others, layer_of, modules_of, violations
from architecture.layers import DESCRIBING, LAYERS, PLANNED, THINGS_THAT_RUN
from architecture.places import PACKAGE


def test_every_module_is_in_a_layer_and_imports_point_downwards() -> None:
    assert violations(PACKAGE, LAYERS) == []


def test_describing_imports_nothing_that_runs() -> None:
    layers = {name: LAYERS[name] for name in DESCRIBING}
    wrong = [
        found
        for found in imports_of_others(PACKAGE, layers)
        if found.imported.split(".")[0] in THINGS_THAT_RUN
    ]
    assert wrong == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert cycle(PACKAGE) is None


def test_layers_name_what_exists_or_is_planned_and_each_once() -> None:
    names = [name for layer in LAYERS.values() for name in layer]
    exist = {module.partition(".")[2].split(".")[0] for module in modules_of(PACKAGE)}
    assert len(names) == len(set(names))
    assert set(names) - exist <= PLANNED


# --- the checker itself can fail ------------------------------------------------------------------

FAKE_LAYERS = {"low": ("errors", "values"), "middle": ("topology",), "high": ("runtimes", "")}


def fake_package(folder: Path, **modules: str) -> Path:
    """Make a package; double underscores in a name stand for slashes."""
    package = folder / "fake"
    for name, text in ({"__init__": "", "errors": ""} | modules).items():
        path = package / f"{name if name == '__init__' else name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text, encoding="utf-8")
    return package


def test_a_package_in_order_has_no_violations(tmp_path: Path) -> None:
    package = fake_package(
        tmp_path,
        topology="from fake.errors import Error\nimport fake.values",
        values="from fake import errors",
        runtimes__inline="from fake import topology\nfrom .tasks import Task",
        runtimes__tasks="",
    )
    assert violations(package, FAKE_LAYERS) == []


@pytest.mark.parametrize(
    ("module", "text", "line", "imported"),
    [
        ("topology", "import fake.runtimes.inline", 1, "fake.runtimes.inline"),
        ("topology", "import fake.runtimes.inline as i", 1, "fake.runtimes.inline"),
        ("topology", "from fake.runtimes import inline", 1, "fake.runtimes.inline"),
        ("topology", "from fake.runtimes.inline import Inline", 1, "fake.runtimes.inline"),
        ("topology", "from .runtimes.inline import Inline", 1, "fake.runtimes.inline"),
        ("topology", "from . import runtimes", 1, "fake.runtimes"),
        ("topology", "def f():\n    import fake.runtimes.inline", 2, "fake.runtimes.inline"),
        (
            "topology",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import fake.runtimes.inline",
            3,
            "fake.runtimes.inline",
        ),
        (
            "topology",
            "import importlib\nimportlib.import_module('fake.runtimes')",
            2,
            "fake.runtimes",
        ),
        ("topology", "import fake", 1, "fake"),
        ("topology", "from fake import VERSION", 1, "fake"),
        ("values", "import os\nfrom fake import topology", 2, "fake.topology"),
        ("values__deep", "from ..topology import Topology", 1, "fake.topology"),
    ],
)
def test_an_import_that_points_upwards_is_reported(
    tmp_path: Path, module: str, text: str, line: int, imported: str
) -> None:
    others = {"topology": "", "values__other": "", "runtimes__inline": ""}
    (said,) = violations(fake_package(tmp_path, **(others | {module: text})), FAKE_LAYERS)
    name = f"fake.{module.replace('__', '.')}"
    assert said.startswith(f"{name}, line {line}: imports {imported};")


def test_a_module_in_no_layer_is_reported(tmp_path: Path) -> None:
    package = fake_package(tmp_path, novelty="")
    (said,) = violations(package, FAKE_LAYERS)
    assert said.startswith("fake.novelty: expected to be in a layer, got none")


def test_a_circle_is_reported(tmp_path: Path) -> None:
    package = fake_package(tmp_path, values="import fake.topology", topology="import fake.values")
    assert set(cycle(package) or ()) == {"fake.values", "fake.topology"}


def test_things_that_run_are_seen_through_any_import(tmp_path: Path) -> None:
    text = "def f():\n    from concurrent.futures import ThreadPoolExecutor"
    package = fake_package(tmp_path, topology=text, runtimes__inline="import socket")
    found = list(imports_of_others(package, {"middle": ("topology",)}))
    assert [(i.importer, i.imported) for i in found] == [("fake.topology", "concurrent.futures")]


def test_the_root_and_packages_have_layers_too() -> None:
    assert layer_of("thalweg", LAYERS) == "what people touch"
    assert layer_of("thalweg.runtimes.inline", LAYERS) == "runtimes"
    assert layer_of("thalweg.nowhere", LAYERS) is None
