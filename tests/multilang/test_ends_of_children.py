"""No child outlives the process that started it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from children import collecting, python, run, through

import thalweg as tw
from thalweg.multilang import ShellBolt, ShellSpout
from thalweg.multilang.child import Child, ChildError, CleanEnd
from thalweg.multilang.guarding import FOLDERS, Guard
from thalweg.multilang.settings import Shell
from thalweg.multilang.wire import make_wire

HOST = """
import sys
import thalweg as tw

builder = tw.TopologyBuilder("host")
builder.add_spout("numbers", tw.items([1]), fields={"n": int})
builder.add_bolt("child", tw.ShellBolt(sys.argv[2:], ["n"])).shuffle("numbers")
builder.build().run(on=sys.argv[1])
"""


def has_ended(pid: int) -> bool:
    """Wait for the end of a process that somebody else started."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        return bool(waiting.poll())
    finally:
        os.close(handle)


@pytest.mark.parametrize("on", ["inline", "local"])
@pytest.mark.parametrize("whom", ["process", "group"])
def test_a_child_ends_with_its_host_though_that_is_killed(
    on: str, whom: str, tmp_path: Path
) -> None:
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    (temporary := tmp_path / "for pids").mkdir()
    command = [sys.executable, "-c", HOST, on, *python("stubborn.py", str(fifo))]
    env = {**os.environ, "TMPDIR": str(temporary)}
    host = subprocess.Popen(command, start_new_session=True, env=env)  # noqa: S603 (this program)
    child = int(fifo.read_text())
    os.kill(child, 0)  # it is there
    (os.kill if whom == "process" else os.killpg)(host.pid, signal.SIGKILL)
    assert host.wait() == -signal.SIGKILL
    assert has_ended(child)
    assert gone(temporary)


def gone(folder: Path) -> bool:
    """Wait until nothing is in a folder any more."""
    while os.listdir(folder):
        os.sched_yield()
    return True


def starting(folder: Path, how: str) -> tuple[Child, int]:
    """Start a child that starts a process of its own; gives the number of that as well."""
    folder.mkdir()
    os.mkfifo(fifo := folder / "pid")
    child = Child(Shell(tuple(python("starts_another.py", str(fifo), how))), {}, lambda _text: None)
    return child, int(fifo.read_text())


@pytest.mark.parametrize("how", ["close", "kill", "die"])
def test_what_a_child_has_started_ends_with_it_though_there_are_other_children(
    how: str, tmp_path: Path
) -> None:
    one, of_one = starting(tmp_path / "one", how)
    two, of_two = starting(tmp_path / "two", "")
    if how == "die":
        with pytest.raises(ChildError, match="status 7"):
            one.next_message(600)
        assert has_ended(of_one)
    (one.close if how == "close" else one.kill)()
    assert has_ended(of_one)
    os.kill(of_two, 0)  # it is there
    two.close()
    assert has_ended(of_two)


@pytest.mark.parametrize("serializer", ["json", "msgpack"])
def test_a_child_that_ends_with_status_0_has_ended_cleanly_only_between_two_messages(
    serializer: Any, tmp_path: Path
) -> None:
    sent = [{"pid": 1}, {"command": "emit", "tuple": [1]}, {"command": "sync"}]
    each = [make_wire(serializer).encode(message) for message in sent]
    data, borders = b"".join(each), [sum(map(len, each[:n])) for n in range(len(each) + 1)]
    for cut in range(len(data) + 1):
        (said := tmp_path / "said").write_bytes(data[:cut])
        child = Child(Shell(("cat", str(said)), serializer=serializer), {}, lambda _text: None)
        heard: list[Any] = []
        with pytest.raises(ChildError) as caught:
            while True:
                heard.append(child.next_message(600))
        child.kill()
        whole = sum(border <= cut for border in borders[1:])
        assert heard == sent[1:whole]
        assert isinstance(caught.value, CleanEnd) == (cut in borders[1:])
        middle = "it has ended in the middle of a message" in str(caught.value)
        assert middle == (cut not in borders)


@pytest.mark.parametrize("on", ["inline", "local"])
def test_a_spout_that_ends_in_the_middle_of_a_tuple_is_no_source_that_has_ended(
    on: str, tmp_path: Path
) -> None:
    builder = tw.TopologyBuilder("torn")
    said = '{"pid": 1}\nend\n{"command": "sync"}\nend\n{"command": "emit", "tup'
    (tmp_path / "said").write_text(said)
    builder.add_spout("numbers", ShellSpout(["cat", str(tmp_path / "said")], ["n"], restarts=0))
    builder.add_bolt("out", collecting([])).shuffle("numbers")
    with pytest.raises(ChildError, match="it has ended in the middle of a message"):
        run(builder.build(), on)


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/bin/sleep", "infinity"], start_new_session=True)


def test_groups_that_are_watched_end_with_the_guard_and_others_do_not() -> None:
    guard, (one, two, three) = Guard(), (sleeper(), sleeper(), sleeper())
    for each in (one, two, three):
        guard.watch(each.pid)
    guard.leave(two.pid)
    guard.close()
    assert (one.wait(), three.wait()) == (-signal.SIGKILL,) * 2
    assert two.poll() is None
    two.kill()
    two.wait()


def test_a_guard_removes_folders_of_groups_that_it_ends_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    guard, groups = Guard(), (sleeper(), sleeper(), sleeper())
    folders = [tmp_path / name for name in (f"{FOLDERS}one", f"{FOLDERS}two", "other")]
    for group, folder in zip(groups, folders, strict=True):
        folder.mkdir()
        (folder / str(group.pid)).touch()
        guard.watch(group.pid, str(folder))
    guard.leave(groups[1].pid)
    guard.close()
    groups[1].kill()
    assert [group.wait() for group in groups] == [-signal.SIGKILL] * 3
    assert [folder.exists() for folder in folders] == [False, True, True]


def test_a_guard_that_is_killed_is_replaced() -> None:
    guard, one, two = Guard(), sleeper(), sleeper()
    guard.watch(one.pid)
    guard._shell.kill()
    guard._shell.wait()
    guard.watch(two.pid)
    guard.close()
    assert (one.wait(), two.wait()) == (-signal.SIGKILL,) * 2


def test_the_guard_goes_with_the_last_group() -> None:
    guard, one = Guard(), sleeper()
    guard.watch(one.pid)
    one.kill()
    one.wait()
    shell = guard._shell
    guard.leave(one.pid)
    assert shell.returncode == 0
    assert guard._shell is None


FORKING = """
import os, signal, subprocess
from thalweg.multilang.guarding import GUARD

one = subprocess.Popen(["/bin/sleep", "infinity"], start_new_session=True)
GUARD.watch(one.pid)
reading, writing = os.pipe()
copy = os.fork()
if copy == 0:
    os.close(writing)
    os.read(reading, 1)
    os._exit(0)
GUARD.close()
assert one.wait() == -signal.SIGKILL
os.close(writing)
assert os.waitpid(copy, 0)[1] == 0
"""


def test_a_copy_of_the_process_does_not_keep_the_guard_waiting() -> None:
    subprocess.run([sys.executable, "-c", FORKING], check=True)  # noqa: S603 (this program)


@pytest.mark.parametrize("on", ["inline", "local"])
def test_a_spout_ends_though_what_it_has_started_keeps_its_output(on: str) -> None:
    builder = tw.TopologyBuilder("helped")
    builder.add_spout("numbers", ShellSpout(python("leaves_helper.py", "0"), ["n"]))
    builder.add_bolt("out", collecting(rows := [])).shuffle("numbers")
    seen = run(builder.build(), on, rows)
    assert rows == [0, 1, 2]
    assert not seen.notices


@pytest.mark.parametrize("on", ["inline", "local"])
def test_a_bolt_that_ends_is_replaced_though_what_it_has_started_keeps_its_output(
    on: str, tmp_path: Path
) -> None:
    bolt = ShellBolt(python("leaves_helper.py", "3", str(tmp_path / "once")), ["value"])
    seen = through(bolt, range(5), on)
    assert set(seen.rows) == set(range(5))
    (notice,) = seen.notices
    assert "has ended with status 3; its last words" in notice
    assert "about to end" in notice


LEAVING = """
import os, subprocess, sys
sys.stdin.readline()
print('{"pid": 1}', "end", sep="\\n", flush=True)
helper = subprocess.Popen(["sleep", "infinity"], stdin=0, stdout=2, start_new_session=True)
print("helped by", helper.pid, end="", file=sys.stderr, flush=True)
os._exit(3)
"""


def test_nothing_is_left_of_a_child_whose_standard_error_somebody_keeps() -> None:
    said, threads, files = list[str](), threading.active_count(), len(os.listdir("/proc/self/fd"))
    child = Child(Shell((sys.executable, "-c", LEAVING)), {}, said.append)
    with pytest.raises(ChildError, match=r"ended with status 3; its last words .*\n.*helped by"):
        child.next_message(600)
        child.next_message(600)
    child.kill()
    try:
        assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, files)
    finally:
        os.kill(int(said[0].split()[-1]), signal.SIGKILL)


def test_a_child_that_closes_its_output_is_not_said_to_have_been_killed() -> None:
    child = Child(Shell(tuple(python("closes_output.py"))), {}, lambda _text: None)
    with pytest.raises(ChildError, match="has closed its output"):
        child.next_message(600)
    child.kill()


def test_an_error_of_who_hears_a_line_of_a_child_is_raised_and_the_child_goes_on() -> None:
    def fail(_text: str) -> None:
        raise RuntimeError

    words = " ".join(python("odd.py", "99", "nothing"))
    child = Child(Shell(("sh", "-c", f"echo noise >&2; exec {words}")), {}, fail)
    with pytest.raises(RuntimeError):
        while True:
            child.next_message(0.01)
    assert not child._is_over()
    child.kill()
