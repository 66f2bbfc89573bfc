"""An error of a user's component says where that user's own code raised, from afar too."""

from __future__ import annotations

import json
import traceback
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import thalweg as tw
from thalweg.errors import ComponentError, StateError, raised_at, user_frame
from thalweg.expressions import col
from thalweg.runtimes.spark.notes import MAX_TRACE, Failure


def halve(n: int) -> int:
    if n % 2:
        raise ValueError("odd")
    return n // 2


def failed(function: Any, *arguments: Any) -> ComponentError:
    """Give the error that a function of a component causes."""
    flow = tw.Flow("fails")
    flow.source("n", tw.items([arguments[0]]), fields=["n"]).tap(function)
    with pytest.raises(ComponentError) as caught:
        flow.run(on="inline")
    return caught.value


def through_a_library(n: str) -> Any:
    return json.loads(n)


# --- where ----------------------------------------------------------------------------------------


def test_a_component_error_shows_the_line_that_raised() -> None:
    line = str(failed(halve, 3)).splitlines()[-1]
    assert line.startswith("  raised at tests/unit/test_errors.py:")
    assert line.endswith(', in halve: raise ValueError("odd")')


def test_of_what_a_library_raises_the_line_that_called_it_is_shown() -> None:
    line = str(failed(through_a_library, "{")).splitlines()[-1]
    assert line.endswith(", in through_a_library: return json.loads(n)")


def test_without_a_line_of_the_user_nothing_is_added() -> None:
    error = ComponentError("a", 0, "text")
    assert str(error) == "text"
    error.__cause__ = ValueError("never raised")
    assert str(error) == "text"
    try:
        json.loads("{")
    except ValueError as library:
        error.__cause__ = library.with_traceback(library.__traceback__.tb_next)  # type: ignore[union-attr] # raised
    assert user_frame(error.__cause__) is None
    assert raised_at(error.__cause__) == ""


def parsed(field: str) -> Any:
    return col(field).call("cast", options=pc.CastOptions.safe(pa.int64()))


ROWS = [("a", "1"), ("b", "300"), ("c", "x"), ("d", "400"), ("e", "")]


def of_texts() -> tw.Stream:
    return tw.Flow("texts").source("n", tw.items(ROWS), fields={"k": str, "n": str})


@pytest.mark.parametrize(
    ("made", "where"),
    [
        (lambda s: s.filter(parsed("n") > 3), "'filter-1', task 0, in greater(cast(n), 3): Arrow"),
        (lambda s: s.extend(m=parsed("n")), "'extend-1', task 0, in cast(n): ArrowInvalid: "),
    ],
)
def test_an_expression_that_raises_names_itself_and_the_first_tuple_on_which_it_does(
    made: Any, where: str
) -> None:
    stream = made(of_texts())
    with pytest.raises(ComponentError) as caught:
        stream.flow.run(on="inline")
    assert caught.value.tuple_text == "k='c', n='x'"
    assert f"component {where}" in str(caught.value)
    assert "raised at" not in str(caught.value)  # in pyarrow, which nobody here has written


def test_an_expression_refuses_the_tuples_alone_on_which_it_raises() -> None:
    flow, seen = of_texts().flow, list[Any]()
    stream = flow.source("m", tw.items(ROWS), fields={"k": str, "n": str})
    kept = stream.filter(parsed("n") > 3, on_error="skip")
    kept.sink("out", tw.call(lambda t: seen.append((t.k, t.n))))
    assert flow.run(on="inline").metrics.errors == 2
    assert seen == [("b", "300"), ("d", "400")]


def test_a_block_on_which_no_tuple_raises_alone_is_named_as_such() -> None:
    def halved(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("no")

    stream = of_texts().map_block(halved)
    with pytest.raises(ComponentError, match="  block: 5 tuples, none of which it") as caught:
        stream.flow.run(on="inline")
    assert caught.value.tuple_text is None


# --- from another process -------------------------------------------------------------------------


def sent(error: tw.ThalwegError) -> tw.ThalwegError:
    data = msgspec.msgpack.encode(Failure.of(error))
    return msgspec.msgpack.decode(data, type=Failure).error()


def test_an_error_that_was_sent_says_the_same() -> None:
    error = failed(halve, 3)
    arrived = sent(error)
    assert isinstance(arrived, ComponentError)
    assert str(arrived) == str(error)
    assert (arrived.component, arrived.task, arrived.tuple_text) == ("tap-1", 0, "n=3")
    assert str(sent(arrived)) == str(error)


def test_the_traceback_of_an_error_that_was_sent_shows_all_of_it() -> None:
    text = "".join(traceback.format_exception(sent(failed(halve, 3))))
    assert 'raise ValueError("odd")' in text
    assert ", in halve\n" in text
    assert text.count("raised at ") == 1


def test_an_error_without_a_cause_is_sent_as_it_is() -> None:
    arrived = sent(StateError("no"))
    assert type(arrived) is StateError
    assert arrived.__cause__ is None


def test_of_a_long_traceback_the_end_is_kept() -> None:
    error = failed(halve, 3)
    error.__cause__ = ValueError("x" * MAX_TRACE + "end")
    text = "".join(traceback.format_exception(sent(error)))
    assert "end\n" in text
    assert len(text) < 2 * MAX_TRACE
