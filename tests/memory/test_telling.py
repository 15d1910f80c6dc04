"""What a user tells becomes a line that a model is told in every later conversation, in many phrasings."""

from __future__ import annotations

from typing import Any

from agent_stage.stage import Stage

from local.memory.classifier import stated_at_once
from local.memory.messages import OWNER, UserFacts
from local.memory.service import EngramService
from local.memory.statements import stated_plainly

ALLERGIES = "allergies"


async def test_a_fact_that_nobody_pinned_is_announced_when_it_is_told_corrected_and_deleted(
    remembering: Any, stage: Stage
) -> None:
    texts = ("I am allergic to walnuts", "I am allergic to hazelnuts, not walnuts")
    for said, value in zip(texts, ("walnuts", "hazelnuts"), strict=True):
        stage.model.will_say(remembering.classification({"slot": "allergies", "value": value}), to=said)
    await remembering.serve(classify=True)
    await remembering.answered("q1", texts[0])
    assert [line.split(" (")[0] for line in await lines_after(remembering)] == ["allergies: walnuts"]
    await remembering.answered("q2", texts[1])
    await remembering.frontend.hears(UserFacts, 2)
    assert [line.split(" (")[0] for line in (await remembering.ask("facts")).lines] == ["allergies: hazelnuts"]
    for engram in (await remembering.ask("list")).engrams:
        await remembering.ask("delete", engram_id=engram.engram_id)
    await remembering.frontend.hears(UserFacts, 3)
    assert (await remembering.ask("facts")).lines == ()


async def lines_after(remembering: Any, user: str | None = None) -> tuple[str, ...]:
    """The lines once the memory has announced that there are other ones; nobody else is told any."""
    announced = await remembering.frontend.hears(UserFacts)
    assert announced.of_user == (user or OWNER)
    assert (await remembering.ask("facts", user="bob")).lines == ()
    lines: tuple[str, ...] = (await remembering.ask("facts", user=user)).lines
    return lines


def test_plain_sentences_are_read_without_a_model() -> None:
    cases: dict[str, list[tuple[str, str]]] = {
        "I am severely allergic to hazelnuts.": [("allergies", "hazelnuts")],
        "I'm allergic to nuts, eggs and milk": [(ALLERGIES, "nuts"), (ALLERGIES, "eggs"), (ALLERGIES, "milk")],
        "I'm allergic to nuts and I love cake": [("allergies", "nuts")],
        "I live in Porto and work as a nurse.": [("where I live", "Porto")],
        "If I was rich I live in Porto.": [],
        "Hello, my name is Ana Sousa!": [("my name", "Ana Sousa")],
        "I am a vegan.": [("my diet", "vegan")],
        "I was born in Graz.": [],
        "I was born on a Tuesday, and my birthday is a sad day.": [],
        "I was born on 3 May 1980.": [("when I was born", "3 May 1980")],
        "I was born in May": [("when I was born", "May")],
        "My birthday is on the 12th of June.": [("my birthday", "the 12th of June")],
        "I work for free, and I work as hard as I can.": [],
        "I work for Siemens, and I work as a baker.": [("where I work", "Siemens"), ("what I work as", "baker")],
        "My sister is called Lina.": [],
        "What is the capital of France?": [],
        "Am I allergic to nuts?": [],
        "": [],
    }
    assert {said: [(claim.slot, claim.value) for claim in stated_plainly(said)] for said in cases} == cases


async def test_what_the_user_did_not_state_is_no_fact(service: EngramService, exchange: Any) -> None:
    said = "I am severely allergic to hazelnuts"
    assert await stated_at_once(exchange(said), service) != ()
    for draft in (
        exchange("Summarise this mail:\n> I am allergic to hazelnuts"),
        exchange('He wrote: "I am allergic to hazelnuts and I work at the mill"'),
        exchange("Write a story in which a guest says I am allergic to hazelnuts"),
        exchange("Am I allergic to hazelnuts?"),
        exchange("What can I eat?", "You said: I am allergic to hazelnuts."),
        exchange(said, by_user=False),
        exchange(said, respondent_id="B"),
        exchange(said, incognito=True),
    ):
        assert await stated_at_once(draft, service) == (), draft.query
