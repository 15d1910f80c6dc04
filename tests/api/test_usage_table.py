"""The table of usage, as threads of the API share it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from local.api.usage import Counted, Place, UsageTable


def test_the_table_is_closed_when_the_thread_that_uses_it_has_finished(tmp_path: Path) -> None:
    table, has_begun, may_go_on = UsageTable(tmp_path / "usage.db"), Event(), Event()

    def messages() -> Iterator[Counted]:
        has_begun.set()
        may_go_on.wait()
        yield Counted(Place(7, "seventh"))

    with ThreadPoolExecutor() as threads:
        counting = threads.submit(table.count, messages())
        has_begun.wait()
        closing = threads.submit(table.close)
        assert not closing.done()
        may_go_on.set()
        counting.result()
        closing.result()
    with pytest.raises(sqlite3.ProgrammingError):
        table.place()
    assert UsageTable(tmp_path / "usage.db").place() == Place(7, "seventh")
