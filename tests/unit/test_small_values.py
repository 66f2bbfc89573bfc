"""Clock, options, expressions, metrics, error texts."""

import pyarrow as pa
import pytest

from thalweg.clock import ManualClock, SystemClock, seconds
from thalweg.config import DeadLetter, Options, dead_letter, on_error, setting
from thalweg.errors import TopologyError, UsageError, explain, locate, shorten
from thalweg.expressions import col, lit
from thalweg.metrics import RECENT, Counter, LatencySketch


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 s", 10),
        ("250ms", 0.25),
        ("1.5 min", 90),
        ("5 m", 300),
        ("2 hours", 7200),
        ("1 day", 86400),
        (3, 3),
        (0.5, 0.5),
    ],
)
def test_durations(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize(
    "text", ["", "10", "s", "10 parsecs", "-1 s", 0, -2, True, float("nan"), float("inf"), None]
)
def test_durations_that_make_no_sense(text):
    with pytest.raises(UsageError, match="duration"):
        seconds(text)


def test_a_manual_clock_moves_only_forward():
    clock = ManualClock(5)
    clock.sleep(2)
    clock.sleep(-1)
    assert clock.now() == 7
    with pytest.raises(UsageError):
        clock.advance(-1)


def test_the_system_clock_grows():
    clock = SystemClock()
    before = clock.now()
    clock.sleep(0)
    assert clock.now() >= before


def test_options_are_checked_by_name():
    options = Options.of({"degree": 2, "tick": "10 s", "on_error": "skip"}, "component 'c'")
    assert (options.degree, options.tick, options.on_error) == (2, 10.0, "skip")
    expected = r"option 'degre' in component 'c'.*did you mean 'degree'"
    with pytest.raises(TopologyError, match=expected):
        Options.of({"degre": 2}, "component 'c'")
    with pytest.raises(TopologyError, match="order"):
        Options.of({"order": "sorted"}, "c")


@pytest.mark.parametrize("wrong", ["high", True, float("nan"), None])
def test_a_priority_is_a_number(wrong):
    assert Options.of({"priority": 3}, "c").priority == 3.0
    with pytest.raises(TopologyError, match="priority in c: expected a number"):
        Options.of({"priority": wrong}, "c")


def test_error_policies():
    assert on_error("fail") == "fail"
    assert isinstance(on_error(dead_letter("x/bad.jsonl")), DeadLetter)
    with pytest.raises(UsageError, match="dead_letter"):
        on_error("ignore")


def test_settings_are_key_and_value():
    assert setting("a=b=c") == ("a", "b=c")
    assert setting("a=") == ("a", "")
    for wrong in ("a", "=b", ""):
        with pytest.raises(UsageError, match="key=value"):
            setting(wrong)


BATCH = pa.record_batch({"a": [1, 2, None], "b": [2.0, 0.5, 1.0], "s": ["x", None, "y"]})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("a") + 1, [2, 3, None]),
        (col("a") - col("a"), [0, 0, None]),
        (col("a") * col("b"), [2.0, 1.0, None]),
        (col("a") / 2, [0.5, 1.0, None]),
        (1 + col("a"), [2, 3, None]),
        (2 * col("a"), [2, 4, None]),
        (1 - col("a"), [0, -1, None]),
        (1 / col("a"), [1.0, 0.5, None]),
        (-col("a"), [-1, -2, None]),
        (True & (col("a") > 1), [False, True, None]),
        (True | (col("a") > 1), [True, True, True]),
        (col("a") == 1, [True, False, None]),
        (col("a") != 1, [False, True, None]),
        ((col("a") > 1) | (col("b") <= 1), [False, True, True]),
        ((col("a") >= 1) & (col("b") < 1), [False, True, False]),
        (~col("s").is_null(), [True, False, True]),
        (col("s").isin(["x"]), [True, False, False]),
        (col("s").call("utf8_upper"), ["X", None, "Y"]),
    ],
)
def test_expressions_on_columns(expression, expected):
    assert expression.evaluate(BATCH).to_pylist() == expected


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("values", [[0], [0.0], [-0.0], [0, 5], [-0.0, 2.5]])
def test_minus_zero_is_among_values_where_zero_is(type_, values):
    batch = pa.record_batch({"x": pa.array([-0.0, 0.0, 1.0, None], type_), "n": [0, 0, 1, None]})
    assert col("x").isin(values).evaluate(batch).to_pylist() == [True, True, False, False]
    assert col("n").isin(values).evaluate(batch).to_pylist() == [True, True, False, False]


def test_expressions_know_their_fields_and_their_text():
    expression = (col("a") + col("b")) > lit(3)
    assert expression.fields == {"a", "b"}
    assert repr(expression) == "greater(add_checked(a, b), 3)"


def test_expressions_have_no_truth():
    with pytest.raises(TypeError, match=r"use & \| ~"):
        bool(col("a") > 1)
    with pytest.raises(TypeError):
        hash(col("a"))


def test_messages_have_a_fixed_order():
    text = explain("subject", "where", "this", "that", "because")
    assert text == "subject in where: expected this, got that (because)"
    assert explain("subject") == "subject"
    assert explain("subject", got="that") == "subject: got that"


def test_functions_are_named_with_file_and_line():
    assert "test_small_values.py:" in locate(test_settings_are_key_and_value)
    assert "test_small_values.py:" in locate(lambda: None)
    assert locate(3).startswith("int")


def test_long_values_are_cut():
    assert len(shorten("x" * 1000)) == 200
    assert shorten("x") == "'x'"


def test_counters_freeze_to_immutable_metrics():
    counter = Counter("c", 2)
    counter.per_task[1] += 3
    frozen = counter.freeze()
    counter.per_task[1] += 1
    assert (frozen.received, frozen.per_task) == (3, (0, 3))


def test_what_is_slow_now_is_seen_however_much_was_fast_before():
    clock = ManualClock(1000.0)
    sketch = LatencySketch(clock)
    assert (sketch.freeze(), sketch.recent()) == (None, None)
    for _ in range(2500):
        sketch.add([0.0002] * 10)
        clock.advance(0.01)
    for _ in range(60):
        sketch.add([0.3])
        clock.advance(0.3)
    whole, recent = sketch.freeze(), sketch.recent()
    assert (whole.p99, whole.count, whole.over) == (0.0002, 25_060, None)
    assert (recent.p50, recent.p99, recent.over) == (0.3, 0.3, RECENT)
    assert 0.75 * RECENT / 0.3 <= recent.count <= RECENT / 0.3 + 1  # of the last seconds alone


def test_nothing_is_said_of_now_where_nothing_comes_to_its_end():
    clock = ManualClock()
    sketch = LatencySketch(clock, seconds=60.0)
    sketch.add([0.5])
    clock.advance(47)
    assert sketch.recent().over == 60.0
    clock.advance(13)
    assert sketch.recent() is None
    assert sketch.freeze().p50 == 0.5
    sketch.add([0.25])
    assert (sketch.recent().p50, sketch.recent().count) == (0.25, 1)
