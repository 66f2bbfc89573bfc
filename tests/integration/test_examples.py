"""Every example runs, describes itself, and prints what it should."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from sparksession import spark_session
from thalweg import Spark
from thalweg.cli.loading import load
from thalweg.testing import ManualClock
from thalweg.topology import Topology
from thalweg.workloads.calls import CallSettings, phone_calls
from thalweg.workloads.cities import kilometres
from thalweg.workloads.posts import PostSettings, posts
from thalweg.workloads.stormmc.mail import at_home, hide, topic
from thalweg.workloads.stormmc.mails import mails
from thalweg.workloads.visits import VisitSettings, visits

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).with_name("thalweg")
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


def run(*arguments: str | Path) -> str:
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_describes_itself(name: str) -> None:
    assert run(COMMAND, "describe", f"examples/{name}.py").startswith(f"{name} · ")


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_is_a_program_too(name: str) -> None:
    by_python = run(sys.executable, f"examples/{name}.py")
    by_command = run(COMMAND, "run", "--quiet", f"examples/{name}.py")
    assert in_the_end(by_python) == in_the_end(by_command)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Topology]:
    """Give a function that loads an example, and leaves nothing behind of it."""
    # Before modules are copied: pickle looks for functions in the copy.
    importlib.import_module("thalweg.runtimes.spark.running")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    return lambda name: load(str(ROOT / "examples" / f"{name}.py"), {})


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_prints_the_same_on_local(
    name: str, capsys: pytest.CaptureFixture[str], loaded: Callable[[str], Topology]
) -> None:
    topology = loaded(name)
    topology.run(on="inline")
    inline = capsys.readouterr().out
    topology.run(on="local")
    assert in_the_end(capsys.readouterr().out) == in_the_end(inline)


@pytest.mark.spark
@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_prints_the_same_on_spark(
    name: str, capsys: pytest.CaptureFixture[str], loaded: Callable[[str], Topology]
) -> None:
    topology = loaded(name)
    topology.run(on="inline")
    inline = capsys.readouterr().out
    # By a manual clock no tick is due, each of which would be a batch.
    topology.run(on=Spark(spark_session(), places=3, clock=ManualClock()))
    assert in_the_end(capsys.readouterr().out) == in_the_end(inline)


def in_the_end(text: str) -> list[str]:
    """Leave out what examples print now and then: how often depends on the time."""
    return [line for line in text.splitlines() if not line.startswith("leading ")]


def test_wordcount_counts() -> None:
    lines = run(COMMAND, "run", "examples/wordcount.py", "--set", "repeat=7").splitlines()
    assert lines[0] == "50 different words, 616 in all"
    assert lines[1].split()[:3] == ["1", "to", "91"]
    assert len(lines) == 11


def test_trending_ranks_what_was_posted() -> None:
    count = 40_000
    output = run(COMMAND, "run", "examples/trending.py", "--set", f"posts={count}")
    source = posts(PostSettings(posts=count))
    rows = [row for number in range(3) for row in source.chunk(number).to_pylist()]
    tags = Counter(row["hashtag"] for row in rows).most_common(10)
    assert re.findall(r"^ +\d+  (#\w+) +([\d,]+)", output, re.M) == shown(tags)
    regions = Counter(row["region"] for row in rows).most_common()
    assert re.findall(r"^  ([A-Z]\w+) +([\d,]+)", output, re.M) == shown(regions)


def shown(counts: list[tuple[str, int]]) -> list[tuple[str, str]]:
    return [(name, f"{count:,}") for name, count in counts]


def test_sessions_take_in_every_click() -> None:
    few = run(COMMAND, "run", "examples/sessions.py", "--set", "clicks=1", "--set", "users=1")
    assert few.startswith("1 sessions of 1 users, 1.0 pages each")
    # With an endless gap, all clicks of a user are one session.
    settings = ("--set", "clicks=500", "--set", "users=5", "--set", "gap=1e9")
    assert run(COMMAND, "run", "examples/sessions.py", *settings).startswith(
        "5 sessions of 5 users, 100.0 pages each"
    )


def test_sessions_do_not_depend_on_the_order_of_clicks() -> None:
    few = ("run", "examples/sessions.py", "--set", "clicks=3000", "--set", "gap=600")
    late = run(COMMAND, *few, "--set", "late=900")
    assert late == run(COMMAND, *few, "--set", "late=0")
    # The same with plain loops over all clicks.
    by_user: dict[str, list[tuple[Any, str]]] = defaultdict(list)
    for user, page, at in visits(VisitSettings(clicks=3000)):
        by_user[user].append((at, page))
    cut: list[list[str]] = []
    for clicks in by_user.values():
        before = None
        for at, page in sorted(clicks):
            if before is None or at - before > timedelta(seconds=600):
                cut.append([])
            cut[-1].append(page)
            before = at
    baskets = [pages for pages in cut if "basket" in pages]
    left = sum("checkout" not in pages for pages in baskets)
    assert late.startswith(f"{len(cut):,} sessions of {len(by_user)} users")
    told = dict(re.findall(r"^  (with a basket|left behind) +([\d,]+)", late, re.M))
    assert told == {"with a basket": f"{len(baskets):,}", "left behind": f"{left:,}"}


def test_fraud_finds_the_numbers_that_were_in_two_places() -> None:
    given = CallSettings(calls=40_000, phones=2000, copied=0.05)
    settings = ("calls=40_000", "phones=2000", "copied=0.05", "area=03", "limit=900")
    chosen = [word for setting in settings for word in ("--set", setting)]
    output = run(COMMAND, "run", "examples/fraud.py", *chosen)
    cases, hours = too_fast(given, "03", 900)
    assert len(cases) > 3
    worst = sorted(cases.items(), key=lambda pair: (-pair[1], pair[0]))[:10]
    assert re.findall(r"^  (03-\d+) +([\d,]+)", output, re.M) == shown(worst)
    by_day = Counter(hour.date() for hour in hours.elements())
    told = re.findall(r"^  (\w{3} \d\d \w{3})  .* (\d+) cases$", output, re.M)
    assert told == [(f"{day:%a %d %b}", str(count)) for day, count in sorted(by_day.items())]


def too_fast(
    settings: CallSettings, area: str, limit: float
) -> tuple[Counter[str], Counter[datetime]]:
    """Go through all calls of an area, one by one; count cases by number and by hour."""
    source, last = phone_calls(settings), dict[str, tuple[datetime, str]]()
    cases: Counter[str] = Counter()
    hours: Counter[datetime] = Counter()
    rows = [row for number in range(4) for row in source.chunk(number).to_pylist()]
    assert len(rows) == settings.calls
    for row, role in product(rows, ("caller", "callee")):
        phone, at, city = row[role], row["at"], row[f"{role}_city"]
        if not phone.startswith(area):
            continue
        if phone in last:
            before, origin = last[phone]
            hours_since = max((at - before).total_seconds(), 1) / 3600
            if kilometres(origin, city) / hours_since > limit:
                cases[phone] += 1
                hours[at.replace(minute=0, second=0, microsecond=0)] += 1
        last[phone] = at, city
    return cases, hours


def test_the_mail_example_reports_mails_within_the_company() -> None:
    output = run(COMMAND, "run", "examples/mail.py", "--set", "mails=300")
    inside = [mail for mail in mails(300) if all(map(at_home, (mail.sender, *mail.recipients)))]
    senders = len({mail.sender for mail in inside})
    assert f"{len(inside)} mails of {senders} senders within the company" in output
    topics = Counter(topic(hide(mail.body)) for mail in inside).most_common()
    found = re.findall(r"^  ([a-z]+) +([\d,]+)", output, re.M)
    assert found == shown(sorted(topics, key=lambda pair: (-pair[1], pair[0]))[:8])


def test_the_rolling_sort_example_sorts_the_latest_hundred() -> None:
    output = run(COMMAND, "run", "examples/rollingsort.py", "--set", "messages=1234")
    assert output.startswith("100 messages, from ")
    assert sum(int(count) for count in re.findall(r"^  \d +(\d+)", output, re.M)) == 100


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_prints_in_ascii_where_nothing_else_is_known(name: str) -> None:
    done = subprocess.run(  # noqa: S603 (our own examples)
        [sys.executable, f"examples/{name}.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"##" in done.stdout
    assert b"\\u" not in done.stdout
