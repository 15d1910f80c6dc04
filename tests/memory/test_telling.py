"""What a user tells becomes a line that a model is told in every later conversation, in many phrasings."""

from __future__ import annotations

import json
from typing import Any

from agent_stage.stage import Stage

from local.memory.classifier import stated_at_once
from local.memory.messages import OWNER, UserFacts
from local.memory.service import EngramService
from local.memory.statements import SCHEMA, Claim, ClassifierReply, decide, read, stated_plainly
from local.memory.store import own_words
from local.stand_in.server import classify

ALLERGIES = "allergies"
# The stand-in claims what is told in these; a model claims more, see the next list.
TOLD = (
    "I am severely allergic to hazelnuts",
    "I'm allergic to hazelnuts.",
    "Just so you know, I'm severely allergic to hazelnuts.",
    "Please remember that I am allergic to hazelnuts",
    "I have a severe hazelnut allergy.",
    "I've got a hazelnut allergy, and it is a bad one.",
    "I'm allergic to hazelnuts. What can I order at an Italian place?",
    "I'm deathly allergic to hazelnuts, keep that in mind.",
    "By the way, I am very allergic to hazelnuts!",
    "Hi! My allergies are hazelnuts and pollen.",
)
CLAIMED = (
    ("Hazelnuts could kill me, I'm allergic to them.", "hazelnuts"),
    ("I can't eat hazelnuts, I'm allergic.", "hazelnuts"),
    ("My allergies: hazelnuts (severe).", "hazelnuts (severe)"),
    ("I carry an EpiPen because I'm highly allergic to hazelnuts.", "hazelnuts"),
    ("By the way, hazelnuts give me anaphylactic shock.", "hazelnuts"),
    ("I must never eat hazelnuts because of an allergy.", "hazelnuts"),
    ("Ich bin stark allergisch gegen Haselnüsse.", "Haselnüsse"),
    ("Je suis allergique aux noisettes.", "noisettes"),
    ("Soy alérgica a las avellanas.", "avellanas"),
    ("我对榛子过敏。", "榛子"),
)


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
    await remembering.door.hears(UserFacts, 2)
    assert [line.split(" (")[0] for line in (await remembering.ask("facts")).lines] == ["allergies: hazelnuts"]
    for engram in (await remembering.ask("list")).engrams:
        await remembering.ask("delete", engram_id=engram.engram_id)
    await remembering.door.hears(UserFacts, 3)
    assert (await remembering.ask("facts")).lines == ()


async def lines_after(remembering: Any, user: str | None = None) -> tuple[str, ...]:
    """The lines once the memory has announced that there are other ones; nobody else is told any."""
    announced = await remembering.door.hears(UserFacts)
    assert announced.of_user == (user or OWNER)
    assert (await remembering.ask("facts", user="bob")).lines == ()
    lines: tuple[str, ...] = (await remembering.ask("facts", user=user)).lines
    return lines


def test_an_allergy_is_believed_however_it_is_told() -> None:
    claimed = [(said, read(json.dumps(classify(said, SCHEMA))).facts) for said in TOLD]
    claimed += [(said, [Claim(slot="allergies", value=value)]) for said, value in CLAIMED]
    for said, facts in claimed:
        found = decide(ClassifierReply(intent="statement", facts=facts), own_words(said), ())[0].findings
        assert any("llerg" in each.slot for each in found), said


def test_plain_sentences_are_read_without_a_model() -> None:
    cases: dict[str, list[tuple[str, str]]] = {
        "I am severely allergic to hazelnuts.": [("allergies", "hazelnuts")],
        "I'm allergic to nuts, eggs and milk": [(ALLERGIES, "nuts"), (ALLERGIES, "eggs"), (ALLERGIES, "milk")],
        "I'm allergic to nuts and I love cake": [("allergies", "nuts")],
        "I live in Porto and work as a nurse.": [("where I live", "Porto")],
        "Hello, my name is Ana Sousa!": [("my name", "Ana Sousa")],
        "I am a vegan.": [("my diet", "vegan")],
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
