"""The doctor on stores that were damaged."""

from __future__ import annotations

from pathlib import Path

from local.journal.schema import FILE_NAME, Entry
from local.journal.store import JournalStore
from local.run.doctor import DoctorFinding, FindingStatus, check_damage


async def test_a_damaged_journal_is_a_warning_that_says_where_it_lies_and_what_is_in_doubt(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    async with JournalStore(path) as store:
        await store.commit([Entry("query.received", "id", "api", "i", 1, "c", "s", 0.0, b"query.received\0{}\0{}")])
        assert isinstance(check_damage(tmp_path), DoctorFinding)
    path.write_bytes(b"This is no database. " * 500)
    async with JournalStore(path):
        pass
    [finding] = check_damage(tmp_path)
    assert finding.status is FindingStatus.WARN
    assert finding.text.startswith(f"{path}.damaged-1: the file does not begin as a database")
    assert finding.text.endswith("; in doubt: 1 to 1")
    (tmp_path / f"{FILE_NAME}.damaged-2").mkdir()
    assert check_damage(tmp_path)[1].text.endswith("a damaged store, without a report that could be read")
