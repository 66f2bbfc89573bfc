"""The topologies of the Storm-MC document do what it says, with tuples and with blocks."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

import thalweg as tw
from thalweg.testing import PAUSE, run_inline
from thalweg.workloads.stormmc.mail import at_home, hide, mail, topic
from thalweg.workloads.stormmc.mails import CHUNK, HIDDEN, Mail, mails, read_mails, write_mails
from thalweg.workloads.stormmc.sorting import rolling_sort, rolling_sort_blocks
from thalweg.workloads.stormmc.turns import turns
from thalweg.workloads.stormmc.vocabulary import sentences, words
from thalweg.workloads.stormmc.words import SENTENCES, wordcount, wordcount_blocks


@for_all(count=st.integers(0, 50), degree=st.integers(1, 12))
def test_each_number_is_one_tasks_turn(count: int, degree: int) -> None:
    taken = [number for task in range(degree) for number in turns(task, degree, count)]
    assert sorted(taken) == list(range(count))
    endless = list(islice(turns(0, degree, None), 5))
    assert endless == [0, degree, 2 * degree, 3 * degree, 4 * degree]


def test_words_are_all_different() -> None:
    assert len(set(words(20_000))) == 20_000


def test_sentences_are_the_same_every_time_and_nine_words_long_in_the_mean() -> None:
    made = sentences(2000)
    assert made == sentences(2000)
    assert made != sentences(2000, seed=2)
    lengths = [len(line.split()) for line in made]
    assert (min(lengths), max(lengths)) == (5, 13)
    assert sum(lengths) / len(lengths) == pytest.approx(9, rel=0.05)


@pytest.mark.parametrize("degree", [1, 3])
def test_plain_bolts_count_every_word(degree: int) -> None:
    expected = Counter(word for line in sentences(SENTENCES)[:700] for word in line.split())
    counted = run_inline(wordcount(degree, count=700)).outputs["count"]
    last = {t.word: max(u.count for u in counted if u.word == t.word) for t in counted[:20]}
    assert last == {word: expected[word] for word in last}
    assert Counter(t.word for t in counted) == expected


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("on", ["inline", "local"])
def test_blocks_are_counted_like_tuples(degree: int, on: str) -> None:
    # Twice all of them: the same whichever task begins where.
    expected = Counter(word for line in sentences(SENTENCES) for word in line.split() * 2)
    result = wordcount_blocks(degree, count=2 * SENTENCES).run(on=on)
    if degree == 1:
        assert result.table("count") == expected
    assert result.metrics.component("split").received == 2 * SENTENCES


@for_all(count=st.integers(0, 3 * CHUNK + 1), degree=st.integers(1, 5))
def test_tasks_share_the_mails_of_a_file(
    count: int, degree: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("mails") / "mails"
    small = (Mail(number, "", [], "", "") for number in range(count))
    write_mails(path, small)
    read = [data for task in range(degree) for data in read_mails(path, task, degree)]
    assert sorted(msgspec.msgpack.decode(data)["id"] for data in read) == list(range(count))


def test_mails_are_the_same_every_time() -> None:
    made = list(mails(50))
    assert made == list(mails(50))
    assert made != list(mails(50, seed=2))
    assert any(name in mail.body for mail in made for name in HIDDEN)
    assert {at_home(mail.sender) for mail in made} == {True, False}


def kept(given: list[Mail]) -> list[Mail]:
    return [mail for mail in given if all(map(at_home, (mail.sender, *mail.recipients)))]


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize("on", ["inline", "local"])
def test_mails_within_the_company_are_measured(degree: int, on: str, tmp_path: Path) -> None:
    made = list(mails(600))
    write_mails(tmp_path / "mails", iter(made))
    metrics = mail(tmp_path / "mails", degree).run(on=on).metrics
    assert metrics.component("deserialise").received == 600
    assert metrics.component("metrics").received == len(kept(made)) > 0
    assert metrics.component("global").received == degree


def test_a_topic_is_in_the_subject_and_names_are_hidden(tmp_path: Path) -> None:
    builder = mail(tmp_path / "none")
    modify = next(component for component in builder if component.name == "modify").body
    flow = tw.Flow("modify")
    fields = {"sender": str, "recipients": list[str], "subject": str, "body": str}
    source = flow.source("mails", tw.items([]), fields=fields)
    source.through("modify", modify)
    text = f"tea {HIDDEN[1]} and tea"
    [found] = run_inline(flow, {"mails": [("a", ["b"], "news", text)]}).outputs["modify"]
    assert found.subject == "tea: news"
    assert found.body == "tea Person 2 and tea"


def test_a_text_without_words_has_no_topic() -> None:
    assert topic("") == topic(" \n ") == ""
    assert hide("nobody") == "nobody"


def test_every_four_seconds_the_mails_per_second_of_all_tasks_are_added_up(
    tmp_path: Path,
) -> None:
    inside = [msgspec.msgpack.encode(each) for each in kept(list(mails(100)))]
    given = [*inside[:20], PAUSE("5 s"), *inside[20:25], PAUSE("3.5 s")]
    outcome = run_inline(mail(tmp_path / "none", degree=2), {"mails": given})
    told = outcome.outputs["global"]
    # Ticks after 4 and 8 seconds, and the end; both tasks tell, one after the other.
    assert len(told) == 6
    assert (told[1].mails, told[1].per_second) == (20, pytest.approx(20 / 5, rel=0.3))
    assert told[-1].mails == 25


def test_the_latest_hundred_messages_are_sorted_when_a_tick_comes() -> None:
    items = [f"{n * 7919 % 1000:03}" for n in range(250)]
    outcome = run_inline(rolling_sort(), {"messages": [*items, PAUSE("11 s"), *items[:3]]})
    ticked, ended = (t.messages for t in outcome.outputs["sort"])
    assert ticked == sorted(items[150:])
    assert ended == sorted([*items[153:], *items[:3]])


@for_all(numbers=st.lists(st.integers(0, 999), max_size=250), rows=st.integers(1, 300))
def test_blocks_are_sorted_like_tuples(numbers: list[int], rows: int) -> None:
    items = {"messages": [f"{n:03}" for n in numbers]}
    found = [
        run_inline(topology, items, runtime=tw.Inline(block_rows=rows)).outputs["sort"][-1].messages
        for topology in (rolling_sort(), rolling_sort_blocks())
    ]
    assert found[0] == found[1] == [f"{n:03}" for n in sorted(numbers[-100:])]


@pytest.mark.parametrize("make", [rolling_sort, rolling_sort_blocks])
@pytest.mark.parametrize("degree", [1, 3])
def test_there_are_as_many_messages_as_asked_for(make: object, degree: int) -> None:
    topology = make(degree, count=1000)  # type: ignore[operator]  # one of the two functions
    assert topology.run().metrics.component("sort").received == 1000
