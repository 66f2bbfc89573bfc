"""What the page makes of records, by its own script in Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from thalweg.dashboard.assets import FOLDER

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="no Node.js: scripts/setup installs it")

BEGIN = """
import {
  Store, bridged, busyShare, gathered, growth, leftOut, overSince, perSecond, series, shares,
  sharesOver, tasksReceived, wishes,
} from "./store.mjs";
const store = new Store();
// As the hub names them.
const shelf = ({ kind, replaces, carried_out, text }) => {
  if (kind === "topology" || kind.startsWith("run_")) return "lasting";
  if (kind === "decided" && replaces != null) return "leading";
  if (kind === "decided") return carried_out && text ? "done" : "looked";
  return { tuple_refused: "refused", noticed: "others" }[kind] ?? kind;
};
const keep = store.add.bind(store);
store.add = (record) => keep({ ...record, shelf: shelf(record) });
const one = (busy, received) => ({ component: "count", degree: 2, busy, received, task_stats: [] });
const look = (n, elapsed, kind = "progress") => store.add({
  n, at: elapsed, kind,
  snapshot: { elapsed, tuples_in: 100 * elapsed, components: [one(elapsed, 100 * elapsed)] },
});
"""


def said(folder: Path, script: str) -> Any:
    """Run a script beside that of the page; gives what it prints as JSON."""
    shutil.copy(FOLDER / "store.js", folder / "store.mjs")
    (folder / "main.mjs").write_text(BEGIN + script)
    ended = subprocess.run(  # noqa: S603 (our own script)
        [str(NODE), "main.mjs"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_a_long_run_stays_visible_as_a_whole(tmp_path: Path) -> None:
    found = said(
        tmp_path,
        "for (let n = 1; n <= 20000; n += 1) look(n, n / 5);\n"
        "console.log(JSON.stringify(store.looks.list.map((each) => each.n)));",
    )
    assert found[0] == 1
    assert found[-1] == 20_000
    assert 700 <= len(found) <= 1500
    gaps = {after - before for before, after in pairwise(found[:-1])}
    assert len(gaps) == 1  # evenly spread


def test_rates_are_over_the_last_seconds_and_over_all_when_a_run_has_ended(tmp_path: Path) -> None:
    found = said(
        tmp_path,
        "store.add({n: 1, at: 0, kind: 'topology', name: 'words'});\n"
        "for (let n = 2; n <= 21; n += 1) look(n, (n - 1) / 2);\n"
        "const running = store.at(store.end);\n"
        "look(22, 20, 'run_finished');\n"
        "const ended = store.at(store.end), then = store.at(5.2);\n"
        "console.log(JSON.stringify([running, ended, then].map((model) => ["
        "  model.before && model.before.elapsed, growth(model, (s) => s.tuples_in),"
        "  busyShare(model, 'count'), model.finished !== null, model.now.elapsed])));",
    )
    running, ended, then = found
    assert running == [8, 100, 0.5, False, 10]
    assert ended == [None, 100, 0.5, True, 20]
    assert then == [3, 100, 0.5, False, 5]


def test_lines_begin_with_a_gap_and_do_not_jump(tmp_path: Path) -> None:
    found = said(
        tmp_path,
        "for (let n = 1; n <= 6; n += 1) look(n, n / 4);\n"
        "console.log(JSON.stringify(series(store.looks.list, (now, before) =>"
        "  [now.elapsed, before && before.elapsed])));",
    )
    assert found == [[0.25, None], [0.5, 0.25], [0.75, 0.25], [1, 0.25], [1.25, 0.25], [1.5, 0.5]]


def test_a_line_has_a_gap_where_nothing_was_measured_for_more_than_a_few_looks(
    tmp_path: Path,
) -> None:
    found = said(
        tmp_path,
        "const some = [null, 1, null, null, null, 2, null, null, null, null, 3, null];\n"
        "const kinds = bridged(some).map((each) => (each === undefined ? 'missed' : each));\n"
        "console.log(JSON.stringify(kinds));",
    )
    missed = ["missed"]
    assert found == [*missed, 1, *missed * 3, 2, None, None, None, None, 3, *missed]


def test_another_topology_begins_anew(tmp_path: Path) -> None:
    found = said(
        tmp_path,
        "store.add({n: 1, at: 0, kind: 'topology', name: 'first'});\n"
        "look(2, 9); store.add({n: 3, at: 9, kind: 'noticed', text: 'over'});\n"
        "look(4, 9, 'run_finished');\n"
        "store.add({n: 5, at: 0, kind: 'topology', name: 'second'}); look(6, 1);\n"
        "const now = store.at(store.end);\n"
        "console.log(JSON.stringify([now.topology.name, now.moment, now.looks.length,"
        "  now.others.length, now.finished]));",
    )
    assert found == ["second", 1, 1, 0, None]


def test_the_time_of_tasks_is_at_work_held_up_or_waiting(tmp_path: Path) -> None:
    found = said(
        tmp_path,
        "const add = (n, elapsed, blocked) => {\n"
        "  const counts = { ...one(0.5 * elapsed, 0), blocked };\n"
        "  const snapshot = { elapsed, components: [counts] };\n"
        "  store.add({ n, at: elapsed, kind: 'progress', snapshot });\n"
        "};\n"
        "const last = () => shares(store.at(store.end), 'count');\n"
        "add(1, 4, 4); const some = last();\n"
        "add(2, 8, 99); const most = last();\n"  # what is at work is not held up
        "add(3, 12, null); const none = last();\n"
        "const over = series(store.looks.list, sharesOver('count'));\n"
        "console.log(JSON.stringify([some, most, none, over]));",
    )
    some, most, none, over = found
    assert some == {"busy": 0.25, "pressed": 0.5, "waiting": 0.25}
    assert most == {"busy": 0.25, "pressed": 0.75, "waiting": 0}
    assert none == {"busy": 0.25, "pressed": None, "waiting": None}
    assert over == [{"busy": None, "pressed": None, "waiting": None}, most, none]


def test_what_was_told_twice_counts_once(tmp_path: Path) -> None:
    found = said(
        tmp_path,
        "const told = {n: 1, at: 0, kind: 'noticed', text: 'once'};\n"
        "store.add(told); store.add(told);\n"
        "console.log(JSON.stringify([store.others.length, store.last]));",
    )
    assert found == [1, 1]


def test_of_many_reconfigurations_only_the_last_have_their_keys(tmp_path: Path) -> None:
    found = said(
        tmp_path,
        "for (let n = 1; n <= 70; n += 1) {\n"
        "  store.add({n, at: n, kind: 'reconfigured', report: {}, difference: {moves: []}});\n"
        "}\n"
        "console.log(JSON.stringify(store.others.map((each) => [each.n, 'difference' in each])));",
    )
    assert found == [[n, n > 20] for n in range(1, 71)]


def test_a_reconfiguration_has_the_time_at_which_it_was_over(tmp_path: Path) -> None:
    found = said(
        tmp_path,
        "const told = (report) => overSince({n: 1, at: 7.5, kind: 'reconfigured', report});\n"
        "console.log(JSON.stringify([told({ago: 4.25}), told({})]));",
    )
    assert found == [3.25, 7.5]


def test_who_decides_is_the_policy_that_took_over_last_until_that_moment(tmp_path: Path) -> None:
    script = """
    store.add({ n: 1, at: 0, kind: "topology", name: "words", policy: "static" });
    const decided = (n, policy, more) => store.add({ n, at: n, kind: "decided", policy, ...more });
    decided(2, "static", { carried_out: true, replaces: null });
    decided(3, "thalweg:economy", { carried_out: true, replaces: "static" });
    decided(4, "thalweg", { carried_out: true, replaces: null });
    decided(5, "static", { carried_out: false, replaces: null });
    console.log(JSON.stringify([1, 2, 3, 5].map((at) => store.at(at).policy)));
    """
    assert said(tmp_path, script) == ["static", "static", "thalweg:economy", "thalweg:economy"]


FLOODED = """
const told = [
  { at: 0, kind: "topology", name: "words", policy: "static" },
  { at: 1, kind: "activated", active: false }, { at: 2, kind: "activated", active: true },
  { at: 3, kind: "decided", policy: "ds2", carried_out: true, replaces: "static" },
  { at: 4, kind: "activated", active: false },
];
told.forEach((each, at) => store.add({ n: at + 1, ...each }));
const refused = (n) => store.add({ n, at: n, kind: "tuple_refused" });
const decided = { kind: "decided", policy: "x", carried_out: true, replaces: null };
for (let n = 6; n <= 6005; n += 1) refused(n);
for (let n = 6006; n <= 12005; n += 1) store.add({ n, at: n, ...decided });
"""


def test_whether_sources_pause_and_who_decides_is_known_whatever_else_was_told(
    tmp_path: Path,
) -> None:
    script = """
    const seen = [0.5, 1.5, 2.5, 3.5, store.end].map((at) => store.at(at));
    console.log(JSON.stringify(seen.map((model) => [model.paused, model.policy])));
    """
    assert said(tmp_path, FLOODED + script) == [
        [False, "static"],
        [True, "static"],
        [False, "static"],
        [False, "ds2"],
        [True, "ds2"],
    ]


def test_what_was_told_is_kept_within_bounds_and_in_order(tmp_path: Path) -> None:
    script = "console.log(JSON.stringify(store.others.map((each) => [each.n, each.kind])));"
    found = said(tmp_path, FLOODED + script)
    numbers = [n for n, _ in found]
    assert numbers == sorted(numbers)
    assert numbers[:4] == [2, 3, 4, 5]
    for kind, last in (("tuple_refused", 6005), ("decided", 12_005)):
        kept = [n for n, each in found[4:] if each == kind]
        assert 4500 <= len(kept) <= 5000
        assert kept == list(range(last + 1 - len(kept), last + 1))


def test_what_was_said_is_not_driven_out_by_what_was_refused(tmp_path: Path) -> None:
    script = """
    store.add({ n: 1, at: 0, kind: "noticed", text: "a host has joined" });
    for (let n = 2; n <= 5002; n += 1) store.add({ n, at: n, kind: "tuple_refused" });
    console.log(JSON.stringify(store.others.slice(0, 2).map((each) => each.n)));
    """
    assert said(tmp_path, script) == [1, 502]


def test_refusals_for_one_reason_are_one_line_with_the_last_tuple(tmp_path: Path) -> None:
    script = """
    const refused = (n, component, reason, more) => (
      { n, kind: "tuple_refused", component, reason, tuple_text: `(${n})`, ...more });
    const told = [
      refused(1, "count", "no number"), refused(2, "count", "no number"),
      refused(3, "out", "no number"),
      { n: 4, kind: "noticed", text: "more" }, { n: 5, kind: "noticed", text: "more" },
      refused(6, "count", "no number", { left_out: 700 }), refused(7, "count", "too long"),
    ];
    const lines = gathered(told).map(([each, times]) => [each.n, times]);
    const last = { n: 8, kind: "lost", progress: 3, others: 900 };
    console.log(JSON.stringify([lines, leftOut([]), leftOut(told), leftOut([...told, last])]));
    """
    lines, none, some, all_ = said(tmp_path, script)
    assert sorted(lines) == [[3, 1], [4, 1], [5, 1], [6, 3], [7, 1]]
    assert (none, some, all_) == (0, 700, 900)


def test_what_was_carried_out_is_not_driven_out_by_wishes_and_looks(tmp_path: Path) -> None:
    script = """
    const decided = (n, text, carried_out) => store.add({
      n, at: n, kind: "decided", policy: "ds2", text, carried_out, replaces: null, degrees: {},
    });
    decided(1, "count 1 -> 2", true);
    for (let n = 2; n <= 8000; n += 2) {
      decided(n, "count 2 -> 3", false);
      decided(n + 1, "", true);
    }
    console.log(JSON.stringify([store.others[0].n, store.others.length]));
    """
    first, many = said(tmp_path, script)
    assert first == 1
    assert 4500 < many <= 5001


def test_a_wish_that_stays_the_same_is_one_with_a_count(tmp_path: Path) -> None:
    script = """
    const told = [];
    const wish = (at, policy, after, text = `because of ${at}`, carried_out = false) => told.push(
      { kind: "decided", at, policy, text, carried_out, degrees: { count: [2, after] } });
    wish(1, "ds2", 3); wish(1, "thalweg", 4); wish(2, "ds2", 3); wish(2, "static", 9, "done", true);
    wish(3, "ds2", 4); wish(4, "ds2", 2, ""); wish(5, "ds2", 4);
    wish(6, "ds2", 2, "no room"); wish(7, "ds2", 2, "no room");
    console.log(JSON.stringify(wishes(told).map((each) => (
      [each.at, each.until, each.policy, each.times, each.text]))));
    """
    assert said(tmp_path, script) == [
        [1, 2, "ds2", 2, "because of 2"],
        [1, 1, "thalweg", 1, "because of 1"],
        [3, 3, "ds2", 1, "because of 3"],
        [5, 5, "ds2", 1, "because of 5"],
        [6, 7, "ds2", 2, "no room"],
    ]


RESCALED = """
const tasks = (n, elapsed, degree, busy, per_task, kind = "progress") => {
  const counts = { ...one(busy, 0), degree, blocked: 0, per_task };
  store.add({ n, at: elapsed, kind, snapshot: { elapsed, tuples_in: 0, components: [counts] } });
};
const of = () => tasksReceived(store.at(store.end), "count");
"""


def test_what_tasks_received_is_of_the_time_with_their_degree(tmp_path: Path) -> None:
    script = """
    const seen = [];
    tasks(1, 0, 1, 0, [0]); tasks(2, 10, 1, 10, [1000]); seen.push(of());
    tasks(3, 11, 2, 11, [1000, 0]); seen.push(of());
    tasks(4, 12, 2, 12, [1100, 100]); seen.push(of());
    tasks(5, 20, 2, 20, [1400, 400]); seen.push(of());
    tasks(6, 23, 2, 20, [1400, 400]); seen.push(of());
    tasks(7, 24, 2, 20, [1400, 400], "run_finished"); seen.push(of());
    tasks(8, 25, 1, 20, [1450, 400]); seen.push(of());
    console.log(JSON.stringify(seen));
    """
    # All along; nothing yet; since the change; in the last seconds; as nothing came, since the
    # change; and so where the run has ended; those of a task that is gone are not told.
    since = [400, 400]
    assert said(tmp_path, RESCALED + script) == [
        [1000],
        [0, 0],
        [100, 100],
        [300, 300],
        since,
        since,
        [50],
    ]


def test_busy_of_a_run_that_has_ended_is_of_the_tasks_that_there_were(tmp_path: Path) -> None:
    script = """
    tasks(1, 0, 1, 0, [0]); tasks(2, 10, 1, 5, [0]);
    tasks(3, 10.001, 4, 5, [0]); tasks(4, 20, 4, 25, [0], "run_finished");
    console.log(JSON.stringify(busyShare(store.at(store.end), "count")));
    """
    # 25 of 10 + 40 seconds of tasks.
    assert said(tmp_path, RESCALED + script) == pytest.approx(0.5, rel=0.01)


def test_figures_of_many_tasks_are_kept_of_the_newest_look_and_that_is_known(
    tmp_path: Path,
) -> None:
    script = """
    const many = (n) => {
      const counts = { component: "count", degree: 65, busy: 0, task_stats: Array(65).fill({}) };
      store.add({ n, at: n, kind: "progress", snapshot: { elapsed: n, components: [counts] } });
    };
    many(1); many(2);
    console.log(JSON.stringify([1, 2].map((at) => {
      const { now } = store.at(at);
      return [now.slim ?? false, now.components[0].task_stats.length];
    })));
    """
    assert said(tmp_path, script) == [[True, 0], [False, 65]]


def test_a_failure_is_the_last_thing_that_was_told(tmp_path: Path) -> None:
    script = """
    store.add({ n: 1, at: 0, kind: "noticed", text: "begun" });
    store.add({ n: 2, at: 1, kind: "run_failed", text: "no number", component: "count" });
    const [then, now] = [0.5, 1].map((at) => store.at(at));
    console.log(JSON.stringify([then, now].map((model) => [model.failure, model.told.length])));
    """
    then, now = said(tmp_path, script)
    assert then == [None, 1]
    assert now[0]["text"] == "no number"
    assert now[1] == 2
