"""Facts that plain sentences state are current at once, before any model has looked at the exchange."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_stage.stage import Stage

from local.memory.messages import MemoryClassified, MemoryIngested, UserFacts
from local.models import leases

Claims = list[tuple[str, str]]  # slots and values
SAID = "I am severely allergic to hazelnuts"


@pytest.fixture
def held_back(remembering: Any, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """The classifier gets its model only when this is set, as on a server that waits for a quiet minute."""
    gate, in_background = asyncio.Event(), leases.Leases.in_background

    async def wait(self: leases.Leases, *call: Any, **others: Any) -> Any:
        await gate.wait()
        return await in_background(self, *call, **others)

    monkeypatch.setattr(leases.Leases, "in_background", wait)
    return gate


async def lines(remembering: Any, user: str | None = None) -> list[str]:
    """The lines that a model is told, without their dates."""
    return [line.split(" (said")[0] for line in (await remembering.ask("facts", user=user)).lines]


async def test_what_was_just_said_is_told_before_the_classifier_has_its_model(
    remembering: Any, stage: Stage, held_back: asyncio.Event
) -> None:
    await remembering.serve(classify=True)
    await remembering.answered("q", SAID, user="ann")
    assert (await remembering.frontend.hears(UserFacts)).of_user == "ann"
    assert (await lines(remembering, "ann"), await lines(remembering, "bob")) == (["allergies: hazelnuts"], [])
    assert stage.model.asked == []


@pytest.mark.parametrize(
    ("said", "claims", "known"),
    [
        (SAID, [("allergies", "severely allergic to hazelnuts")], ["allergies: severely allergic to hazelnuts"]),
        (
            "I'm allergic to nuts and eggs, and I take my tea green.",
            [("allergies", "nuts and eggs"), ("how I take my tea", "green")],
            ["allergies: eggs", "allergies: nuts", "how I take my tea: green"],
        ),
    ],
)
async def test_a_model_confirms_and_extends_them_and_doubles_none(
    remembering: Any,
    stage: Stage,
    held_back: asyncio.Event,
    said: str,
    claims: Claims,
    known: list[str],
) -> None:
    made = [{"slot": slot, "value": value} for slot, value in claims]
    stage.model.will_say(remembering.classification(*made), to=said)
    await remembering.serve(classify=True)
    await remembering.answered("q", said)
    await remembering.frontend.hears(UserFacts)
    held_back.set()
    await remembering.frontend.hears(MemoryClassified)
    assert sorted(await lines(remembering)) == known


async def test_they_are_taken_back_at_once_and_do_not_come_back_with_the_classification(
    remembering: Any, stage: Stage, held_back: asyncio.Event
) -> None:
    back = "I am no longer allergic to hazelnuts."
    stage.model.will_say(remembering.classification({"slot": "allergies", "value": "hazelnuts"}), to=SAID)
    retracted = {"slot": "allergies", "value": "hazelnuts", "retracts": True}
    for _ in range(2):  # the older exchange may have to be looked at first
        stage.model.will_say(remembering.classification(retracted), to=back)
    await remembering.serve(classify=True)
    await remembering.answered("q1", SAID)
    await remembering.frontend.hears(UserFacts)
    await remembering.answered("q2", back)
    await remembering.frontend.hears(UserFacts, 2)
    assert (await lines(remembering), stage.model.asked) == ([], [])
    held_back.set()
    await remembering.frontend.hears(MemoryClassified, 2)
    assert await lines(remembering) == []


async def test_an_exchange_that_comes_twice_states_its_facts_once(remembering: Any, held_back: asyncio.Event) -> None:
    await remembering.serve(classify=True)
    for _ in range(2):
        await remembering.answered("q", SAID)
    await remembering.answered("q2", "What is the time?")
    await remembering.frontend.hears(MemoryIngested, 2)
    assert len((await remembering.ask("facts", history=True)).facts) == 1
