"""Curves through samples, and the choice among models."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.control.scaling.forecasting import Line, Sums, best_fit, coming, fit, linear
from thalweg.control.scaling.outlook import outlook


def test_the_line_of_least_squares_is_the_one_worked_out_by_hand() -> None:
    # Points (1, 2), (2, 3), (3, 7): means 2 and 4, slope ((-1)(-2) + 0 + (1)(3)) / 2 = 2.5.
    assert linear([2, 3, 7]) == Line(-1.0, 2.5)


def test_one_value_gives_a_level_line_and_none_gives_nothing() -> None:
    assert linear([7]) == Line(7.0, 0.0)
    assert linear([]) == Line(0.0, 0.0)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=40), st.integers(2, 9))
def test_sums_that_are_kept_up_equal_sums_computed_anew(values: list[int], size: int) -> None:
    kept = Sums()
    for at, value in enumerate(values):
        kept = kept.plus(at, value)
        if at >= size:
            kept = kept.minus(at - size, values[at - size])
    last = list(enumerate(values))[-size:]
    assert kept == Sums.of(last)


def test_each_model_is_read_on_as_it_was_made() -> None:
    line = [5.0 + 3 * x for x in range(1, 7)]
    logarithm = [5.0 + 3 * math.log(x) for x in range(1, 7)]
    exponential = [2.0 * math.exp(0.3 * x) for x in range(1, 7)]
    for values, model, tenth in (
        (line, "linear", 35.0),
        (logarithm, "logarithmic", 5 + 3 * math.log(10)),
        (exponential, "exponential", 2 * math.exp(3)),
    ):
        found = best_fit(values)
        assert found.model == model
        assert found.at(10) == pytest.approx(tenth)
        assert found.error == pytest.approx(0, abs=1e-9)


def test_an_exponential_needs_values_above_zero_and_a_line_takes_its_place() -> None:
    assert fit([0, 1, 2], "exponential") is None
    assert best_fit([0, 1, 2], ["exponential"]).model == "linear"


def test_what_comes_is_whole_and_never_negative() -> None:
    # 2.5 per sample: 3 whole tuples each; a falling line ends at zero.
    assert coming(Line(2.5, 0.0).at, 2) == 6
    assert coming(Line(4.0, -1.0).at, 2) == 1


def test_of_steady_values_with_noise_the_mean_is_expected() -> None:
    noise = [3, -2, -1, 4, -4, 1, 2, -3, 0, 2, -2, 1, -1, 3, -3, 0, 1, -1]
    found = outlook([100.0 + n for n in noise])
    assert found.model == "mean"
    assert found.rate == pytest.approx(100, abs=2)
    assert 1 < found.error < 5


def test_a_ramp_is_read_on() -> None:
    found = outlook([10.0 * k for k in range(20)], ahead=3)
    assert found.rate == pytest.approx(220)
    assert found.error == pytest.approx(0, abs=1e-6)


def test_a_fall_is_not_expected_to_go_below_zero() -> None:
    assert outlook([100.0 - 10 * k for k in range(11)]).rate == 0.0


@given(st.lists(st.floats(0, 1e6), max_size=40), st.integers(1, 6))
def test_an_outlook_is_finite_and_not_negative(values: list[float], ahead: int) -> None:
    found = outlook(values, ahead)
    assert 0 <= found.rate < math.inf
    assert 0 <= found.error < math.inf
