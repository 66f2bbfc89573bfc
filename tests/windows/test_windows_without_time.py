"""Windows of sources that tell no time: they wait for the end of the stream, and that is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from sparksession import spark_session
from thalweg.events import Noticed

FIELDS = {"at": int, "user": str}
UNTOLD = "no source tells 'w' the time, so windows are told at its end only; say time= there"


class Endless(tw.BlockSpout):
    """Gives a tuple and nothing more, and ends when it is told."""

    outputs = FIELDS

    def prepare(self, context: Any) -> None:
        self.given = False

    def next_block(self, limit: int) -> Any:
        if self.given:
            self.finish()
            return None
        self.given = True
        return self.make_batch([[1], ["u"]])


def notices(source: Any, on: Any = "inline", **how: Any) -> list[str]:
    heard: list[str] = []
    flow = tw.Flow("untold")
    rows = flow.source("in", source, fields=FIELDS, **how)
    windows = rows.window(tw.tumbling(10), time="at").aggregate("w", n=tw.agg.count())
    windows.sink("out", tw.collect([]))

    def listen(event: Any) -> None:
        if isinstance(event, Noticed) and "no source tells" in event.text:
            heard.append(event.text)

    flow.run(on=on, listen=listen)
    return heard


@pytest.mark.parametrize("on", ["inline", "local", pytest.param("spark", marks=pytest.mark.spark)])
def test_that_windows_wait_for_the_end_is_told(on: str) -> None:
    runtime = tw.Spark(spark_session(), places=2) if on == "spark" else on
    assert notices(Endless(), runtime) == [UNTOLD]


def test_nothing_is_told_of_sources_with_a_time_or_an_end(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"at": 1, "user": "u"}\n')
    assert notices(Endless(), time="at") == []
    assert notices(tw.items([(1, "u")])) == []
    assert notices(tw.files(str(file))) == []
    assert notices(tw.items(lambda: iter([(1, "u")]))) == [UNTOLD]


def test_files_that_are_watched_have_no_end(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"at": 1, "user": "u"}\n')
    assert not tw.files(str(tmp_path), tail=1).ends
    assert tw.files(str(tmp_path)).ends
