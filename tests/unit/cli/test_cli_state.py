"""``thalweg state``: what people see of stored state, and what they can do with it."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from thalweg.cli import state_import
from thalweg.cli.app import app
from thalweg.cli.state_values import Values, from_json, key_from_json, key_to_json, to_json
from thalweg.codecs import ArrowCodec, Codec, MsgpackCodec
from thalweg.keys import encode_key
from thalweg.statelog import (
    ComponentMark,
    Location,
    Manifest,
    Manifests,
    StagedRef,
    StateSettings,
    VersionedState,
    write_run,
)
from thalweg.statelog.delivered import write_mark
from thalweg.statelog.reading import Version

COUNT = ComponentMark("keyed", ("word",), ("string",), "MsgpackCodec(Any)", 2)
PAIR = ComponentMark("keyed", ("region", "n"), ("string", "int64"), "MsgpackCodec(Any)", 2)
TOPOLOGY = {
    "words": ComponentMark("stateless", (), (), "", 1),
    "count": COUNT,
    "pairs": PAIR,
    "visits": ComponentMark("keyed", ("user",), ("string",), "MsgpackCodec(Visit)", 1),
    "frames": ComponentMark("keyed", ("user",), ("string",), "ArrowCodec(Any)", 1),
    "own": ComponentMark("keyed", ("user",), ("string",), "MyCodec(Any)", 1),
    "numbers": ComponentMark("keyed", ("n",), ("int64",), "MsgpackCodec(Any)", 1),
    "untyped": ComponentMark("keyed", ("term",), ("any",), "MsgpackCodec(Any)", 1),
    "top": ComponentMark("global", (), (), "MsgpackCodec(Any)", 1),
}


class Visit(msgspec.Struct):
    """A value with a declared type."""

    at: dt.datetime
    pages: list[str]


def part(values: Mapping[Any, Any], codec: Codec | None = None) -> pa.RecordBatch:
    state = VersionedState([], StateSettings("x", now=1.0, codec=codec or MsgpackCodec()))
    state.put_many(values)
    return state.delta()


def commit(folder: Path, *batches: Mapping[str, pa.RecordBatch]) -> Location:
    """Commit a version for each of these batches; two places share them."""
    location, refs = Location.of(folder), []
    for number, parts in enumerate(batches, 1):
        name, versions = f"runs/{number:012}-0-x", (number, number)
        refs.append(write_run(location, name, parts, versions, shared=True))
        manifest = Manifest(
            version=number,
            epoch=0,
            clock=1.5,
            seed=0,
            watermark=None,
            places=2,
            runs=[list(refs), list(refs)],
            inputs={"log": number},
            topology=TOPOLOGY,
        )
        Manifests(location).commit(manifest)
    return location


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


def call(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["state", *map(str, arguments)])


def good(*arguments: Any) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: Any) -> str:
    result = call(*arguments)
    assert result.exit_code == 1, result.output
    return result.stderr


def stored(folder: Path, component: str, key: Any) -> Any:
    return json.loads(good("get", folder, component, json.dumps(key)))


# --- ls -------------------------------------------------------------------------------------------


def test_ls_shows_versions_and_what_each_component_has(tmp_path: Path) -> None:
    commit(tmp_path, {"count": part({"a": 1, "b": 1})}, {"count": part({"b": 2, "c": 2})})
    lines = [line.split() for line in good("ls", tmp_path).splitlines()]
    assert ["2", "1", "to", "2", "(2)", "1970-01-01", "00:00:01", "UTC", "2", "0"] in lines
    # Three keys of two bytes each, and values of one.
    assert ["count", "keyed", "word", "MsgpackCodec(Any)", "3", "9", "B", "2"] in lines
    assert ["pairs", "keyed", "region,", "n", "MsgpackCodec(Any)", "0", "0", "B", "0"] in lines
    assert not any(line[:1] == ["words"] for line in lines)


def test_ls_shows_an_older_version(tmp_path: Path) -> None:
    commit(tmp_path, {"count": part({"a": 1})}, {"count": part({"b": 2})})
    lines = [line.split() for line in good("ls", tmp_path, "--version", 1).splitlines()]
    assert ["count", "keyed", "word", "MsgpackCodec(Any)", "1", "3", "B", "1"] in lines


def test_ls_shows_state_whose_component_has_gone(tmp_path: Path) -> None:
    commit(tmp_path, {"former": part({"a": 1}), "parted#1": part({"b": 1})})
    lines = [line.split() for line in good("ls", tmp_path).splitlines()]
    assert ["former", "(gone)", "1", "3", "B", "1"] in lines
    assert ["parted", "(gone)", "1", "3", "B", "1"] in lines


def test_ls_writes_sizes_that_can_be_read_one_below_the_other(tmp_path: Path) -> None:
    commit(tmp_path, {"count": part({"a": b"x" * 2_500_000}), "pairs": part({("eu", 1): 1})})
    lines = good("ls", tmp_path).splitlines()
    sizes = [re.search(r"(\S+ [kMG]?B) +\d+ *$", line) for line in lines]
    found = [match for match in sizes if match]
    assert found[0][1] == "2.5 MB"
    assert len({match.end(1) for match in found}) == 1


def test_ls_shows_a_clock_that_is_no_time_of_day_as_it_is(tmp_path: Path) -> None:
    location = commit(tmp_path, {"count": part({"a": 1})})
    last = Manifests(location).latest()
    assert last is not None
    Manifests(location).commit(msgspec.structs.replace(last, version=2, clock=1e18))
    assert f"{1e18:,.3f} s" in good("ls", tmp_path)


# --- get ------------------------------------------------------------------------------------------


def test_get_takes_text_and_json(tmp_path: Path) -> None:
    values = {"eu": 1, 5: 2, "7": 3, "null": 4, '{"a": 1}': 5}
    commit(tmp_path, {"count": part(values), "pairs": part({("eu", 5): [1, {"x": None}]})})
    assert good("get", tmp_path, "count", "eu") == "1\n"
    assert good("get", tmp_path, "count", "5") == "2\n"
    assert good("get", tmp_path, "count", "7") == "3\n"
    assert good("get", tmp_path, "count", '"7"') == "3\n"
    assert good("get", tmp_path, "count", "null") == "4\n"
    assert good("get", tmp_path, "count", '{"a": 1}') == "5\n"
    assert good("get", tmp_path, "pairs", '["eu", 5]') == '[1, {"x": null}]\n'


def test_get_of_a_key_that_is_not_there_says_so(tmp_path: Path) -> None:
    commit(tmp_path, {"count": part({"a": 1})})
    said = refused("get", tmp_path, "count", "b")
    assert "key b in component 'count', version 1: expected one that is there, got none" in said


def test_get_from_an_older_version(tmp_path: Path) -> None:
    commit(tmp_path, {"count": part({"a": 1})}, {"count": part({"a": 2})})
    assert good("get", tmp_path, "count", "a", "--version", 1) == "1\n"
    assert good("get", tmp_path, "count", "a") == "2\n"


def test_get_of_a_key_at_two_tasks_gives_both_values(tmp_path: Path) -> None:
    parts = {"count#0": part({"a": 1})}
    location = commit(tmp_path, parts)
    more = write_run(location, "runs/2-1-x", {"count#1": part({"a": 2})}, (2, 2))
    last = Manifests(location).read(1)
    runs = [last.runs[0], [more]]
    Manifests(location).commit(msgspec.structs.replace(last, version=2, runs=runs))
    assert good("get", tmp_path, "count", "a") == "1\n2\n"


def test_values_that_need_code_are_shown_as_well_as_can_be(tmp_path: Path) -> None:
    moment = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    frame = pa.record_batch({"a": [1, 2]})
    commit(
        tmp_path,
        {
            "visits": part({"ada": Visit(moment, ["/"])}, MsgpackCodec(Visit)),
            "frames": part({"ada": frame}, ArrowCodec()),
            "own": part({"ada": 1}),
        },
    )
    assert stored(tmp_path, "visits", "ada") == {
        "at": {"$datetime": "2024-05-01T00:00:00+00:00"},
        "pages": ["/"],
    }
    assert stored(tmp_path, "frames", "ada")["$arrow"] == "2 rows (a: int64)"
    assert stored(tmp_path, "own", "ada") == {"$raw": "AQ=="}


# --- export and import ----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_what_was_exported_can_be_imported(tmp_path: Path, suffix: str) -> None:
    moment = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    commit(
        tmp_path / "from",
        {
            "count": part({"a": 1, "b": {"seen": {1, 2}, "at": moment}}),
            "visits": part({"ada": Visit(moment, ["/"])}, MsgpackCodec(Visit)),
            "frames": part({"ada": pa.record_batch({"a": [1, 2]})}, ArrowCodec()),
            "own": part({"ada": 1}),
        },
    )
    to = commit(tmp_path / "to", {"count": part({"b": 0, "z": 26})})
    for component in ("count", "visits", "frames", "own"):
        file = tmp_path / f"{component}{suffix}"
        good("export", tmp_path / "from", component, "-o", file)
        good("import", tmp_path / "to", component, file)
    version = Version(to, Manifests(to).latest())
    read = MsgpackCodec().decode
    assert read(version.look_up("count", "b")) == {"seen": {1, 2}, "at": moment}
    assert read(version.look_up("count", "z")) == 26
    visit = MsgpackCodec(Visit).decode(version.look_up("visits", "ada"))
    assert visit == Visit(moment, ["/"])
    frame = ArrowCodec().decode(version.look_up("frames", "ada"))
    assert frame == pa.record_batch({"a": [1, 2]})
    assert read(version.look_up("own", "ada")) == 1


def test_export_writes_lines_of_json(tmp_path: Path) -> None:
    commit(tmp_path, {"count": part({"ä": 1, "b": 2})}, {"count": part({"b": 3})})
    result = call("export", tmp_path, "count", "-o", "out.jsonl")
    assert result.stdout == ""
    assert "wrote 2 keys of version 2 to out.jsonl" in result.stderr
    first, *lines = Path("out.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(first) == {
        "$component": "count",
        "kind": "keyed",
        "key_types": ["string"],
        "codec": "MsgpackCodec(Any)",
    }
    assert sorted(lines) == ['{"key": "b", "value": 3}', '{"key": "ä", "value": 1}']


def test_export_writes_parquet_with_json_in_its_columns(tmp_path: Path) -> None:
    commit(tmp_path, {"pairs": part({("eu", 1): [1]})})
    good("export", tmp_path, "pairs", "-o", "out.parquet")
    assert pq.read_table("out.parquet").to_pylist() == [
        {"key": '["eu", 1]', "value": "[1]", "task": None}
    ]


def test_state_of_tasks_keeps_its_tasks(tmp_path: Path) -> None:
    commit(tmp_path, {"count#0": part({"a": 1})})
    good("export", tmp_path, "count", "-o", "out.jsonl")
    _, line = Path("out.jsonl").read_text().splitlines()
    assert json.loads(line) == {"key": "a", "value": 1, "task": 0}
    good("import", tmp_path, "count", "out.jsonl")
    Path("out.jsonl").write_text('{"key": "a", "value": 1}')
    assert "expected a number below 2, got None" in refused(
        "import", tmp_path, "count", "out.jsonl"
    )


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize(
    ("into", "wanted"),
    [
        ("pairs", "keyed 'pairs' with key (string, int64) and MsgpackCodec(Any)"),
        ("numbers", "keyed 'numbers' with key (int64) and MsgpackCodec(Any)"),
        ("own", "keyed 'own' with key (string) and MyCodec(Any)"),
        ("top", "global 'top' and MsgpackCodec(Any)"),
    ],
)
def test_import_refuses_a_file_of_a_component_of_another_kind(
    tmp_path: Path, suffix: str, into: str, wanted: str
) -> None:
    location = commit(tmp_path, {"count": part({"a": 1})})
    good("export", tmp_path, "count", "-o", f"out{suffix}")
    text = refused("import", tmp_path, into, f"out{suffix}")
    found = "keyed 'count' with key (string) and MsgpackCodec(Any)"
    assert f"file 'out{suffix}': expected state of {wanted}, got that of {found}" in text
    last = Manifests(location).latest()
    assert last is not None
    assert last.version == 1


def test_import_takes_a_file_of_another_component_whose_keys_may_be_the_same(
    tmp_path: Path,
) -> None:
    commit(tmp_path, {"count": part({"a": 1})})
    good("export", tmp_path, "count", "-o", "out.jsonl")
    good("import", tmp_path, "untyped", "out.jsonl")
    assert stored(tmp_path, "untyped", "a") == 1


def test_import_makes_a_new_version_and_keeps_the_rest(tmp_path: Path) -> None:
    location = commit(tmp_path, {"count": part({"a": 1, "b": 1})})
    Path("in.jsonl").write_text('{"key": "b", "value": 5}\n\n{"key": "b", "value": 6}\n')
    result = call("import", tmp_path, "count", "in.jsonl")
    assert "version 2: 2 keys of 'count' from in.jsonl" in result.stderr
    assert [stored(tmp_path, "count", key) for key in "ab"] == [1, 6]
    made = Manifests(location).latest()
    assert made is not None
    assert (made.version, made.inputs, made.places) == (2, {"log": 1}, 2)
    assert good("get", tmp_path, "count", "b", "--version", 1) == "1\n"


@pytest.mark.parametrize("delivered", [True, False])
def test_import_neither_repeats_nor_forgets_what_waits_for_sinks(
    tmp_path: Path, delivered: bool
) -> None:
    location = commit(tmp_path, {"count": part({"a": 1})})
    waiting = [StagedRef("out", 0, "staged/2", 1, 1, "")]
    last = msgspec.structs.replace(Manifests(location).read(1), version=2, staged=waiting)
    Manifests(location).commit(last)
    write_mark(location, 2 if delivered else 1)
    Path("in.jsonl").write_text('{"key": "a", "value": 5}')
    good("import", tmp_path, "count", "in.jsonl")
    assert Manifests(location).read(3).staged == ([] if delivered else waiting)


def test_a_large_import_makes_several_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_import, "_ROWS", 10)
    commit(tmp_path, {"count": part({"a": 1})})
    lines = [json.dumps({"key": f"k{n % 20}", "value": n}) for n in range(35)]
    Path("in.jsonl").write_text("\n".join(lines))
    good("import", tmp_path, "count", "in.jsonl")
    assert [stored(tmp_path, "count", f"k{n}") for n in (0, 14, 15, 19)] == [20, 34, 15, 19]
    assert len(list((tmp_path / "runs").iterdir())) == 1 + 4


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 1 of 'in.jsonl': expected JSON"),
        ("[1]", "line 1 of 'in.jsonl': expected an object with key and value"),
        ('{"key": 1}', "expected an object with key and value"),
        ('{"key": {"a": 1}, "value": 1}', "expected None, a number, text"),
        ('{"key": 1, "value": {"$bytes": 5}}', "line 1 of 'in.jsonl': value of $bytes"),
    ],
)
def test_a_bad_line_is_refused_and_nothing_is_committed(
    tmp_path: Path, line: str, told: str
) -> None:
    location = commit(tmp_path, {"count": part({"a": 1})})
    Path("in.jsonl").write_text(line)
    assert told in refused("import", tmp_path, "count", "in.jsonl")
    assert Manifests(location).latest() == Manifests(location).read(1)


def test_a_key_of_several_fields_must_have_them_all(tmp_path: Path) -> None:
    commit(tmp_path, {"count": part({"a": 1})})
    Path("in.jsonl").write_text('{"key": ["eu"], "value": 1}')
    said = refused("import", tmp_path, "pairs", "in.jsonl")
    assert "expected a list of 2 parts (region, n)" in said


def test_values_of_other_codecs_can_only_come_back_as_they_were(tmp_path: Path) -> None:
    commit(tmp_path, {"own": part({"a": 1})})
    Path("in.jsonl").write_text('{"key": "a", "value": 1}')
    assert "value for MyCodec(Any): expected $raw" in refused("import", tmp_path, "own", "in.jsonl")


# --- what can be wrong ----------------------------------------------------------------------------


def test_a_state_that_is_none_is_refused(tmp_path: Path) -> None:
    assert "expected a folder, got nothing there" in refused("ls", tmp_path / "nowhere")
    assert "expected a manifest, got none" in refused("ls", tmp_path)


def test_an_unknown_component_is_refused_with_those_there_are(tmp_path: Path) -> None:
    commit(tmp_path, {"count": part({"a": 1})})
    for arguments in (
        ("get", tmp_path, "cuont", "a"),
        ("export", tmp_path, "cuont", "-o", "x.jsonl"),
    ):
        said = refused(*arguments)
        assert "count, pairs, visits, frames, own" in said
        assert "did you mean 'count'?" in said
    assert not Path("x.jsonl").exists()


def test_a_damaged_object_is_named(tmp_path: Path) -> None:
    commit(tmp_path, {"count": part({"a": 1})})
    (run,) = (tmp_path / "runs").iterdir()
    run.write_bytes(run.read_bytes()[:-1] + b"?")
    for arguments in (("ls", tmp_path), ("export", tmp_path, "count", "-o", "x.jsonl")):
        assert run.name in refused(*arguments)
    assert not list(tmp_path.glob("*.jsonl*"))


@pytest.mark.parametrize("file", ["out.csv", "out"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, file: str) -> None:
    commit(tmp_path, {"count": part({"a": 1})})
    assert "expected one that ends in .jsonl or .parquet" in refused(
        "export", tmp_path, "count", "-o", file
    )
    assert "expected one that ends in" in refused("import", tmp_path, "count", file)


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    commit(tmp_path, {"count": part({"a": 1})})
    assert "nowhere" in refused("export", tmp_path, "count", "-o", "nowhere/out.jsonl")
    assert "expected a file to read" in refused("import", tmp_path, "count", "nowhere.jsonl")
    Path("bad.parquet").write_text("no")
    assert "expected a file to read" in refused("import", tmp_path, "count", "bad.parquet")


# --- JSON -----------------------------------------------------------------------------------------

#: Without ``fold``, which stored state does not keep either.
CLOCKS = (st.datetimes() | st.times()).map(lambda moment: moment.replace(fold=0))
MOMENTS = st.dates() | CLOCKS | st.timedeltas()
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | MOMENTS
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
VALUES = st.recursive(
    HASHABLE | st.frozensets(HASHABLE, max_size=3) | st.sets(HASHABLE, max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | HASHABLE | st.just("$set"), inner, max_size=3)
    ),
    max_leaves=6,
)


def _shape(value: Any) -> Any:
    """Make values comparable: types count, and NaN equals itself."""
    if isinstance(value, float):
        return "float", "nan" if math.isnan(value) else value.hex()
    if isinstance(value, dict):
        return "dict", [(_shape(k), _shape(v)) for k, v in value.items()]
    if isinstance(value, set | frozenset):
        return type(value).__name__, sorted(map(repr, map(_shape, value)))
    if isinstance(value, list | tuple):
        return type(value).__name__, [_shape(part) for part in value]
    return type(value).__name__, value


@given(VALUES)
def test_every_plain_value_comes_back_from_json_as_it_was(value: Any) -> None:
    text = json.dumps(to_json(value), allow_nan=False)
    assert _shape(from_json(json.loads(text))) == _shape(value)


@given(HASHABLE.filter(lambda key: not _is_large(key)))
def test_every_key_comes_back_from_json_as_it_was(key: Any) -> None:
    data = encode_key(key)
    text = json.dumps(key_to_json(data), allow_nan=False)
    assert encode_key(key_from_json(json.loads(text))) == data


def _is_large(key: Any) -> bool:
    """Say whether a key is refused because it has more than 64 bits."""
    if isinstance(key, tuple):
        return any(map(_is_large, key))
    number = key // dt.timedelta(microseconds=1) if isinstance(key, dt.timedelta) else key
    return isinstance(number, int) and not -(1 << 63) <= number < 1 << 63


def test_bytes_that_are_no_msgpack_are_shown_raw() -> None:
    assert Values("MsgpackCodec(Any)").to_json(b"\xc1") == {"$raw": "wQ=="}
