"""Sizes and habits that keep the code readable."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest

from architecture.places import PACKAGE, ROOT, project_files
from architecture.sources import bare_waivers, dangerous, functions_of

SOURCES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in SOURCES.items()}
FUNCTIONS = [function for name, path in SOURCES.items() for function in functions_of(path, name)]

# --- sizes ----------------------------------------------------------------------------------------


def test_no_module_has_over_500_lines() -> None:
    sizes = {name: len(text.splitlines()) for name, text in TEXTS.items()}
    assert {name: size for name, size in sizes.items() if size > 500} == {}


def test_the_median_module_has_at_most_200_lines() -> None:
    assert statistics.median(len(text.splitlines()) for text in TEXTS.values()) <= 200


def test_no_function_has_over_60_lines() -> None:
    assert [f"{f.where}: {f.lines} lines" for f in FUNCTIONS if f.lines > 60] == []


def test_most_functions_are_short() -> None:
    sizes = sorted(function.lines for function in FUNCTIONS)
    assert statistics.median(sizes) <= 6
    assert sizes[int(len(sizes) * 0.9)] <= 20


def test_no_function_has_over_6_parameters() -> None:
    assert [f"{f.where}: {f.parameters}" for f in FUNCTIONS if f.parameters > 6] == []


def test_every_function_is_annotated() -> None:
    assert [f.where for f in FUNCTIONS if not f.annotated] == []


# --- habits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOURCES)
def test_waivers_have_a_code_and_a_reason(name: str) -> None:
    assert bare_waivers(TEXTS[name]) == []


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_reads_code_from_data(name: str) -> None:
    # One module sends code to workers; it says itself that nothing else is read that way.
    allowed = ["cloudpickle"] if name == "runtimes/shipping.py" else []
    assert [found.split(": ")[1] for found in dangerous(TEXTS[name])] == allowed


def test_the_closest_name_is_looked_for_and_asked_about_in_one_place() -> None:
    asks = re.compile("did you mean|get_close_matches")
    assert [name for name, text in TEXTS.items() if asks.search(text)] == ["errors.py"]


READABLE = {
    str(path.relative_to(ROOT)): path
    for path in project_files()
    if path.suffix in {"", ".md", ".py", ".toml", ".txt", ".yml", ".yaml", ".json", ".cfg"}
}
#: Words for things left undone, in two halves so that this file does not hold them.
UNDONE = re.compile(rf"\b(?:{'TO' + 'DO'}|{'FIX' + 'ME'})\b")
#: Folders that exist on somebody's machine only.
MACHINE_PATH = re.compile(
    r"(?<![\w.:/~-])/(?:home|root|Users|work|mnt|tmp|opt/\w+/envs|var/folders)/\w|[A-Z]:\\Users\\"
)


@pytest.mark.parametrize("name", READABLE)
def test_nothing_is_left_undone_and_no_file_names_a_machine(name: str) -> None:
    lines = READABLE[name].read_text(encoding="utf-8").splitlines()
    told = [f"line {i}: {line}" for i, line in enumerate(lines, 1) if _is_wrong(line)]
    assert told == []


def _is_wrong(line: str) -> bool:
    return bool(UNDONE.search(line) or MACHINE_PATH.search(line) or str(ROOT) in line)


# --- the checks can fail --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "good"),
    [
        ("# noqa: A002 (Storm's word)", True),
        ("# noqa: A002, EM101 (Storm's word)", True),
        ("# type: ignore[override] # builds a comparison", True),
        ("# type: ignore[arg-type] (the stub is wrong)", True),
        ("# noqa", False),
        ("# noqa: A002", False),
        ("# noqa (a reason without a code)", False),
        ("# noqa: A002 ()", False),
        ("# type: ignore", False),
        ("# type: ignore[override]", False),
        ("# type: ignore # a reason without a code", False),
        ("# an ordinary comment", True),
    ],
)
def test_waivers_are_told_apart(comment: str, good: bool) -> None:
    assert (bare_waivers(f"x = 1  {comment}\n") == []) is good
    assert bare_waivers(f'x = "{comment}"\n') == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "def f():\n    import marshal as m",
        "eval('1')",
        "builtins.exec('x = 1')",
        "np.load(file, allow_pickle=True)",
        "run = eval",
    ],
)
def test_danger_is_seen(text: str) -> None:
    assert len(dangerous(text)) == 1


def test_harmless_names_are_no_danger() -> None:
    assert dangerous("re.compile('x'); loader.exec_module(m); evaluate(batch); pickled = 1") == []


def test_machine_paths_are_seen() -> None:
    folder = "home"
    assert MACHINE_PATH.search(f'open("/{folder}/ada/posts.csv")')
    assert not MACHINE_PATH.search(f"https://example.org/{folder}/ada")
    assert not MACHINE_PATH.search("#!/usr/bin/env bash")


def test_functions_are_measured(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text(
        "class A:\n"
        "    def f(self, a: int, *, b: int = 1, **more: int) -> int:\n"
        '        """Say.\n\n        More.\n        """\n'
        "        x = a\n\n        return x\n"
        "    @staticmethod\n"
        "    def g(a) -> None: ...\n"
        "def h(a: int): return a\n",
        encoding="utf-8",
    )
    measured = {f.where.split()[1]: f for f in functions_of(path, "m.py")}
    assert (measured["f"].lines, measured["f"].parameters, measured["f"].annotated) == (3, 2, True)
    assert (measured["g"].parameters, measured["g"].annotated) == (1, False)
    assert measured["h"].annotated is False
