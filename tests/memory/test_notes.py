"""Notes of the assistant's: kept once, found, replaced, withdrawn, restored, and gone with what they were made in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from local.core.errors import NotOnRecord
from local.memory.record import NoteDraft
from local.memory.service import EngramService
from local.memory.store import EngramDraft, Ingested

BOILER = NoteDraft("q1:0:0", "q1", "s1", "ann", "The boiler of the cabin is a Viessmann", 100.0, category="cabin")


async def holding(service: EngramService, user: str = "ann") -> list[str]:
    return [note.answer for note in await service.notes(user)]


async def found(service: EngramService, question: str, user: str = "ann") -> list[str]:
    await service.settled()
    return [hit.engram.answer for hit in (await service.search(user, question)).hits]


async def test_a_note_is_kept_once_and_found_by_its_user_alone(service: EngramService) -> None:
    assert await service.keep_note(BOILER) is Ingested.NEW
    assert await service.keep_note(BOILER) is Ingested.KNOWN
    assert await found(service, "Which boiler is in the cabin?") == [BOILER.text]
    assert await found(service, "Which boiler is in the cabin?", "bob") == []
    (note,) = await service.notes("ann")
    assert (note.engram_id, note.note_of, note.query) == (BOILER.note_id, "q1", "cabin")
    assert await service.unclassified(9) == []


@pytest.mark.parametrize("named", [True, False])
async def test_a_note_takes_the_place_of_the_one_it_names_or_says_again(service: EngramService, named: bool) -> None:
    await service.keep_note(BOILER)
    text = "It is a Vaillant" if named else f"{BOILER.text.upper()}!"
    later = replace(BOILER, call_id="q2:0:0", query_id="q2", text=text, written_at=200.0)
    await service.keep_note(replace(later, replaces=BOILER.note_id[:8] if named else ""))
    assert await holding(service) == [text]
    assert BOILER.text not in await found(service, "boiler of the cabin Viessmann Vaillant")
    await service.delete("ann", later.note_id)
    assert await holding(service) == [BOILER.text]
    assert await found(service, "boiler of the cabin") == [BOILER.text]


async def test_notes_of_others_and_of_other_words_stand(service: EngramService) -> None:
    await service.keep_note(BOILER)
    await service.keep_note(replace(BOILER, call_id="q2:0:0", user_id="bob", replaces=BOILER.note_id, text="Mine"))
    await service.keep_note(replace(BOILER, call_id="q3:0:0", text="The boiler of the house is a Vaillant, too"))
    assert len(await holding(service)) == 2
    assert await holding(service, "bob") == ["Mine"]


async def test_what_was_withdrawn_is_not_found_and_is_restored_for_good(service: EngramService) -> None:
    await service.keep_note(BOILER)
    gone = replace(BOILER, call_id="q2:0:0", query_id="q2", text="", replaces=BOILER.note_id)
    await service.keep_note(gone)
    assert (await holding(service), await found(service, "boiler of the cabin")) == ([], [])
    assert [note.engram_id for note in await service.notes("ann", history=True)] == [BOILER.note_id]
    await service.restore_note("ann", BOILER.note_id)
    await service.keep_note(gone)  # as it is delivered again
    assert await found(service, "boiler of the cabin") == [BOILER.text]
    assert [change.what for change in await service.changes("ann", BOILER.note_id)] == ["withdrawn"]


async def test_only_notes_of_ones_own_are_restored(
    service: EngramService, exchange: Callable[..., EngramDraft]
) -> None:
    said = exchange("The cabin has no stove")
    await service.ingest(said)
    await service.keep_note(BOILER)
    with pytest.raises(NotOnRecord, match="is an exchange"):
        await service.restore_note("ann", said.engram_id)
    with pytest.raises(NotOnRecord):
        await service.restore_note("bob", BOILER.note_id)


@pytest.mark.parametrize("what", ["exchange", "session"])
async def test_a_note_goes_with_what_it_was_made_in_and_stays_away(
    service: EngramService, exchange: Callable[..., EngramDraft], holders: Any, what: str
) -> None:
    made = exchange("Look at the boiler", "I have noted it.", session_id="s1")
    await service.ingest(made)
    note = replace(BOILER, query_id=made.query_id, call_id=f"{made.query_id}:0:0", text="Quokka in Zanzibar")
    await service.keep_note(note)
    await (service.delete("ann", made.engram_id) if what == "exchange" else service.delete_session("s1"))
    await service.settled()
    assert holders("zanzibar", "quokka") == []
    assert await service.keep_note(note) is Ingested.DELETED
    assert {deletion.engram_id for deletion in await service.deletions()} == {made.engram_id, note.note_id}
