"""The log of what spouts sent: what was appended is found again, and broken entries are named."""

import os

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from thalweg.blocks import Origin
from thalweg.errors import StateError
from thalweg.runtimes import segment_format
from thalweg.runtimes.segments import (
    TARGETS,
    Piece,
    Segment,
    SegmentLog,
    TornEntry,
    read_block,
    read_segment,
)
from thalweg.statelog.location import Location


class Folder:
    """Objects as files below a folder."""

    def __init__(self, root):
        self.root = root

    def write(self, name, data):
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)

    def read(self, name):
        with pa.memory_map(str(self.root / name)) as file:
            return file.read_buffer()

    def delete(self, name):
        (self.root / name).unlink(missing_ok=True)

    def names(self, folder):
        path = self.root / folder
        return [f"{folder}/{name}" for name in os.listdir(path)] if path.exists() else []


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture
def log(folder):
    return SegmentLog(folder)


def rows(*values):
    return pa.record_batch({"n": pa.array(values, pa.int64())})


def piece(*values, component="s", task=0, **more):
    return Piece(component, task, rows(*values), **more)


def values(log, entries):
    return [log.read(e, s).column("n").to_pylist() for e in entries for s in e.segments]


def reopened(log, number=0):
    again = SegmentLog(log.location)
    return again, again.after(number)


def objects(folder):
    return sorted(name.rpartition("/")[2] for name in folder.names("entries"))


def overwrite(folder, entry, change):
    """Change the bytes of an entry, in a new file since the old one may be mapped."""
    path = folder.root / entry.name
    data = bytearray(path.read_bytes())
    path.unlink()
    path.write_bytes(change(data))


def flip(at):
    def change(data):
        data[at] ^= 1
        return data

    return change


# --- appending and finding again -----------------------------------------------------------------


def test_a_log_begins_empty(log):
    assert log.after(0) == []
    assert log.last is None


def test_entries_are_found_again_from_the_objects_alone(log):
    first = log.append(1.5, [piece(1, 2), piece(3, component="t", task=1, stream="x")], [])
    second = log.append(2.5, [piece(4)], ["t/1"])
    again, found = reopened(log)
    assert found == [first, second]
    assert again.last == second
    assert values(again, found) == [[1, 2], [3], [4]]
    assert (found[0].number, found[1].number, found[1].clock) == (1, 2, 2.5)


def test_only_entries_behind_a_number_are_given(log):
    entries = [log.append(0, [piece(n)], []) for n in range(4)]
    assert reopened(log, 2)[1] == entries[2:]
    assert reopened(log, 4)[1] == []


def test_serials_and_totals_go_on_over_entries_and_restarts(log):
    log.append(0, [piece(1, 2), piece(3, task=1), piece(4, stream="x")], [])
    again, _ = reopened(log, 1)
    entry = again.append(0, [piece(5, task=1), piece(6, 7)], [])
    assert [(s.serial, s.total) for s in entry.segments] == [(4, 1), (5, 3)]
    assert (entry.number, entry.totals, entry.next_serial) == (2, {"s/0": 5, "s/1": 2}, 7)


def test_an_entry_may_hold_nothing_but_an_end(log):
    entry = log.append(0, [], ["s/0"])
    assert reopened(log)[1] == [entry]
    assert (entry.finished, entry.rows) == (("s/0",), 0)


def test_every_type_of_column_survives(log):
    batch = pa.record_batch(
        {
            "text": pa.array(["ä", None]),
            "nothing": pa.nulls(2),
            "lists": pa.array([[1], []], pa.list_(pa.int64())),
            "words": pa.array(["a", "b"]).dictionary_encode(),
            "when": pa.array([0, 1], pa.timestamp("us", "UTC")),
        }
    )
    entry = log.append(0, [Piece("s", 0, batch)], [])
    assert log.read(entry, entry.segments[0]).equals(batch)


def test_a_segment_becomes_a_block_with_targets_and_serials(log):
    log.append(0, [piece(1, 2, 3)], [])
    targets = np.array([7, 5])
    entry = log.append(0, [piece(8, 9, stream="x", task=2, targets=targets)], [])
    (segment,) = entry.segments
    block = read_block(log.location, entry.name, segment)
    assert block.origin == Origin("s", "x", 2)
    assert block.batch.equals(rows(8, 9))
    assert (block.serials.tolist(), block.targets.tolist()) == ([3, 4], [7, 5])
    assert log.read(entry, segment).column(TARGETS).to_pylist() == [7, 5]


def test_a_block_without_targets_has_none(log):
    entry = log.append(0, [piece(1)], [])
    assert read_block(log.location, entry.name, entry.segments[0]).targets is None


def test_a_segment_is_read_where_it_stands_without_a_copy(log):
    entry = log.append(0, [piece(*range(1000)), piece(*range(1000))], [])
    batch = log.read(entry, entry.segments[1])
    assert entry.segments[1].offset % 64 == 0
    before = pa.total_allocated_bytes()
    again = log.read(entry, entry.segments[1])
    assert pa.total_allocated_bytes() - before < 4000
    assert again.equals(batch)


def test_what_is_told_to_another_process_is_enough_to_read_a_segment(log, folder):
    entry = log.append(0, [piece(0), piece(1, 2)], [])
    told = msgspec.json.encode((entry.name, entry.segments[1]))
    name, segment = msgspec.json.decode(told, type=tuple[str, Segment])
    assert read_segment(Folder(folder.root), name, segment).equals(rows(1, 2))


# --- large pieces --------------------------------------------------------------------------------


def test_large_pieces_are_split_by_rows_and_keep_their_order(folder):
    log = SegmentLog(folder, segment_bytes=2048)
    big = piece(*range(1000), targets=np.arange(1000), tracked=True)
    entry = log.append(0, [piece(-1), big], [])
    assert max(segment.length for segment in entry.segments) <= 2048
    blocks = [read_block(log.location, entry.name, segment) for segment in entry.segments]
    assert [n for block in blocks[1:] for n in block.batch.column("n").to_pylist()] == [
        *range(1000)
    ]
    assert [t for block in blocks[1:] for t in block.targets] == [*range(1000)]
    assert [s for block in blocks for s in block.serials] == [*range(1001)]
    totals = [segment.total for segment in entry.segments]
    assert totals == [segment.serial for segment in entry.segments]
    assert all(segment.tracked for segment in entry.segments[1:])


def test_no_segment_is_over_16_megabytes(log):
    batch = pa.record_batch({"text": pa.array(["x" * (5 << 20)] * 7)})
    entry = log.append(0, [Piece("s", 0, batch)], [])
    assert sum(segment.rows for segment in entry.segments) == 7
    assert all(segment.length <= 16 << 20 for segment in entry.segments)


def test_a_single_row_that_is_too_large_is_refused_by_name(log):
    large = pa.record_batch({"text": ["x" * (17 << 20)]})
    with pytest.raises(StateError, match=r"'posts'.*at most 16777216 bytes, got 178257\d\d bytes"):
        log.append(0, [piece(1), Piece("posts", 0, large)], [])
    assert log.after(0) == []


# --- broken entries ------------------------------------------------------------------------------


@pytest.fixture
def three(log):
    return [log.append(0, [piece(n, n), piece(n, component="t")], []) for n in range(3)]


@pytest.mark.parametrize("size", [0, 1, 31, 32, 200, -1])
def test_a_last_entry_that_was_cut_off_is_left_out(log, folder, three, size):
    overwrite(folder, three[2], lambda data: data[:size])
    again, found = reopened(log, 1)
    assert found == three[1:2]
    assert (again.torn, again.last) == (three[2].name, three[1])


def test_the_number_of_a_torn_entry_is_used_again(log, folder, three):
    overwrite(folder, three[2], lambda data: data[:-5])
    again, _ = reopened(log)
    entry = again.append(0, [piece(9)], [])
    assert (entry.number, entry.segments[0].serial) == (3, 6)
    again, found = reopened(log)
    assert (found[-1], again.torn) == (entry, None)


def test_the_only_entry_may_be_torn(log, folder):
    overwrite(folder, log.append(0, [piece(1)], []), lambda data: data[:-5])
    again, found = reopened(log)
    assert (found, again.last) == ([], None)


def test_any_changed_byte_is_seen(log, folder):
    entry = log.append(0, [piece(1, 2)], ["t/0"])
    for at in range(entry.size):
        overwrite(folder, entry, flip(at))
        assert reopened(log)[0].torn == entry.name, at
        overwrite(folder, entry, flip(at))
    assert reopened(log)[1] == [entry]


@pytest.mark.parametrize("change", [flip(3), flip(-1), flip(-40), lambda data: data[:-5]])
def test_a_broken_entry_in_the_middle_is_an_error_that_names_it(log, folder, three, change):
    overwrite(folder, three[1], change)
    with pytest.raises(TornEntry, match=r"entries/000000000002\.arrow.*cut off"):
        SegmentLog(folder).after(0)


def test_a_broken_entry_that_was_committed_is_an_error(log, folder, three):
    overwrite(folder, three[2], flip(0))
    with pytest.raises(TornEntry, match="000000000003"):
        SegmentLog(folder).after(3)


def test_a_gap_is_an_error_that_names_what_is_missing(log, folder, three):
    folder.delete(three[1].name)
    with pytest.raises(StateError, match=r"000000000002.*expected to be there"):
        SegmentLog(folder).after(0)
    assert SegmentLog(folder).after(2) == three[2:]


def test_a_log_that_ends_before_the_last_commit_is_an_error(log, folder, three):
    with pytest.raises(StateError, match="000000000005"):
        SegmentLog(folder).after(5)


def test_a_segment_that_changed_after_the_start_is_an_error(log, folder, three):
    (segment, _) = three[0].segments
    overwrite(folder, three[0], flip(segment.offset + 5))
    with pytest.raises(TornEntry, match="segment at byte 0"):
        read_segment(folder, three[0].name, segment)
    overwrite(folder, three[0], lambda data: data[:10])
    with pytest.raises(TornEntry, match="got 10"):
        read_segment(folder, three[0].name, segment)


def test_an_entry_of_a_later_format_is_refused_and_kept(log, folder, monkeypatch):
    real = segment_format.pack
    monkeypatch.setattr(
        "thalweg.runtimes.segments.pack",
        lambda entry, name, bodies: real(msgspec.structs.replace(entry, format=2), name, bodies),
    )
    log.append(0, [piece(1)], [])
    with pytest.raises(StateError, match=r"expected format 1, got format 2") as caught:
        SegmentLog(folder).after(0)
    assert not isinstance(caught.value, TornEntry)


def test_other_files_are_ignored(log, folder, three):
    for name in ("entries/000000000003.arrow.tmp", "entries/x.arrow", "entries/.hidden"):
        folder.write(name, b"")
    assert reopened(log)[1] == three


# --- forgetting ----------------------------------------------------------------------------------


def test_forgotten_entries_are_deleted_but_never_the_newest(log, folder, three):
    log.forget(1)
    assert objects(folder) == ["000000000002.arrow", "000000000003.arrow"]
    log.forget(3)
    assert objects(folder) == ["000000000003.arrow"]
    again, found = reopened(log, 3)
    assert (found, again.last) == ([], three[2])


def test_each_entry_is_deleted_once(log, folder, three, monkeypatch):
    deleted = []
    monkeypatch.setattr(folder, "delete", deleted.append)
    for upto in (1, 2, 2, 3):
        log.forget(upto)
    assert deleted == [three[0].name, three[1].name]


def test_forgetting_goes_on_after_a_restart(log, folder, three):
    log.forget(1)
    again, _ = reopened(log, 2)
    again.append(0, [piece(1)], [])
    again.forget(3)
    assert objects(folder) == ["000000000004.arrow"]


def test_forgetting_in_an_empty_log_does_nothing(log):
    log.after(0)
    log.forget(5)
    assert log.append(0, [piece(1)], []).number == 1


def test_a_log_lies_at_any_location(tmp_path):
    log = SegmentLog(Location.of(tmp_path / "a log"))
    assert log.after(0) == []
    entries = [log.append(0, [piece(n)], []) for n in range(3)]
    log.forget(1)
    again, found = reopened(log, 1)
    assert (found, values(again, found)) == (entries[1:], [[1], [2]])
