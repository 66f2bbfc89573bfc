"""Benchmarks: what they report has the agreed form."""

from thalweg.bench import inline_wordcount
from thalweg.bench.catalogue import BENCHES
from thalweg.bench.measuring import side_by_side


def test_every_bench_says_in_one_line_what_it_measures():
    for bench in BENCHES.values():
        assert bench.__doc__


def test_candidates_take_turns():
    turns = []
    made = side_by_side(
        {"a": lambda: turns.append("a") or 1, "b": lambda: turns.append("b") or 1}, 2, turns.append
    )
    assert [turn for turn in turns if turn in "ab"] == ["a", "b", "a", "b"]
    assert made["a"]["best"] >= made["a"]["median"]
    assert len(made["b"]["all"]) == 2


def test_all_candidates_of_the_word_count_see_all_words():
    lines = inline_wordcount.sentences(1000)
    assert sum(len(line.split()) for line in lines) == 1000
    for candidate in (
        inline_wordcount.generators,
        inline_wordcount.flat_loop,
        inline_wordcount.functions,
        inline_wordcount.bolts,
    ):
        assert candidate(lines) == 1000


def test_the_word_count_reports_its_ratios(monkeypatch):
    monkeypatch.setattr(inline_wordcount, "QUICK_WORDS", 1000)
    report = inline_wordcount.run(True, lambda _line: None)
    assert set(report) == {"name", "environment", "results", "summary"}
    assert report["summary"]["ratio_vs_generators"] > 0
    assert report["summary"]["bolt_ratio_vs_generators"] > 0
