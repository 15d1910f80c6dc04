"""The mark beside a journal: two slots, of which one torn write can spoil only the older."""

import errno
from pathlib import Path

import pytest

from local.core.errors import StoreDamaged, StoreGone
from local.journal.schema import SLOT_BYTES, HighWaterMark, JournalState, create_mark, read_mark


def state(changes: int) -> JournalState:
    return JournalState(changes, 1, changes, False, bytes([changes]) * 16)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db.mark"
    create_mark(path, state(1))
    return path


def test_it_says_what_it_was_last_told(path: Path) -> None:
    with HighWaterMark(path) as mark:
        for changes in (2, 4, 5, 9):
            mark.advance(state(changes))
            assert read_mark(path) == mark.state == state(changes)
    with HighWaterMark(path) as mark:
        assert mark.state == state(9)


def test_one_that_was_removed_or_replaced_is_made_anew(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    older = path.read_bytes()
    with HighWaterMark(path) as mark:
        mark.advance(state(2))
        assert mark.has_its_name()
        path.unlink()
        assert not mark.has_its_name()
        mark.make_anew()
        assert read_mark(path) == state(2)
        path.with_name("older").write_bytes(older)
        path.with_name("older").replace(path)
        assert not mark.has_its_name()
        mark.make_anew()
        mark.advance(state(3))
        assert mark.has_its_name()
    assert read_mark(path) == state(3)
    assert caplog.text.count("is created again") == 2


def test_one_whose_folder_is_gone_is_not_made_anew(path: Path) -> None:
    with HighWaterMark(path) as mark:
        path.parent.rename(path.parent.with_name("elsewhere"))
        assert not mark.has_its_name()
        with pytest.raises(StoreGone, match=r"journal\.db\.mark is gone"):
            mark.make_anew()


def test_a_write_that_is_torn_anywhere_leaves_the_state_before_it(path: Path) -> None:
    with HighWaterMark(path) as mark:
        mark.advance(state(2))
        mark.advance(state(3))
        before = path.read_bytes()
        mark.advance(state(4))
        after = path.read_bytes()
    changed = [position for position in range(2 * SLOT_BYTES) if before[position] != after[position]]
    assert changed
    for position in changed[1:]:
        path.write_bytes(after[:position] + before[position:])
        assert read_mark(path) == state(3)


def test_any_flipped_bit_of_a_slot_gives_the_other_one(path: Path) -> None:
    with HighWaterMark(path) as mark:
        mark.advance(state(2))
    content = path.read_bytes()
    for bit in range(0, 8 * 57, 5):
        flipped = bytearray(content)
        flipped[SLOT_BYTES + bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert read_mark(path) == state(1)


def test_without_a_valid_slot_there_is_no_mark(path: Path) -> None:
    path.write_bytes(b"\0" * 2 * SLOT_BYTES)
    assert read_mark(path) is None
    with pytest.raises(StoreDamaged, match="neither slot"):
        HighWaterMark(path)
    assert read_mark(path.with_name("nowhere")) is None


def test_a_mark_that_could_not_be_written_is_written_the_next_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(handle: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with HighWaterMark(path) as mark:
        with monkeypatch.context() as patched:
            patched.setattr("os.fdatasync", fails, raising=False)
            patched.setattr("os.fsync", fails)
            with pytest.raises(OSError, match="no space"):
                mark.advance(state(2))
            assert mark.state == state(1)
        mark.advance(state(2))
    assert read_mark(path) == state(2)
