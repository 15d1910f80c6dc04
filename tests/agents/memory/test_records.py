"""What the memory says travels within a frame: the first that fit, and never nothing."""

from __future__ import annotations

import pytest

from local.bus.envelope import FIELD_LIMIT
from local.memory.messages import FactRecord, MemoryResult
from local.memory.records import PAGE_BYTES, SHORT, WHOLE, engram_record, page
from local.memory.store import Engram, Origin


def engram(query: str, answer: str) -> Engram:
    return Engram("e", "q", "A", "s", "u", query, answer, Origin.USER, 1.0)


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
    record = engram_record(engram("short", text), SHORT)
    assert (record.query, record.cut) == ("short", True)
    assert record.answer.endswith(" … (cut)")
    assert SHORT - 20 < len(f"{record.query}{record.answer}".encode(errors="replace")) <= SHORT


@pytest.mark.parametrize("query", ["short", "x" * 90_000])
@pytest.mark.parametrize("answer", ["short", "ö\n" * 30_000, "\x01" * 90_000])
def test_an_engram_alone_is_whole_or_says_that_it_is_cut_and_travels_within_a_frame(query: str, answer: str) -> None:
    record = engram_record(engram(query, answer))
    assert record.cut == ((record.query, record.answer) != (query, answer)) == (len(query + answer) > 10)
    assert len(MemoryResult(verb="get", engrams=(record,)).encode()) < FIELD_LIMIT
    for text, whole in ((record.query, query), (record.answer, answer)):
        assert text == whole or text.endswith(" … (cut)")
    if record.cut:
        assert len(record.model_dump_json(include={"query", "answer"})) > 0.7 * WHOLE


def test_a_text_takes_the_room_that_the_other_one_leaves() -> None:
    record = engram_record(engram("x" * 50_000, "y" * 9_000))
    assert not record.cut
