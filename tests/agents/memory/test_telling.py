"""What a user tells becomes a line that a model is told in every later conversation, in many phrasings."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agent_stage.stage import Stage

from local.memory.messages import OWNER, UserFacts
from local.memory.statements import SCHEMA
from local.stand_in.server import classify

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


@pytest.mark.parametrize("said", TOLD)
async def test_an_allergy_is_a_current_fact_however_it_is_told(remembering: Any, stage: Stage, said: str) -> None:
    stage.model.will_say(json.dumps(classify(said, SCHEMA)), to=said)
    await remembering.serve(classify=True)
    await remembering.answered("q", said, user="ann")
    (line, *_) = await lines_after(remembering, "ann")
    assert "llerg" in line and "hazelnut" in line and " (said 20" in line


@pytest.mark.parametrize(("said", "value"), CLAIMED)
async def test_what_a_model_finds_of_an_allergy_is_believed_in_many_phrasings(
    remembering: Any, stage: Stage, said: str, value: str
) -> None:
    stage.model.will_say(remembering.classification({"slot": "allergies", "value": value}), to=said)
    await remembering.serve(classify=True)
    await remembering.answered("q", said)
    (line,) = await lines_after(remembering)
    assert line.startswith(f"allergies: {value} (said 20")


async def test_a_further_allergy_does_not_replace_one_though_it_is_only_mentioned(
    remembering: Any, stage: Stage
) -> None:
    for number, said in enumerate(("I'm allergic to peanuts.", "Just so you know, I'm allergic to hazelnuts.")):
        stage.model.will_say(json.dumps(classify(said, SCHEMA)), to=said)
        if not number:
            await remembering.serve(classify=True)
        await remembering.answered(f"q{number}", said)
        await remembering.door.hears(UserFacts, number + 1)
    lines = (await remembering.ask("facts")).lines
    assert [line.split(" (")[0] for line in lines] == ["allergies: hazelnuts", "allergies: peanuts"]


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
