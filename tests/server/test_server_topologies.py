"""Topologies on a server that is a process of its own."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from serverhost import (
    COUNTING,
    assert_exact,
    emitted,
    processes_of,
    served,
    tuples_in,
    until,
)

CRASHING = """
import thalweg as tw

flow = tw.Flow("crashing")
stream = flow.source("numbers", tw.items(range(10)), fields={"n": int})
stream.map(lambda n: 1 // (n - 5), fields={"n": int}, name="oops").sink("out", tw.stdout())
"""
HANGING = """
import threading
import thalweg as tw

flow = tw.Flow("hanging")
stream = flow.source("numbers", tw.items(range(10)), fields={"n": int})
stream.map(lambda n: threading.Event().wait(), fields={"n": bool}, name="stuck").sink(
    "out", tw.stdout()
)
"""
SHORT = """
import thalweg as tw

def words(settings) -> tw.Flow:
    flow = tw.Flow("short")
    stream = flow.source("words", tw.items(settings["words"].split()), fields={"word": str})
    stream.sink("out", tw.stdout())
    return flow
"""


def test_a_topology_is_paused_goes_on_changes_degrees_and_is_killed(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        said = server.done("submit", str(server.program("shop", COUNTING)))
        assert "'shop' runs, process" in said
        assert server.done("status").startswith("listening on 127.0.0.1:")
        server.until("shop", tuples_in)
        assert "running" in server.done("list")

        assert "not asked" in server.done("deactivate", "shop")
        paused = server.client.view("shop")
        assert "inactive" in server.done("list")
        ticks = emitted(paused, "ticking")
        settled = server.until("shop", lambda view: emitted(view, "ticking") > ticks + 5)
        ticks = emitted(settled, "ticking")
        later = server.until("shop", lambda view: emitted(view, "ticking") > ticks + 5)
        assert tuples_in(later) == tuples_in(settled)

        server.done("activate", "shop")
        server.until("shop", lambda view: tuples_in(view) > tuples_in(settled))

        assert "'count' has 3 tasks in place of 2" in server.done("rebalance", "shop", "count=3")
        refused = server.say("rebalance", "shop", "nobody=3")
        assert refused.exit_code == 1
        assert "expected one of ['count', 'out', 'ticking', 'ticks']" in refused.output
        three = server.until("shop", lambda v: v.status.snapshot.component("count").degree == 3)
        assert "count" in server.done("show", "shop")
        server.until("shop", lambda view: tuples_in(view) > tuples_in(three))

        assert "is killed" in server.done("kill", "shop", "--wait", "0.5")
        assert "shop" not in server.done("list")
        assert "killed" in server.done("list", "--all")
        assert_exact(server.counts("shop"), at_least=1000)
        log = server.done("logs", "shop")
        lines = ["not asked", "asked again", "3 tasks in place", "not asked", "stopped"]
        positions = [log.find(line) for line in lines[:3]]
        assert -1 not in positions
        assert positions == sorted(positions)
        assert log.splitlines()[-1].endswith("stopped")


def test_what_was_killed_goes_on_with_its_state_unless_it_is_forgotten(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        program = str(server.program("shop", COUNTING))
        server.done("submit", program)
        server.until("shop", tuples_in)
        server.done("kill", "shop", "--wait", "0")
        first = sum(server.counts("shop").values())
        assert "goes on with the state it had" in server.done("submit", program)
        server.until("shop", tuples_in)
        server.done("kill", "shop", "--wait", "0")
        assert_exact(server.counts("shop"), at_least=first + 1)
        assert "is forgotten" in server.done("kill", "shop", "--forget")
        assert not (server.root / "topologies/shop").exists()
        assert "expected one of []" in server.say("show", "shop").output


def test_a_killed_server_finds_what_still_runs(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.done("submit", str(server.program("shop", COUNTING)))
        server.done("submit", str(server.program("shop", COUNTING)), "--name", "paused")
        server.done("deactivate", "paused")
        before = server.until("shop", tuples_in)
        server.kill()
        assert "thalweg server start" in server.say("list").output
        server.start()
        after = server.until("shop", lambda view: tuples_in(view) > tuples_in(before))
        assert after.pid == before.pid
        assert len(processes_of(server.root / "topologies/shop")) == 1
        assert not server.client.view("paused").status.active
        server.done("kill", "shop", "--wait", "0")
        assert_exact(server.counts("shop"), at_least=tuples_in(after))


def test_after_a_power_cut_everything_goes_on_where_it_was(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.done("submit", str(server.program("shop", COUNTING)))
        server.done("submit", str(server.program("shop", COUNTING)), "--name", "paused")
        server.done("deactivate", "paused")
        before = server.until("shop", lambda view: tuples_in(view) > 4000)
        until(lambda: server.committed("shop") >= 2000)  # in the background, and as fast as disks
        server.kill()
        for pid in processes_of(server.root / "topologies"):
            os.kill(pid, signal.SIGKILL)
        until(lambda: not processes_of(server.root / "topologies"))
        server.start()
        after = server.until("shop", lambda view: view.alive and tuples_in(view) > 0)
        assert after.pid != before.pid
        assert len(processes_of(server.root / "topologies/shop")) == 1
        paused = server.until("paused", lambda v: v.alive and v.status and v.status.since)
        server.until("paused", lambda view: emitted(view, "ticking") > 3)
        assert tuples_in(paused) == 0
        server.done("kill", "shop", "--wait", "0")
        assert_exact(server.counts("shop"), at_least=2000)


def test_one_that_is_killed_by_the_system_is_started_again(tmp_path: Path) -> None:
    with served(tmp_path, "--delay", "0.1") as server:
        server.done("submit", str(server.program("shop", COUNTING)))
        for _ in range(2):
            pid = server.until("shop", lambda view: view.alive and tuples_in(view) > 0).pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            server.until("shop", lambda v, old=pid: v.alive and v.pid != old and tuples_in(v) > 0)
        view = server.client.view("shop")
        assert view.record.failures == 2
        assert "without a word" in view.record.error
        server.done("kill", "shop", "--wait", "0")
        assert_exact(server.counts("shop"), at_least=1)


def test_one_that_dies_again_and_again_has_failed_and_others_go_on(tmp_path: Path) -> None:
    with served(tmp_path, "--delay", "0.05", "--restarts", "1") as server:
        server.done("submit", str(server.program("shop", COUNTING)))
        server.say("submit", str(server.program("crashing", CRASHING)))
        server.until("crashing", lambda view: view.record.phase == "failed")
        listed = server.done("list")
        assert "failed" in listed
        assert "ZeroDivisionError" in server.done("show", "crashing")
        assert server.done("logs", "crashing").count("crashing runs on local") == 2
        seen = tuples_in(server.client.view("shop"))
        server.until("shop", lambda view: tuples_in(view) > seen)


def test_one_that_exits_has_failed_whatever_its_status(tmp_path: Path) -> None:
    exiting = CRASHING.replace("1 // (n - 5)", "exit(0)")
    with served(tmp_path, "--restarts", "0") as server:
        server.say("submit", str(server.program("exiting", exiting)))
        server.until("exiting", lambda view: view.record.phase == "failed")
        assert "it called sys.exit(0)" in server.done("show", "exiting")


def test_one_that_cannot_begin_is_refused_with_its_error(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        result = server.say("submit", str(server.program("worse", "import nowhere_at_all")))
        assert result.exit_code == 1
        assert "No module named 'nowhere_at_all'" in result.output
        again = server.done("submit", str(server.program("worse", COUNTING)))
        assert "runs, process" in again


def test_one_that_hangs_is_ended_by_force_and_others_are_not(tmp_path: Path) -> None:
    with served(tmp_path, "--grace", "0.2") as server:
        server.done("submit", str(server.program("hanging", HANGING)))
        server.done("submit", str(server.program("shop", COUNTING)))
        assert "is killed" in server.done("kill", "hanging", "--wait", "0")
        server.until("shop", lambda view: view.alive and tuples_in(view) > 0)
        assert not processes_of(server.root / "topologies/hanging")


def test_one_that_comes_to_its_end_stays_there(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        target = f"{server.program('short', SHORT)}:words"
        server.done("submit", target, "--set", "words=to be or not")
        server.until("short-words", lambda view: view.record.phase == "ended")
        log = server.done("logs", "short-words", "--follow")
        assert "word=to" in log.replace(" ", "") or "to" in log.split()
        assert "its sources have ended" in log
        server.kill()
        server.start()
        assert server.client.view("short-words").record.phase == "ended"


def test_a_server_that_is_stopped_takes_its_topologies_along(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.done("submit", str(server.program("shop", COUNTING)))
        before = server.until("shop", tuples_in)
        assert "stopped" in server.done("stop")
        assert server.process is not None
        assert server.process.wait() == 0
        assert not processes_of(tmp_path)
        server.start()
        after = server.until("shop", lambda view: view.alive and tuples_in(view) > 0)
        assert after.pid != before.pid
        assert after.record.failures == 0
        assert "1 run on" in server.done("stop", "--leave")
        assert server.process.wait() == 0
        assert list(processes_of(tmp_path)) == [after.pid]
        server.start()
        assert server.client.view("shop").pid == after.pid


def test_a_second_server_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        words = ("start", "--foreground", "--allow", str(server.programs))
        refused = server.say(*words)
        assert refused.exit_code == 1
        assert f"got one with process {server.process.pid}" in refused.output
        assert server.done("status")


def test_a_program_that_has_become_a_link_to_elsewhere_is_not_started_again(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.py"
    elsewhere.write_text(COUNTING)
    with served(tmp_path, "--delay", "0", "--restarts", "1") as server:
        program = server.program("shop", COUNTING)
        server.done("submit", str(program))
        pid = server.until("shop", tuples_in).pid
        program.unlink()
        program.symlink_to(elsewhere)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        failed = server.until("shop", lambda view: view.record.phase == "failed")
        assert "--allow" in failed.record.error


def test_the_token_is_in_no_log_and_in_no_command_line(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.done("submit", str(server.program("shop", COUNTING)))
        server.until("shop", tuples_in)
        server.say("submit", "/etc/hostname")
        token = (server.root / "token").read_text()
        words = processes_of(tmp_path)
        assert len(words) == 2
        assert token not in str(words)
        logs = [server.root / "server.log", tmp_path / "said"]
        logs += (server.root / "topologies/shop").glob("log*")
        for log in logs:
            assert token not in log.read_text()
        for pid in words:
            assert token.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    assert sys.executable
