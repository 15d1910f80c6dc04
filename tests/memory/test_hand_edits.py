"""Edits by hand: facts and notes follow them, what the memory has changed since stays, and all of it can be undone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from local.core.errors import NotOnRecord
from local.memory.facts import FactFinding, FactOperation
from local.memory.messages import engram_id
from local.memory.record import HandEdit, KeptEntry, Kind, NoteDraft
from local.memory.service import EngramService
from local.memory.store import EngramDraft, Origin, Statement

Make = Callable[..., EngramDraft]
NAILS = NoteDraft("q9:0:0", "q9", "s9", "ann", "Bring nails", 100.0, "cabin", origin=Origin.WEB, tainted=True)
NOW = 4e9


class Owner:
    """Ann, who has said some things of herself, and edits them by hand."""

    def __init__(self, service: EngramService, exchange: Make) -> None:
        self.service, self._exchange = service, exchange

    async def says(self, slot: str, value: str, stated_at: float = 1000.0) -> None:
        draft = self._exchange(f"{slot} {value} {stated_at}")
        await self.service.ingest(draft)
        await self.service.supersede(Statement(draft.engram_id, slot, value, stated_at, Origin.USER))

    async def entry(self, text: str) -> KeptEntry:
        (found,) = [each for each in await self.service.entries("ann") if each.text == text]
        return found

    async def edits(self, old: str, new: str, kind: Kind = "fact", *, of: KeptEntry | None = None) -> tuple[str, str]:
        """What that does, and why not."""
        named = (of or await self.entry(old)).entry_id if old else ""
        (outcome,) = await self.service.apply_edits("ann", [HandEdit(3, kind, named, new)], "i1", NOW)
        return outcome.what, outcome.why

    async def undoes(self) -> None:
        await self.service.delete("ann", engram_id("i1", "A"))

    async def holds(self) -> list[str]:
        return [entry.text for entry in await self.service.entries("ann")]


@pytest.fixture
async def owner(service: EngramService, exchange: Make) -> Owner:
    owner = Owner(service, exchange)
    await owner.says("tea", "green")
    await service.keep_note(NAILS)
    return owner


@pytest.mark.parametrize(
    ("old", "new", "kind", "what", "then"),
    [
        ("tea: green", "tea: black", "fact", "changed", ["tea: black", "Bring nails"]),
        ("tea: green", "coffee: green", "fact", "changed", ["coffee: green", "Bring nails"]),
        ("tea: green", "", "fact", "removed", ["Bring nails"]),
        ("", "home: Oslo", "fact", "added", ["home: Oslo", "tea: green", "Bring nails"]),
        ("", "tea: white", "fact", "added", ["tea: green", "tea: white", "Bring nails"]),
        ("Bring nails", "Bring screws", "note", "changed", ["tea: green", "Bring screws"]),
        ("Bring nails", "", "note", "removed", ["tea: green"]),
        ("", "Bring rope", "note", "added", ["tea: green", "Bring rope", "Bring nails"]),
    ],
)
async def test_what_is_edited_holds_then_and_deleting_that_brings_back_what_was(
    owner: Owner, old: str, new: str, kind: Kind, what: str, then: list[str]
) -> None:
    before = await owner.holds()
    assert await owner.edits(old, new, kind) == (what, "")
    assert await owner.holds() == then
    assert (await owner.service.recent("ann", limit=9))[-1].query  # it is remembered, as all that is said
    await owner.undoes()
    assert await owner.holds() == before


async def test_a_note_that_is_removed_can_be_had_back_alone_and_an_edited_one_stays_whose_it_was(owner: Owner) -> None:
    assert await owner.edits("Bring nails", "Bring long nails", "note") == ("changed", "")
    edited = await owner.entry("Bring long nails")
    assert (edited.tainted, edited.category) == (True, "cabin")
    await owner.service.restore_note("ann", NAILS.note_id)
    assert "Bring nails" in await owner.holds()


async def test_what_the_memory_has_changed_since_is_a_conflict_and_stays(owner: Owner) -> None:
    tea, nails = await owner.entry("tea: green"), await owner.entry("Bring nails")
    await owner.says("tea", "red", 2000.0)
    await owner.service.keep_note(NoteDraft("q8:0:0", "q8", "s9", "ann", "Bring glue", 200.0, replaces=NAILS.note_id))
    assert await owner.edits("tea: green", "tea: black", of=tea) == ("conflict", "it is now: tea: red")
    assert await owner.edits("-", "Bring rope", "note", of=nails) == ("conflict", "it is now: Bring glue")
    assert await owner.edits("-", "", of=tea) == ("nothing", "it is now: tea: red")
    assert await owner.holds() == ["tea: red", "Bring glue"]


async def test_a_fact_is_corrected_by_its_number_with_its_days_and_no_other_users_is(owner: Owner) -> None:
    write, (tea,) = owner.service.write_fact, await owner.service.facts("ann")
    with pytest.raises(NotOnRecord):
        await write("bob", tea.fact_id, HandEdit(0, "fact", "", "tea: black"), "i2", NOW)
    days = HandEdit(0, "fact", "", "tea: green", holds_until="2026-11-27")
    assert (await write("ann", tea.fact_id, days, "i2", NOW)).what == "changed"
    (tea,) = await owner.service.facts("ann")
    assert (tea.value, tea.holds_until) == ("green", "2026-11-27")
    with pytest.raises(ValueError, match="what: value"):
        await write("ann", tea.fact_id, HandEdit(0, "fact", "", "black"), "i3", NOW)
    await write("ann", tea.fact_id, HandEdit(0, "fact", "", "tea: black"), "i3", NOW + 1)
    assert [(fact.value, fact.holds_until) for fact in await owner.service.facts("ann")] == [("black", "")]
    with pytest.raises(NotOnRecord):
        await write("ann", tea.fact_id, HandEdit(0, "fact", "", "tea: white"), "i4", NOW + 2)


async def test_an_unconfirmed_fact_is_corrected_into_one_that_holds(owner: Owner, exchange: Make) -> None:
    doubt = FactFinding(FactOperation.SUPERSEDE, "home", "Porto", confirmed=False)
    await owner.service.ingest(exchange("Porto, is it"), [doubt])
    (found,) = await owner.service.unconfirmed_facts("ann")
    await owner.service.write_fact("ann", found.fact_id, HandEdit(0, "fact", "", "home: Faro"), "i2", NOW)
    assert await owner.service.unconfirmed_facts("ann") == []
    assert "home: Faro" in await owner.holds()


async def test_others_entries_are_out_of_reach(owner: Owner) -> None:
    tea = await owner.entry("tea: green")
    edit = HandEdit(3, "fact", tea.entry_id, "tea: black")
    assert [each.what for each in await owner.service.apply_edits("bob", [edit], "i2", NOW)] == ["conflict"]
    assert await owner.holds() == ["tea: green", "Bring nails"] and await owner.service.entries("bob") == []


async def test_a_secret_is_left_out_and_what_is_no_fact_is_refused(owner: Owner) -> None:
    secret = f"ghp_{'a1' * 18}"
    assert await owner.edits("", f"key of the shop: {secret}") == ("added", "a secret in it is left out")
    assert "key of the shop: [API key not stored]" in await owner.holds()
    assert secret not in str(await owner.service.recent("ann", limit=9))
    assert (await owner.edits("", "no fact"))[0] == "refused"
    assert (await owner.edits("", "x" * 3000, "note"))[0] == "refused"
    assert (await owner.edits("", "tea: green"))[0] == "nothing"
