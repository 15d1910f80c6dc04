"""What is put before a model unasked: exchanges that clearly fit, and nothing rather than something doubtful."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from local.memory import service as service_module
from local.memory.facts import Classified, FactFinding, FactOperation
from local.memory.record import NoteDraft
from local.memory.service import EngramService
from local.memory.store import EngramDraft, Origin

Make = Callable[..., EngramDraft]
Opened = Callable[..., Any]
LAMP = "We choose the green enamel lamp for the hallway ceiling"
ASKED = "Which enamel lamp did we choose for the hallway ceiling?"
IN_OTHER_WORDS = "Which enamel lamp did we pick out for the hallway ceiling, and why?"


async def stored(service: EngramService, *exchanges: EngramDraft) -> None:
    for each in exchanges:
        await service.ingest(each)
    await service.settled()


async def recalled(service: EngramService, question: str = ASKED, user_id: str = "ann", **options: Any) -> list[str]:
    return [hit.engram.query for hit in (await service.recall(user_id, question, **options)).hits]


@pytest.fixture
async def told(service: EngramService, exchange: Make) -> EngramDraft:
    """The lamp, among other exchanges."""
    lamp = exchange(LAMP, "Noted: green enamel.", origin=Origin.WEB, tainted=True)
    others = (exchange(f"Tell me about {word} number {n}", f"It is {word}.") for n, word in enumerate(WORDS))
    await stored(service, lamp, *others)
    return lamp


WORDS = ("river", "castle", "banana", "violin", "harbour", "kettle", "sparrow", "ladder", "pepper", "mirror", "tunnel")


async def test_what_was_only_asked_before_is_not_recalled_in_place_of_what_was_told(
    service: EngramService, exchange: Make, told: EngramDraft
) -> None:
    for asked, answer in (
        (ASKED, "I do not know that."),
        (f"{ASKED} ", "Let us see: which lamps do you like?"),
        (IN_OTHER_WORDS, "I'm sorry, but I don't have any information about your lamp."),
        ("Welche enamel lamp did we choose for the hallway ceiling?", "Das weiß ich leider nicht."),
    ):
        await stored(service, exchange(asked, answer))
    assert await recalled(service) == [LAMP]


async def test_one_word_in_common_is_enough_only_where_the_user_speaks_of_themselves(
    service: EngramService, exchange: Make
) -> None:
    others = (exchange(f"Tell me about {word} number {n}", f"It is {word}.") for n, word in enumerate(WORDS))
    await stored(service, exchange("My dentist is Hartmann"), *others)
    assert await recalled(service, "Who is my dentist?") == ["My dentist is Hartmann"]
    assert await recalled(service, "What does a dentist do?") == []


async def test_a_question_that_was_answered_is_recalled_for_another_one(service: EngramService, exchange: Make) -> None:
    asked = "Which enamel lamp would you choose for a hallway ceiling in Rome?"
    others = (exchange(f"Tell me about {word} number {n}", f"It is {word}.") for n, word in enumerate(WORDS))
    await stored(service, exchange(asked, "A green one from Murano."), *others)
    assert await recalled(service) == [asked]


async def test_what_no_longer_holds_is_not_recalled_and_its_correction_is(
    service: EngramService, exchange: Make, told: EngramDraft
) -> None:
    better = exchange(LAMP.replace("green", "white"), asked_at=told.asked_at + 100)
    await stored(service, better)
    for draft, value in ((told, "green"), (better, "white")):
        finding = FactFinding(FactOperation.SUPERSEDE, "lamp for the hallway", value)
        await service.classify(draft.engram_id, Classified(True, "statement", (), (finding,)))
    assert await recalled(service) == [better.query]


async def test_at_most_three_are_recalled_and_no_note(service: EngramService, exchange: Make) -> None:
    rooms = ("first", "second", "third", "fourth", "fifth")
    same = [exchange(f"{LAMP} {room} {n * 7}", f"Noted {room} {n * 11}") for n, room in enumerate(rooms)]
    await service.keep_note(NoteDraft("c", "q", "s", "ann", f"{LAMP}. {ASKED}", 1_700_000_000.0))
    await stored(service, *same)
    found = await recalled(service)
    assert len(found) == 3 and set(found) <= {each.query for each in same}
    assert len(await recalled(service, limit=1)) == 1


async def test_nothing_is_recalled_where_the_meaning_takes_too_long_and_the_next_recall_has_it(
    service: EngramService, told: EngramDraft, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, embed, asked = asyncio.Event(), embedder.embed_queries, []

    async def slow(texts: Any) -> Any:
        asked.append(texts)
        await gate.wait()
        return await embed(texts)

    monkeypatch.setattr(embedder, "embed_queries", slow)
    monkeypatch.setattr(service_module, "RECALL_SECONDS", 0.01)
    found = await service.recall("ann", IN_OTHER_WORDS)
    assert found.hits == () and "did not embed the question within 0.01 s" in found.degraded[0]
    assert await recalled(service, "Which lamp did we choose?") == []  # too few words to be sure by them alone
    gate.set()
    monkeypatch.setattr(service_module, "RECALL_SECONDS", 5)
    (hit,) = (await service.recall("ann", IN_OTHER_WORDS)).hits
    assert hit.cosine is not None


async def test_a_question_is_embedded_once_and_not_at_all_where_its_words_decide(
    service: EngramService, told: EngramDraft, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed, asked = embedder.embed_queries, []

    async def noted(texts: Any) -> Any:
        asked.extend(texts)
        return await embed(texts)

    monkeypatch.setattr(embedder, "embed_queries", noted)
    for question in ("Suggest a cake for my birthday", "What is 17 * 23?", ""):
        assert await recalled(service, question) == []
    assert await recalled(service, not_session=told.session_id) == []
    assert await recalled(service, seconds=0) == [LAMP]  # which has all of them
    assert await recalled(service, IN_OTHER_WORDS, seconds=0) == []
    assert asked == []
    assert await recalled(service, IN_OTHER_WORDS) == await recalled(service, IN_OTHER_WORDS) == [LAMP]
    assert (await service.search("ann", IN_OTHER_WORDS)).hits
    assert asked == [IN_OTHER_WORDS]


async def test_an_exchange_that_clearly_fits_is_recalled_and_nothing_doubtful_and_none_of_others(
    service: EngramService, told: EngramDraft
) -> None:
    (hit,) = (await service.recall("ann", ASKED)).hits
    engram = hit.engram
    assert (engram.engram_id, engram.query, engram.answer) == (told.engram_id, LAMP, "Noted: green enamel.")
    assert (engram.asked_at, engram.origin, engram.tainted) == (told.asked_at, Origin.WEB, True)
    for doubtful in ("Suggest a cake for my birthday", "Which lamp is best for reading in bed?", "lamp", "A ceiling?"):
        assert await recalled(service, doubtful) == []
    assert await recalled(service, user_id="bob") == []
    await service.delete("ann", told.engram_id)
    assert await recalled(service) == []
