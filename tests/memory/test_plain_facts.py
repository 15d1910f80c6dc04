"""Facts that plain sentences state are current at once, before any model has looked at the exchange."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_stage.stage import Stage

from local.memory.facts import is_of_health
from local.memory.messages import MemoryClassified, MemoryIngested, UserFacts
from local.memory.statements import stated
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


ALLERGIES_IN_OTHER_WORDS = """
    Penicillin gives me hives.|I can't eat peanuts, what should I cook?|Shellfish makes my throat swell up.
    I break out in a rash from latex.|I carry an EpiPen because of wasps.|I react badly to aspirin.|Eggs make me sick.
    I have to stay away from nuts.|Sorry, my doctor said I must not eat grapefruit.|Ich vertrage keine Milch.
    Von Erdbeeren bekomme ich Ausschlag.|Ich darf keine Nüsse essen, was kann ich backen?|Mir wird von Aspirin schlecht.
    Les arachides me donnent de l'urticaire.|Je ne supporte pas le lactose.|Je suis diabétique.|No puedo comer gluten.
    La penicilina me sienta mal.|Le noci mi fanno stare male.|Ho l'asma.|Não posso comer camarão.
    Sou alérgico a amendoim.|Ik kan niet tegen koemelk.|Я не переношу молоко.|У меня аллергия на орехи.
    Mam alergię na orzechy.|Jag är allergisk mot nötter.
    我吃虾会起疹子。|我对花生过敏。|エビを食べると蕁麻疹が出ます。|私は卵アレルギーです。|땅콩을 먹으면 두드러기가 나요.
"""


@pytest.mark.parametrize(
    "said", [each.strip() for each in ALLERGIES_IN_OTHER_WORDS.replace("\n", "|").split("|")[1:-1]]
)
def test_what_may_hurt_is_kept_word_for_word_without_a_model(said: str) -> None:
    (found,) = stated(said, ())
    assert not found.confirmed and said.startswith(found.value) and is_of_health(found.slot, found.value)


@pytest.mark.parametrize(
    "said",
    [
        "Am I allergic to nuts?",
        "If I have diabetes, can I eat honey?",
        "I need a recipe for an allergic friend",
        "Write a story in which I have asthma",
        "Explain diabetes to me",
        "Diabetes is a disease",
        "I disabled the plugin and added a health check",
        'He told me "I have asthma and diabetes" yesterday',
    ],
)
def test_a_question_a_task_or_somebody_elses_words_are_not_kept_as_said_about_health(said: str) -> None:
    assert stated(said, ()) == ()


async def test_an_exchange_that_comes_twice_states_its_facts_once(remembering: Any, held_back: asyncio.Event) -> None:
    await remembering.serve(classify=True)
    for _ in range(2):
        await remembering.answered("q", SAID)
    await remembering.answered("q2", "What is the time?")
    await remembering.frontend.hears(MemoryIngested, 2)
    assert len((await remembering.ask("facts", history=True)).facts) == 1
