"""The page that is made of a recording."""

from __future__ import annotations

import base64
import hashlib
import re
import sqlite3
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recording.runs import HOSTILE, metrics, recorded, snapshot
from thalweg.errors import UsageError
from thalweg.events import (
    Activated,
    BatchDone,
    ChildSaid,
    Decided,
    KeyLink,
    KeyPair,
    Keys,
    Noticed,
    Progress,
    Reconfigured,
    RecordRefused,
    RunFinished,
    TupleRefused,
)
from thalweg.migration.report import Report, Score
from thalweg.recording import files, reading, report
from thalweg.recording.markup import STYLE
from thalweg.recording.reading import Recording
from thalweg.recording.records import snapshot_of
from thalweg.recording.report import report_page
from thalweg.recording.series import latencies


class Seen(HTMLParser):
    """Gathers the tags, attributes and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"] or ""

    def handle_data(self, data: str) -> None:
        self.text += data


def page(tmp_path: Path, events: list[tuple[float, Any]]) -> str:
    path = tmp_path / "run.sqlite"
    recorded(path, events)
    with Recording.open(path) as recording:
        return report_page(recording)


def seen(text: str) -> Seen:
    parser = Seen()
    parser.feed(text)
    parser.close()
    return parser


def grown(at: float) -> Progress:
    degree, busy = (1, 0.1 * at) if at < 3 else (4, 0.3 * at)
    counts = metrics("counts", degree=degree, busy=busy, shuffled=round(at), local=round(3 * at))
    words = metrics("words", blocked=0.5 * at)
    return Progress(snapshot(at, components=(words, counts), pending=round(5 * at)))


REPORT = Report(2, "locality", 10, 1000, 1, 0.5, Score(0.2, 1.0), Score(0.8, 1.1), None)
RUN: list[tuple[float, Any]] = [
    *((float(at), grown(float(at))) for at in range(1, 6)),
    (2.0, Decided("ds2: counts 1 -> 4 because it is slow", "ds2", 2.0, {"counts": (1, 4)})),
    (2.0, Decided("", "ds2", 2.0, {"counts": (1, 1)})),
    (2.5, Reconfigured(REPORT.text(), msgspec.to_builtins(REPORT))),
    (3.0, TupleRefused("counts", 1, "('a',)", "no number")),
    (3.0, RecordRefused("words", "{", "no JSON")),
    (3.5, Noticed("a host has joined")),
    (3.6, Activated(False)),
    (3.7, ChildSaid("counts", 0, 2, "hello from a child")),
    (6.0, RunFinished(snapshot(6.0), stopped=True)),
]


def test_it_says_what_happened(tmp_path: Path) -> None:
    made = page(tmp_path, RUN)
    text = seen(made).text
    for part in (
        "words",
        "on inline",
        "tuples in per second",
        "counts 1 -> 4 because it is slow",
        "locality before",
        "no number",
        "no JSON",
        "a host has joined",
        "sources are not asked for now",
        "counts, task 0: hello from a child",
        "fields(word)",
    ):
        assert part in text, part
    assert made.count("<bdi>ds2</bdi>") == 1  # a decision for no change is not shown


def test_a_reconfiguration_has_the_time_at_which_it_was_over(tmp_path: Path) -> None:
    report = msgspec.to_builtins(msgspec.structs.replace(REPORT, ago=4.2))
    text = seen(page(tmp_path, [(7.7, Reconfigured("", report))])).text
    assert "3.5" in text
    older = {name: value for name, value in report.items() if name != "ago"}
    (tmp_path / "run.sqlite").unlink()
    assert "7.7" in seen(page(tmp_path, [(7.7, Reconfigured("", older))])).text


def test_it_draws_what_changes(tmp_path: Path) -> None:
    made = page(tmp_path, RUN)
    titles = re.findall(r"<title>(.+?)</title>", made)
    for title in ("tuples per second", "latency of the last 15 s", "degree", "tuples that wait"):
        assert title in titles
    assert "tuples that stay at their place" in titles
    assert "back-pressured share of tasks" in titles
    assert "batches" not in titles  # there were none


def test_its_lines_of_latency_are_of_then_and_its_figures_of_the_whole_run(tmp_path: Path) -> None:
    text = seen(page(tmp_path, RUN)).text
    assert re.search(r"latency p99\s*3 ms", text), text[:2000]  # of the whole run
    looks = [msgspec.to_builtins({"at": 1.0, "snapshot": snapshot()})]
    assert latencies(looks)["p99"] == [(1.0, 700.0)]
    looks[0]["snapshot"]["recent"] = None  # nothing has come to its end
    assert latencies(looks)["p99"] == []


def test_older_recordings_have_lines_of_latency_since_the_start() -> None:
    looks = [msgspec.to_builtins({"at": 1.0, "snapshot": snapshot()})]
    del looks[0]["snapshot"]["recent"]
    assert latencies(looks)["p99"] == [(1.0, 3.0)]
    assert snapshot_of(looks[0]).recent is None


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (0.5, "99 tuples counted; these are too few to say how frequent keys are"),
        (0.101, "among all tuples a share may be up to 11 points higher or lower; of the tuples"),
        (0.0, "99 tuples counted; of the tuples counted, a count may be too low by 3."),
        (None, "99 tuples counted; of the tuples counted, a count may be too low by 3."),
    ],
)
def test_it_says_how_far_the_counts_of_keys_can_be_relied_on(
    tmp_path: Path, error: float | None, said: str
) -> None:
    pairs = (KeyPair("eu", "rock", 50.0, local=True),)
    link = KeyLink("by_region", "by_tag", 99.0, 3.0, 0.8, (), (), pairs, error)
    made = page(tmp_path, [(1.0, Keys((link,), 0.01, {}, {}))])
    assert said in seen(made).text


def test_batches_are_drawn(tmp_path: Path) -> None:
    batches = [
        (float(i), BatchDone(i, 1, 10, 0.5, 1, {"job": 0.4}, (0.1,), 5, 50, 5, 0, 0, 0, 9, 90))
        for i in (1, 2, 3)
    ]
    assert "batches" in re.findall(r"<title>(.+?)</title>", page(tmp_path, batches))


def test_of_many_batches_none_that_was_slow_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MOST_LOOKS", 20)
    batches = [
        (float(i), BatchDone(i, 1, 10, 60_000.0 if i == 77 else 1.0, 1, {}, (), *[0] * 8))
        for i in range(1, 400)
    ]
    assert "60,000" in seen(page(tmp_path, batches)).text


def test_nothing_in_it_runs_or_loads_anything(tmp_path: Path) -> None:
    found = seen(page(tmp_path, RUN))
    assert not {"script", "img", "link", "iframe", "object", "form"} & set(found.tags)
    names = {name for name, _ in found.attributes}
    assert not {name for name in names if name.startswith("on")} | {"src", "href", "style"} & names
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert found.policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    assert "unsafe" not in found.policy


def test_hostile_texts_are_text(tmp_path: Path) -> None:
    events = [
        (1.0, TupleRefused("counts", 0, HOSTILE, HOSTILE)),
        (1.0, Noticed(HOSTILE)),
        (1.0, Decided(HOSTILE, HOSTILE, 1.0, {})),
        (1.0, Reconfigured(HOSTILE, {"epoch": 1, "reason": HOSTILE})),
        (1.0, ChildSaid("counts", 0, 2, HOSTILE)),
    ]
    made = page(tmp_path, events)
    found = seen(made)
    assert "img" not in found.tags
    assert found.text.count("<img src=x onerror=alert(1)>") == 7
    assert "\u0000" not in made
    assert len(made) < 100_000  # the long ones were cut


def test_of_many_rows_the_last_are_shown(tmp_path: Path) -> None:
    many = [(1.0, TupleRefused("counts", 0, f"tuple {i}.", f"no {i}")) for i in range(300)]
    text = seen(page(tmp_path, many)).text
    assert f"The last {report.MOST_ROWS} of 300." in text
    assert "tuple 299." in text
    assert "tuple 99." not in text


def test_what_is_refused_for_one_reason_is_one_row_with_the_last_tuple(tmp_path: Path) -> None:
    refused = [(1.0 * n, TupleRefused("counts", n % 2, f"({n},)", "no number")) for n in range(9)]
    other = (3.5, TupleRefused("counts", 0, "('x',)", "too long"))
    made = page(tmp_path, sorted([*refused, other], key=lambda each: each[0]))
    cells = re.findall(r"<td.*?>(?:<bdi.*?>)?(.*?)(?:</bdi>)?</td>", made.partition("Errors")[2])
    assert cells[:12] == [
        *("3.5", "counts", "0", "1", "too long", "(&#x27;x&#x27;,)"),
        *("8", "counts", "0", "9", "no number", "(8,)"),
    ]


def wish(at: float, policy: str, after: int, text: str | None = None) -> tuple[float, Decided]:
    text = f"{policy}: counts 2 -> {after} because of {at}" if text is None else text
    return at, Decided(text, policy, at, {"counts": (2, after)}, carried_out=False)


def test_no_number_of_wishes_hides_what_was_carried_out(tmp_path: Path) -> None:
    done = Decided("ds2: counts 1 -> 2 because it is slow", "ds2", 1.0, {"counts": (1, 2)})
    wishes = [wish(at, "static", 3 + round(at) % 2) for at in map(float, range(2, 1000))]
    text = seen(page(tmp_path, [(1.0, done), *wishes])).text
    assert "counts 1 -> 2 because it is slow" in text
    assert "because of 999.0" in text
    assert "because of 99.0" not in text
    assert f"The last {report.MOST_ROWS} of 998." in text


def test_everything_that_was_carried_out_is_shown(tmp_path: Path) -> None:
    done = [(1.0, Decided(f"ds2: number {i}.", "ds2", 1.0, {})) for i in range(300)]
    text = seen(page(tmp_path, done)).text
    assert "number 0." in text
    assert "The last" not in text


def test_a_wish_that_stays_the_same_is_one_row_with_a_count(tmp_path: Path) -> None:
    told = [wish(1.0, "ds2", 3), wish(1.0, "thalweg", 4), wish(2.0, "ds2", 3), wish(3.0, "ds2", 4)]
    told += [wish(4.0, "ds2", 2, ""), wish(5.0, "ds2", 4), wish(6.0, "ds2", 2, "ds2: no room")]
    told += [wish(7.0, "ds2", 2, "ds2: no room")]
    made = page(tmp_path, told).partition("What policies would have done")[2]
    cells = re.findall(r"<td.*?>(?:<bdi.*?>)?(.*?)(?:</bdi>)?</td>", made)
    assert [cells[at : at + 4] for at in range(0, 25, 5)] == [
        ["1", "2", "ds2", "2"],
        ["1", "1", "thalweg", "1"],
        ["3", "3", "ds2", "1"],
        ["5", "5", "ds2", "1"],
        ["6", "7", "ds2", "2"],
    ]
    assert cells[4].endswith("because of 2.0")


LACKING = [{}, {"snapshot": {"elapsed": 2.0}}, {"snapshot": None}]


@pytest.mark.parametrize("fields", LACKING, ids=["no look", "half a look", "nothing"])
def test_a_look_that_lacks_metrics_is_named_with_what_to_do(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    path = tmp_path / "run.sqlite"
    recorded(path, [(1.0, grown(1.0))])
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        files.add(file, [{"n": 9, "at": 2.0, "wall": 2.0, "kind": "progress"} | fields])
    expected = r"run\.sqlite': expected whole records, got record 9: .*record another run"
    with Recording.open(path) as recording, pytest.raises(UsageError, match=expected):
        report_page(recording)


def test_of_a_long_run_as_many_looks_are_read_as_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, read = tmp_path / "run.sqlite", list[Any]()
    recorded(path, [(2.0 * n, grown(2.0 * n)) for n in range(300)], room=1_000)
    monkeypatch.setattr(report, "MOST_LOOKS", 20)
    made = reading.snapshot_of
    monkeypatch.setattr(reading, "snapshot_of", lambda each: read.append(each) or made(each))
    with Recording.open(path) as recording:
        text = seen(report_page(recording)).text
    assert 10 < len(read) <= 20
    assert "59,800" in text  # tuples in, by the last look


@pytest.mark.parametrize("events", [[], [(1.0, grown(1.0))]])
def test_a_run_that_has_hardly_begun_has_a_page(tmp_path: Path, events: Any) -> None:
    text = seen(page(tmp_path, events)).text
    assert "The recording ends before the run did." in text
    assert "The run was too short to draw." in text
