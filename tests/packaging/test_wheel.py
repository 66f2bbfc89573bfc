"""What is installed from a wheel is whole: files of the page, licences, and nothing optional."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "thalweg"
STATIC = PACKAGE / "dashboard" / "static"
PROGRAM = """
import thalweg as tw

flow = tw.Flow("words")
words = flow.source("words", tw.rate(tw.constant(100), lambda n: n % 7), fields={"n": int})
words.tally("counts", key="n")
"""
#: Refuses what is only there with an extra, or with the development tools.
WITHOUT_EXTRAS = """
import sys

EXTRAS = {"pyspark", "pandas", "confluent_kafka", "psycopg", "opentelemetry", "mtkahypar"}
EXTRAS |= {"paho", "pytest", "playwright", "matplotlib", "duckdb"}


class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refusing())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel as pip does, with what is installed."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603 (ours)
    [made] = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install it into a folder of its own, in a world without extras."""
    folder = tmp_path_factory.mktemp("site")
    with ZipFile(wheel) as packed:
        packed.extractall(folder)
    (folder / "sitecustomize.py").write_text(WITHOUT_EXTRAS)
    return folder


def test_it_has_every_file_of_the_package(wheel: Path) -> None:
    with ZipFile(wheel) as packed:
        names = set(packed.namelist())
    # Where other tests have modules compiled, files come and go in __pycache__.
    found = [path for path in PACKAGE.rglob("*") if "__pycache__" not in path.parts]
    files = [path for path in found if path.is_file()]
    assert {f"thalweg/{path.relative_to(PACKAGE).as_posix()}" for path in files} <= names


def test_what_others_have_written_comes_with_their_licences(wheel: Path) -> None:
    vendored = [path.name for path in (STATIC / "vendor").iterdir() if path.is_dir()]
    assert vendored
    with ZipFile(wheel) as packed:
        [own] = [name for name in packed.namelist() if name.endswith(".dist-info/licenses/LICENSE")]
        assert b"Apache License" in packed.read(own)
        for library in vendored:
            theirs = packed.read(f"thalweg/dashboard/static/vendor/{library}/LICENSE")
            assert b"Copyright" in theirs


@contextmanager
def page(site: Path, folder: Path) -> Iterator[str]:
    """Run a topology with what is installed; gives the address of its page, without the token."""
    (folder / "words.py").write_text(PROGRAM)
    words = ["run", "words.py", "--ui", "--record", "run.sqlite"]
    process = subprocess.Popen(  # noqa: S603 (our own program)
        [sys.executable, "-P", "-m", "thalweg", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stderr is not None
            found = re.match(r"page: (http://[^?]+)\?", first := process.stderr.readline())
            assert found, first + process.stderr.read()
            yield found[1]
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
            assert process.wait() == 0, said
        finally:
            process.kill()


def test_a_run_shows_its_page_with_all_that_belongs_to_it(site: Path, tmp_path: Path) -> None:
    static = site / "thalweg" / "dashboard" / "static"
    files = [each for each in sorted(static.rglob("*")) if each.suffix in (".css", ".js", ".svg")]
    wanted = {f"static/{path.relative_to(static).as_posix()}": path for path in files}
    named = re.findall(r'(?:src|href)="/(static/[^"]+)"', (static / "index.html").read_text())
    assert named
    assert set(named) <= wanted.keys()
    with page(site, tmp_path) as address:
        for name, path in {"": static / "index.html", **wanted}.items():
            with urllib.request.urlopen(address + name) as answer:  # noqa: S310 (our own server)
                assert answer.read() == path.read_bytes(), name
    assert (tmp_path / "run.sqlite").exists()
