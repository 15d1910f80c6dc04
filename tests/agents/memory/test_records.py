"""What the memory says travels within a frame: the first that fit, and never nothing."""

from __future__ import annotations

import pytest

from local.agents.remembering.records import PAGE_BYTES, SHORT, engram_record, page
from local.protocol.memory_messages import FactRecord
from local.services.engrams.engram import Engram, Origin


def fact(value: str) -> FactRecord:
    return FactRecord(slot="s", value=value, stated_at=1.0, engram_id="e")


def test_a_page_ends_before_it_is_too_large_but_never_without_anything() -> None:
    facts = [fact("ö" * 5_000) for _ in range(20)]
    assert 2 < len(page(facts)) < 10
    assert sum(len(each.model_dump_json().encode()) for each in page(facts)) <= PAGE_BYTES
    assert page([fact("x" * 2 * PAGE_BYTES)]) != ()
    assert page([]) == ()


@pytest.mark.parametrize("text", ["ö" * 5_000, "😀" * 3_000, "\ud800" * 5_000])
def test_a_text_is_cut_between_characters(text: str) -> None:
    record = engram_record(Engram("e", "q", "A", "s", "u", "short", text, Origin.USER, 1.0), SHORT)
    assert record.query == "short"
    assert record.answer.endswith(" … (cut)")
    assert len(record.answer.encode()) <= SHORT + 20
