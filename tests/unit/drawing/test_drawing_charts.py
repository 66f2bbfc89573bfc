"""Line charts: every point is drawn, and axes have readable numbers."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from thalweg.drawing.charts import line_chart, steps

SVG = "{http://www.w3.org/2000/svg}"


def parsed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)  # noqa: S314 (our own picture)


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in parsed(picture).iter(f"{SVG}text")]


def test_each_series_has_a_line_a_dot_for_each_point_and_its_name() -> None:
    drawn = line_chart("a", {"hash": [(1, 2), (2, 3)], "aware": [(1, 4)]}, "hosts", "tuples/s")
    root = parsed(drawn)
    assert len(root.findall(f"{SVG}polyline")) == 2
    assert len(root.findall(f"{SVG}circle")) == 3
    assert {"a", "hash", "aware", "hosts", "tuples/s"} <= set(texts(drawn))


def test_shares_across_can_be_told_apart() -> None:
    drawn = line_chart("a", {"b": [(0.6, 1.0), (1.0, 2.0)]}, "locality", "x")
    assert {"0.6", "0.7", "0.8", "0.9", "1"} <= set(texts(drawn))


def test_large_numbers_are_written_out() -> None:
    drawn = line_chart("a", {"b": [(1, 0), (2, 40_000)]}, "x", "tuples/s")
    assert "40,000" in texts(drawn)
    assert not any(re.search(r"\de\+", text) for text in texts(drawn))


def test_powers_of_ten_are_shown_as_numbers() -> None:
    drawn = line_chart("a", {"b": [(1, 1), (10_000, 2)]}, "pairs", "y", logarithmic=True)
    assert {"1", "10", "100", "1,000", "10,000"} <= set(texts(drawn))


def test_nothing_to_draw_is_an_empty_frame() -> None:
    assert parsed(line_chart("a", {}, "x", "y")).find(f"{SVG}polyline") is None


def test_marks_are_round_and_there_is_no_half_of_a_task() -> None:
    drawn = line_chart("a", {"b": [(0, 1), (699, 3)]}, "seconds", "tasks")
    numbers = [text for text in texts(drawn) if text.isdecimal()]
    assert numbers == ["0", "1", "2", "3", *(str(n) for n in range(0, 700, 100))]


def test_what_holds_until_it_changes_is_drawn_as_steps() -> None:
    held = steps([(0, 1), (5, 1), (9, 3)])
    assert held == [(0, 1), (5, 1), (9, 1), (9, 3)]
    assert steps([]) == []


def test_names_of_lines_have_room_in_the_picture() -> None:
    names = [f"a_rather_long_name_{number}" for number in range(7)]
    root = parsed(line_chart("a", {name: [(0, 1), (1, 2)] for name in names}, "x", "y"))
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    shown = [each for each in root.iter(f"{SVG}text") if each.text in names]
    assert [each.text for each in shown] == names
    for each in shown:
        assert float(each.attrib["x"]) + 7.0 * len(each.text or "") <= width
        assert float(each.attrib["y"]) < height


@pytest.mark.parametrize("most", [900_000.0, 1e6, 8e6, 123e6, 999e6, 1e9, 45e9])
def test_numbers_at_the_left_have_room_in_the_picture(most: float) -> None:
    drawn = parsed(line_chart("a", {"b": [(0, 0), (1, most)]}, "x", "tuples/s"))
    marks = [each for each in drawn.iter(f"{SVG}text") if each.get("text-anchor") == "end"]
    assert len(marks) > 2
    for each in marks:
        # A digit of 16 points, as on a telephone, is about 9 wide.
        wide = sum(4.5 if letter in ",. " else 9.0 for letter in each.text or "")
        assert float(each.attrib["x"]) - wide >= -1.0


def test_what_is_missing_is_a_gap() -> None:
    points = [(0.0, 1.0), (1.0, 2.0), (2.0, math.nan), (3.0, 5.0), (4.0, math.nan)]
    drawn = line_chart("a", {"b": points}, "x", "y")
    assert "nan" not in drawn
    lines = [each.attrib["points"] for each in parsed(drawn).findall(f"{SVG}polyline")]
    assert [len(line.split()) for line in lines] == [2, 1]
    assert len(parsed(drawn).findall(f"{SVG}circle")) == 3
