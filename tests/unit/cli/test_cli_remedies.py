"""Whatever goes wrong with a command, its message ends with what to do next."""

from __future__ import annotations

import errno
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from thalweg.cli.app import app
from thalweg.cli.failures import reported
from thalweg.cli.remedies import remedy_for
from thalweg.errors import ComponentError, UsageError
from thalweg.recording.files import APPLICATION, VERSION

FILES = {
    "flow.py": "import thalweg as tw\nflow = tw.Flow('a')\n"
    "flow.source('s', tw.items(['a', 'b']), fields=['w']).tally('c', key='w')\n",
    "none.py": "x = 1\n",
    "several.py": "import thalweg as tw\na, b = tw.Flow('a'), tw.Flow('b')\n",
    "needs.py": "import no_such_module\n",
    "binary.py": "\0",
    "text.txt": "hello\n",
    "data.csv": "a,b\n1,2\n",
    "empty.csv": "x\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be files to go wrong with."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    _database(tmp_path / "other.sqlite", 0, 0)
    _database(tmp_path / "older.sqlite", APPLICATION, VERSION - 1)
    _database(tmp_path / "newer.sqlite", APPLICATION, VERSION + 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def _database(path: Path, application: int, version: int) -> None:
    made = sqlite3.connect(path)
    made.execute("CREATE TABLE other (n)")
    made.execute(f"PRAGMA application_id = {application}")
    made.execute(f"PRAGMA user_version = {version}")
    made.commit()
    made.close()


def said(command: str) -> str:
    """Run a command that fails; gives its message."""
    done = CliRunner().invoke(app, command.split())
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code in (1, 2), done.stdout
    return done.stderr.strip()


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        ("run flows.py", "(did you mean 'flow.py'?)"),
        ("run far/away.py", "(a relative path starts at the current folder)"),
        ("run .", "(name a file in it: binary.py)"),
        ("run none.py", "(hold it in a variable, or return it from a function called main)"),
        ("run several.py", "(say which one: several.py:a)"),
        ("run binary.py", "(is it a Python file, in UTF-8?)"),
        ("run flow.py --record text.txt", "(delete it, or choose another name)"),
        ("run flow.py --record far/a.sqlite", "(there is no folder 'far': make it first, or is"),
        ("run flow.py --table away.json", "(is the path right? a relative one starts at the"),
        ("run flow.py --config away.yaml", "(is the path right? a relative one starts at the"),
        ("run flow.py --config text.txt", "(lines as topology.workers: 4)"),
        ("run flow.py --locality often", "expected off, ask, auto, or a time such as '10 min'"),
        ("run flow.py --on abacus", "expected one of ['inline', 'local', 'spark']"),
        ("run flow.py --ui-port 80", "expected only together with --ui"),
        ("run flow.py --ui --ui-host 203.0.113.7", "127.0.0.1 is for itself, 0.0.0.0 for all"),
        ("run flow.py --checkpoint text.txt", "(a file is where a folder should be: choose"),
        ("run flow.py --on spark --master x", "local[4], spark://HOST:PORT, yarn or k8s://..."),
        ("report away.sqlite", "(thalweg run FILE.py --record NEW.sqlite makes one)"),
        ("report text.txt", "(thalweg run FILE.py --record NEW.sqlite makes one)"),
        ("report other.sqlite", "(thalweg run FILE.py --record NEW.sqlite makes one)"),
        ("report older.sqlite", "(an older Thalweg made it, which can still show it)"),
        ("report newer.sqlite", "(a newer Thalweg made it: pip install --upgrade thalweg)"),
        ("ui newer.sqlite", "(a newer Thalweg made it: pip install --upgrade thalweg)"),
        ("history away.db", "(thalweg run FILE.py --scale POLICY --history NEW.db makes one)"),
        ("history text.txt", "(thalweg run FILE.py --scale POLICY --history NEW.db makes one)"),
        ("train away.csv -o t.json", "(is the path right? a relative one starts at the current"),
        ("train empty.csv -o t.json", "expected --component and --cost above 0"),
        ("train empty.csv -o t.json --component c --cost 1", "(a number per line, or a column"),
        ("train data.csv -o far/t.json --component c --cost 1", "(there is no folder 'far': make"),
        ("train data.csv -o text.txt --component c --cost 1", "(make it with thalweg train)"),
        ("analyze away.csv --keys a,b", "(a relative path starts at the current folder)"),
        ("analyze data.csv --keys a,b --table far/t.json", "first: mkdir -p far)"),
        ("sql SELECT", "expected --source NAME=FILES"),
        ("state ls away", "(give the folder or URI that a run had as its state)"),
        ("state ls .", "(nothing was ever committed there, or it is another folder)"),
        ("reroute away", "(give the folder or URI that a run had as its state)"),
        ("rebalance away c=2", "(give the folder or URI that a run had as its state)"),
        ("rebalance away", "say either COMPONENT=DEGREE, or --places, --avoid or --everywhere"),
        ("server list --root away", "(start it with: thalweg server start --root away --allow"),
        ("server start --root r", "Missing option '--allow'"),
        (
            "server start --root r --allow away --foreground",
            "(make it first, or is the path wrong?)",
        ),
        ("server start --root text.txt --allow . --foreground", "delete it, or choose another"),
        ("submit flows.py --master local[2]", "(did you mean 'flow.py'?)"),
        ("submit flow.py", "expected spark://HOST:PORT, yarn or k8s://..."),
        ("submit flow.py --master spark://h:1", "(as --checkpoint s3://BUCKET/FOLDER, or a folder"),
        ("submit flow.py --master local[2] --archive a.tar.gz", "(--pack alone makes one of this"),
        ("submit flow.py --master local[2] --properties away", "(is the path right? a relative"),
        ("submit flow.py --master local[2] --conf x", "--conf: expected key=value"),
        ("describe flow.py -o flow.png", "expected .svg for a picture, .mmd or .md for Mermaid"),
        ("describe flow.py -o far/flow.svg", "(there is no folder 'far': make it first, or is"),
        ("bench wordcounts", "(did you mean 'wordcount'?)"),
        ("bench wordcount --json far/f.json", "(make it first: mkdir -p far)"),
        ("bench wordcount --sizes 5", "expected options --words, --repeat"),
        ("storm run none.py", "(class X(Topology): ...)"),
        ("rum flow.py", "Did you mean 'run'?"),
        ("run", "Try 'thalweg run -h' for help."),
    ],
)
def test_a_message_ends_with_what_to_do(command: str, remedy: str) -> None:
    text = said(command)
    assert remedy in text
    # Behind it is at most the rest of the sentence, and no traceback.
    assert remedy in text.splitlines()[-1] or text.startswith("Usage:")


def test_a_missing_module_is_to_be_installed() -> None:
    text = said("run needs.py")
    assert "No module named 'no_such_module' (install what has it, as pip install NAME" in text


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize(
    "command",
    ["run flow.py --ui --ui-port", "server start --root r --allow . --foreground --port"],
)
def test_a_port_that_is_taken_is_to_be_another_one(command: str, taken: int) -> None:
    assert said(f"{command} {taken}").endswith("choose another port, 0 for any that is free)")


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "the disk is full: df -h shows it; free some, or choose another place"),
        (errno.EACCES, "may you read and write there?"),
        (errno.EROFS, "nothing can be written there: choose another place"),
        (errno.EMFILE, "ulimit -n"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_an_error_of_the_system_has_its_remedy(
    capsys: pytest.CaptureFixture[str], code: int, remedy: str, wrapped: bool
) -> None:
    error: Exception = OSError(code, "what the system says", "some.file")
    if wrapped:
        error = _caused("output file: expected to be written", error)
    with pytest.raises(typer.Exit), reported(debug=False):
        raise error
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert remedy in line.replace("\n", " ")


def test_a_message_that_says_what_to_do_keeps_its_own_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "output file: expected a folder, got a file (choose another)"
    with pytest.raises(typer.Exit), reported(debug=False):
        raise _caused(text, NotADirectoryError(errno.ENOTDIR, "no folder", "f"))
    assert capsys.readouterr().err == f"error: {text}\n"


def test_what_a_component_raises_is_not_explained_away(capsys: pytest.CaptureFixture[str]) -> None:
    error = ComponentError("c", 0, "OSError: no space")
    error.__cause__ = OSError(errno.ENOSPC, "no space")
    with pytest.raises(typer.Exit), reported(debug=False):
        raise error
    assert capsys.readouterr().err.splitlines() == [
        f"error: {error}",
        "  (--debug shows the whole traceback)",
    ]


def test_an_error_that_nobody_has_foreseen_is_shown_whole() -> None:
    with pytest.raises(OSError, match="strange"), reported(debug=False):
        raise OSError(errno.EXDEV, "strange")
    assert remedy_for(OSError("without a number")) == ""


def _caused(text: str, cause: Exception) -> UsageError:
    error = UsageError(text)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("command", ["reroute", "rebalance"])
def test_the_folder_of_a_checkpoint_is_as_good_as_its_state(command: str) -> None:
    done = CliRunner().invoke(app, ["run", "flow.py", "-q", "--checkpoint", "kept"])
    assert done.exit_code == 0, done.stderr
    degrees = ["c=2"] if command == "rebalance" else []
    text = said(" ".join([command, "kept", *degrees, "--patience", "0"]))
    assert "kept/state: expected a batch as asked for, got no run that takes the request" in text
