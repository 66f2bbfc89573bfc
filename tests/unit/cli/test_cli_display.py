"""Progress on a terminal and in a log, and Ctrl-C, without a run."""

from __future__ import annotations

import io
import signal
import sys
import threading

import pytest
from rich.console import Console
from rich.table import Table

from thalweg.cli.live_line import LiveLine, PlainLines
from thalweg.cli.running import Display, stop_on_interrupt
from thalweg.cli.showing import (
    error_console,
    progress_text,
    result_console,
    rows_table,
    totals_text,
)
from thalweg.events import Noticed, Progress, RecordRefused, RunFinished, RunStarted
from thalweg.metrics import ComponentMetrics, Latency, Snapshot

ERASE = "\r\x1b[2K"


HOSTILE = "\x1b]0;owned\x07\x9b31mred\x7f"


def one_cell(text: str) -> Table:
    table = Table()
    table.add_column(text)
    table.add_row(text)
    return table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def snapshot(elapsed: float, tuples: int, errors: int = 0) -> Snapshot:
    component = ComponentMetrics("numbers", 1, 0, tuples, errors, 0.5, (0,))
    latency = Latency(0.0005, 0.0042, 0.25, tuples)
    recent = Latency(0.3, 0.31, 0.32, 9, over=15.0)
    return Snapshot(elapsed, (component,), tuples, tuples // 2, errors, latency, recent=recent)


@pytest.fixture(autouse=True)
def capable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", io.StringIO())


def terminal(width: int = 200) -> tuple[Console, Terminal]:
    file = Terminal()
    return Console(file=file, width=width, force_terminal=True, color_system=None), file


def test_progress_names_counts_rate_and_percentiles() -> None:
    before, now = snapshot(1.0, 1000), snapshot(3.0, 5000, errors=2)
    text = progress_text(now, before)
    expected = "3.0 s  5,000 in  2,500 out  2,000/s  p50 300 ms  p95 310 ms  p99 320 ms  2 errors"
    assert text.strip() == expected


def test_progress_before_anything_has_passed() -> None:
    text = progress_text(Snapshot(0.0, (), 0, 0, 0, None), None)
    assert text.strip() == "0.0 s  0 in  0 out  0/s"


def test_totals() -> None:
    assert totals_text(snapshot(2.0, 1000)).startswith("1,000 tuples in, 500 out, 2.00 s, 500 tup")


def test_latency_has_a_line_of_its_own_and_lines_fit_80_columns() -> None:
    counts, latency = totals_text(snapshot(123.4, 123_456_789, errors=1)).splitlines()
    assert counts.endswith(" tuples/s, 1 error")
    assert len(counts) <= 80
    assert latency == "latency p50 0.50 ms  p95 4.2 ms  p99 250 ms"


def test_a_log_gets_a_line_now_and_then() -> None:
    file = io.StringIO()
    lines = PlainLines(Console(file=file, width=200))
    shown = [lines.show(elapsed, f"at {elapsed}") for elapsed in (0.2, 3.0, 4.0, 5.9, 6.0)]
    assert shown == [False, True, False, False, True]
    assert file.getvalue() == "at 3.0\nat 6.0\n"


def test_a_terminal_has_one_line_that_is_written_over() -> None:
    console, file = terminal()
    line = LiveLine(console)
    line.show(0.0, "first")
    line.show(0.0, "second")
    line.clear()
    line.clear()
    assert file.getvalue() == f"{ERASE}first{ERASE}second{ERASE}"


def test_the_line_never_fills_the_width() -> None:
    console, file = terminal(width=10)
    LiveLine(console).show(0.0, "0123456789")
    assert file.getvalue() == f"{ERASE}01234567…"


def test_output_to_the_same_terminal_clears_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    console, file = terminal()
    monkeypatch.setattr(sys, "stdout", file)
    with LiveLine(console) as line:
        line.show(0.0, "progress")
        print("result")
        line.show(0.0, "more")
    assert sys.stdout is file
    assert file.getvalue() == f"{ERASE}progress{ERASE}result\n{ERASE}more{ERASE}"


def test_an_unfinished_line_of_output_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    console, file = terminal()
    monkeypatch.setattr(sys, "stdout", file)
    with LiveLine(console) as line:
        print("half", end="")
        assert not line.show(0.0, "progress")
        sys.stdout.writelines([" and half", "\n"])
        assert line.show(0.0, "progress")
    assert file.getvalue() == f"half and half\n{ERASE}progress{ERASE}"


def test_output_elsewhere_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    console, _ = terminal()
    elsewhere = io.StringIO()
    monkeypatch.setattr(sys, "stdout", elsewhere)
    with LiveLine(console):
        assert sys.stdout is elsewhere


def test_a_terminal_that_cannot_erase_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(Display(terminal()[0]).line, PlainLines)


def test_a_display_on_a_terminal_ends_with_the_summary() -> None:
    console, file = terminal()
    display = Display(console)
    assert isinstance(display.line, LiveLine)
    display.listen(Progress(snapshot(1.0, 10)))
    for number in range(5):
        display.listen(RecordRefused("numbers", f"raw {number}", "no number"))
    display.listen(RunFinished(snapshot(2.0, 20), stopped=True))
    text = file.getvalue()
    assert text.count("refused by 'numbers': no number") == 3
    assert "raw 2" in text
    assert "raw 3" not in text
    assert "refused by 'numbers': 5 in all" in text
    assert text.endswith("stopped early, before the sources had ended\n")


def test_the_first_batch_on_spark_is_explained_until_it_is_there() -> None:
    console, file = terminal()
    display = Display(console)
    display.listen(RunStarted("words", "spark"))
    display.listen(Progress(snapshot(3.0, 10)))
    waiting = "the first batch: Spark starts its Python workers"
    assert file.getvalue().startswith(f"words runs on spark\n{ERASE}{waiting}{ERASE}   3.0 s")
    console, file = terminal()
    Display(console).listen(RunStarted("words", "inline"))
    assert file.getvalue() == "words runs on inline\n"


def test_what_people_should_know_stays() -> None:
    console, file = terminal()
    display = Display(console)
    display.listen(Progress(snapshot(1.0, 10)))
    display.listen(Noticed("batch 3: attempt 1 failed"))
    assert file.getvalue().endswith(f"{ERASE}batch 3: attempt 1 failed\n")


def test_markup_in_what_users_say_is_shown_as_it_is() -> None:
    console, file = terminal()
    Display(console).listen(RecordRefused("numbers", "[red]raw[/red]", "[bold]"))
    assert "[red]raw[/red]" in file.getvalue()


@pytest.mark.parametrize("what", [HOSTILE, rows_table([{HOSTILE: HOSTILE}]), one_cell(HOSTILE)])
def test_a_terminal_obeys_no_text(what: str | Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for name, console in (("stderr", error_console), ("stdout", result_console)):
        file = Terminal()
        monkeypatch.setattr(sys, name, file)
        console().print(what, markup=False, soft_wrap=True)
        assert "\\x1b]0;owned\\x07\\x9b31mred\\x7f" in file.getvalue()
        assert not {*file.getvalue()} & {*HOSTILE} - {*"]0;owned31mr"}


def test_the_first_interrupt_stops_and_the_second_aborts() -> None:
    stop = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    with stop_on_interrupt(stop):
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_handler_is_restored_after_an_error() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), stop_on_interrupt(threading.Event()):
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is before


def test_a_table_of_records_has_a_column_for_each_name() -> None:
    file = io.StringIO()
    Console(file=file, width=80).print(rows_table([{"a": 1234, "b": "[x]"}, {"a": 0.5, "c": True}]))
    lines = [line.split() for line in file.getvalue().splitlines() if line.strip()]
    assert lines[0] == ["a", "b", "c"]
    assert lines[2:] == [["1,234", "[x]"], ["0.5", "True"]]
