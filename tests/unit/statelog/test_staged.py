"""Output that waits beside the state: whole, in order, and of one attempt."""

from __future__ import annotations

from pathlib import Path

import pytest

from thalweg.errors import StateError
from thalweg.statelog import Location
from thalweg.statelog.garbage import version_of
from thalweg.statelog.staged import StagedBatch, read_staged


def test_parts_are_read_as_they_were_written_and_in_order_of_their_names(tmp_path: Path) -> None:
    batch = StagedBatch(Location.of(tmp_path), version=12, place=3)
    refs = batch.stage("sink", [(n, b"part %d" % n) for n in range(12)], ".rows")
    assert [ref.rows for ref in sorted(refs, key=lambda ref: ref.name)] == list(range(12))
    assert bytes(read_staged(batch.location, refs[7])) == b"part 7"
    assert {(ref.component, ref.place, version_of(ref.name)) for ref in refs} == {("sink", 3, 12)}


def test_two_attempts_at_a_batch_never_share_a_name(tmp_path: Path) -> None:
    batch = StagedBatch(Location.of(tmp_path), version=1)
    (first,), (second,) = (batch.stage("sink", [(1, b"same")]) for _ in range(2))
    assert first.name != second.name
    assert first.checksum == second.checksum


@pytest.mark.parametrize("damaged", [b"", b"part", b"other", b"parts!"])
def test_what_was_damaged_is_not_read(tmp_path: Path, damaged: bytes) -> None:
    batch = StagedBatch(Location.of(tmp_path), version=1)
    (ref,) = batch.stage("sink", [(1, b"parts")])
    (tmp_path / ref.name).write_bytes(damaged)
    with pytest.raises(StateError, match=r"object 'staged/.* expected (5 bytes|checksum)"):
        read_staged(batch.location, ref)
