"""Nothing that users can call is missing from the pages."""

from __future__ import annotations

import dataclasses
import inspect
import re

import pytest
import typer.main

import thalweg as tw
from docs.markdown import PAGES, ROOT
from thalweg import connectors
from thalweg.builder import Reads
from thalweg.cli.app import app
from thalweg.config import Options
from thalweg.flow import KeyedStream, Stream

TEXTS = {name: path.read_text(encoding="utf-8") for name, path in PAGES.items()}
FOR_USERS = "\n".join(text for name, text in TEXTS.items() if name.startswith(("docs/", "README")))


def public_methods(class_: type) -> list[str]:
    return [n for n, v in vars(class_).items() if inspect.isfunction(v) and not n.startswith("_")]


def headings(page: str) -> set[str]:
    return set(re.findall(r"^#+ (.+)$", TEXTS[page], re.MULTILINE))


@pytest.mark.parametrize("name", tw.__all__)
def test_every_public_name_is_explained(name: str) -> None:
    assert re.search(rf"(?:\btw\.|`){name}\b", FOR_USERS)


@pytest.mark.parametrize("name", [*public_methods(Stream), *public_methods(KeyedStream)])
def test_every_operator_has_a_section(name: str) -> None:
    assert name in headings("docs/flow.md")


@pytest.mark.parametrize("name", [n for n in public_methods(Reads) if n != "grouping"])
def test_every_grouping_is_in_the_table(name: str) -> None:
    assert f"| `.{name}(" in TEXTS["docs/bolts.md"]


@pytest.mark.parametrize("name", connectors.__all__)
def test_every_source_and_sink_is_shown(name: str) -> None:
    page = TEXTS["docs/sources.md"]
    assert name in headings("docs/sources.md") or f"| `tw.{name}(" in page
    assert f"tw.{name}(" in page


SETTINGS = {field.name for kind in (Options, tw.Inline) for field in dataclasses.fields(kind)}


@pytest.mark.parametrize("name", sorted(SETTINGS - {"name"}))
def test_every_option_and_setting_is_in_a_table(name: str) -> None:
    assert f"| `{name}` |" in TEXTS["docs/flow.md"]


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(tw.Spark) if f.name != "name"])
def test_every_setting_of_spark_is_in_a_table(name: str) -> None:
    assert f"| `{name}` |" in TEXTS["docs/spark.md"]


def command_options() -> list[str]:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined] # a group
    options = {
        name
        for command in commands.values()
        for parameter in command.params
        for name in parameter.opts
        if name.startswith("-") and name != "--help"
    }
    return sorted(options | {f"thalweg {command}" for command in commands})


@pytest.mark.parametrize("name", command_options())
def test_every_command_and_its_options_are_shown(name: str) -> None:
    assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", TEXTS["docs/cli.md"])


MODULES = sorted(
    path.stem
    for path in (ROOT / "src" / "thalweg").iterdir()
    if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()
)


INNER = sorted(
    f"{folder}/{path.name}"
    for folder in ("runtimes", "runtimes/spark", "statelog")
    for path in (ROOT / "src" / "thalweg" / folder).glob("*.py")
    if path.stem != "__init__"
)


@pytest.mark.parametrize("name", INNER)
def test_every_module_that_runs_is_on_the_map(name: str) -> None:
    assert f"(../src/thalweg/{name})" in TEXTS["docs/architecture.md"]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_is_on_the_map(name: str) -> None:
    assert re.search(rf"\(\.\./src/thalweg/{name}[./]", TEXTS["docs/architecture.md"])
