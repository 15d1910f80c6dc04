"""Claims of a model that has failed its self-test stay unconfirmed; what plain sentences state counts all the same."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from agent_stage.stage import Stage

from local.memory.agent import CONTEXT_TOKENS
from local.memory.classifier_test import SENTENCES, ClassifierFitness, ClassifierTestResult
from local.memory.messages import EditRecord, MemoryClassified, UserFacts
from local.models.leases import Leases

NOTHING = json.dumps({"intent": "other", "entities": [], "facts": []})


def claims(**facts: str) -> str:
    made = [{"slot": slot, "value": value, "certain": True, "retracts": False} for slot, value in facts.items()]
    return json.dumps({"intent": "statement", "entities": [], "facts": made})


async def test_claims_of_a_model_that_fails_are_stored_and_are_no_current_facts(
    remembering: Any, stage: Stage, tmp_path: Path
) -> None:
    await take_the_test_before(stage, tmp_path, None)
    said = "I am severely allergic to hazelnuts and walnuts, and I take my tea green."
    stage.model.will_say(claims(**{"how I take my tea": "green", "allergies": "hazelnuts and walnuts"}), to=said)
    served = await serve(remembering, stage, tmp_path)
    await remembering.answered("q", said)
    told = await remembering.frontend.hears(MemoryClassified)
    stored = {"hazelnuts": True, "walnuts": True, "green": False}
    assert {fact.value: fact.confirmed for fact in told.facts} == stored
    assert {fact.value for fact in (await remembering.ask("facts")).facts} == {"hazelnuts", "walnuts"}
    history = (await remembering.ask("facts", history=True)).facts
    assert {fact.value: fact.confirmed for fact in history} == stored
    assert len(stage.model.asked) == 6  # five sentences are enough to fail
    assert served.participant.details()["classifier_self_test"].startswith("failed: 0 of 5 right")


@pytest.mark.parametrize("passes", [True, False])
async def test_no_exchange_waits_for_the_test_and_what_was_confirmed_counts_once_it_is_passed(
    remembering: Any, stage: Stage, tmp_path: Path, passes: bool
) -> None:
    may_be_tested, is_tested = asyncio.Event(), asyncio.Event()

    class Late(ClassifierFitness):
        async def checked(self) -> ClassifierTestResult:
            await may_be_tested.wait()
            try:
                return await super().checked()
            finally:
                is_tested.set()

    take_the_test(stage, says_yes_to_all=not passes)
    said = "I take my coffee black. My sister lives in Lisbon."
    stage.model.will_say(claims(**{"how I take my coffee": "black", "home": "Lisbon"}), to=said)
    stage.model.will_say('{"answers": ["yes", "no"]}', to=said)
    fitness = Late(stage.model, "gemma", CONTEXT_TOKENS, Leases(), tmp_path)
    await remembering.serve(classify=True, fitness=fitness)
    await remembering.answered("q", said)
    told = (await remembering.frontend.hears(MemoryClassified)).facts
    assert {fact.value: fact.confirmed for fact in told} == {"black": False, "Lisbon": False}
    before = len(remembering.frontend.of(UserFacts))
    may_be_tested.set()
    await asyncio.wait_for(is_tested.wait(), 90)
    if passes:
        await remembering.frontend.until(lambda: len(remembering.frontend.of(UserFacts)) > before)
    history = (await remembering.ask("facts", history=True)).facts
    assert {fact.value: fact.confirmed for fact in history} == {"black": passes, "Lisbon": False}


async def test_claims_of_a_model_that_passes_are_facts_once_it_confirms_them(
    remembering: Any, stage: Stage, tmp_path: Path
) -> None:
    await take_the_test_before(stage, tmp_path, False)
    said = "I take my coffee black. My sister lives in Lisbon."
    stage.model.will_say(claims(**{"how I take my coffee": "black", "home": "Lisbon"}), to=said)
    stage.model.will_say('{"answers": ["yes", "no"]}', to=said)
    served = await serve(remembering, stage, tmp_path)
    await remembering.answered("q", said)
    told = (await remembering.frontend.hears(MemoryClassified)).facts
    assert {fact.value: fact.confirmed for fact in told} == {"black": True, "Lisbon": False}
    assert served.participant.details()["classifier_self_test"].startswith("passed: ")


async def test_a_model_that_confirms_everything_fails(stage: Stage, tmp_path: Path) -> None:
    take_the_test(stage, says_yes_to_all=True)
    assert not (await ClassifierFitness(stage.model, "gemma", CONTEXT_TOKENS, Leases(), tmp_path).checked()).is_fit


async def test_an_unconfirmed_fact_marks_what_it_may_have_changed_until_it_is_confirmed_or_dropped(
    remembering: Any, stage: Stage, tmp_path: Path
) -> None:
    await take_the_test_before(stage, tmp_path, None)
    moved, rises = "In Porto fühle ich mich zu Hause.", "Mein Ramipril: jetzt 10 mg."
    stage.model.will_say(claims(**{"where I live": "Porto"}), to=moved)
    stage.model.will_say(NOTHING, to="I live in Lyon.")
    stage.model.will_say(NOTHING, to=rises)
    await serve(remembering, stage, tmp_path)
    edit = EditRecord(line=0, kind="fact", text="medication: Ramipril 5 mg")
    await remembering.ask("edit", edits=(edit,), applies=True, user="ann")
    for number, said in enumerate(("I live in Lyon.", moved, rises), 1):
        await remembering.answered(f"q{number}", said, user="ann")
        await remembering.frontend.hears(MemoryClassified, number)
    found = await remembering.ask("facts", user="ann")
    assert {fact.value: fact.questioned for fact in found.facts} == {"Lyon": True, "Ramipril 5 mg": True}
    assert all("may have changed since" in line or rises in line for line in found.lines)
    dose, home = found.unconfirmed
    assert (dose.value, home.value) == (rises, "Porto")
    stranger = await remembering.ask("confirm_fact", fact_id=home.fact_id, user="bob")
    assert stranger.error is not None and stranger.error.kind == "not_found"
    await remembering.ask("confirm_fact", fact_id=home.fact_id, user="ann")
    await remembering.ask("drop_fact", fact_id=dose.fact_id, user="ann")
    found = await remembering.ask("facts", user="ann")
    assert {fact.value: fact.questioned for fact in found.facts} == {"Porto": False, "Ramipril 5 mg": False}
    assert found.unconfirmed == ()


async def test_what_is_said_about_health_is_told_as_unconfirmed_until_the_user_decides(
    remembering: Any, stage: Stage, tmp_path: Path
) -> None:
    await take_the_test_before(stage, tmp_path, None)
    said = "Penicillin gives me hives. My tea is green."
    stage.model.will_say(claims(**{"allergies": "Penicillin", "tea": "green"}), to=said)
    await serve(remembering, stage, tmp_path)
    await remembering.answered("q", said)
    await remembering.frontend.hears(UserFacts)  # before the model has looked at it
    await remembering.frontend.hears(MemoryClassified)
    found = await remembering.ask("facts")
    assert [line.split(", said")[0] for line in found.lines] == [
        "said about health: Penicillin gives me hives. (not confirmed"
    ]
    waiting = {fact.value: fact.fact_id for fact in found.unconfirmed}
    assert set(waiting) == {"Penicillin gives me hives.", "Penicillin", "green"}
    for number in (2, 3):  # said twice, asked once
        stage.model.will_say(NOTHING, to="Eggs make me sick.")
        await remembering.answered(f"q{number}", "Eggs make me sick.")
        await remembering.frontend.hears(MemoryClassified, number)
    eggs, *others = (await remembering.ask("facts")).unconfirmed
    assert eggs.value == "Eggs make me sick." and {fact.value for fact in others} == set(waiting)
    await remembering.ask("drop_fact", fact_id=eggs.fact_id)
    await remembering.ask("confirm_fact", fact_id=waiting["Penicillin"])
    found = await remembering.ask("facts")
    assert [line.split(" (said")[0] for line in found.lines] == ["allergies: Penicillin"]
    assert {fact.value for fact in found.unconfirmed} == {"green"}


async def test_what_a_model_confirms_takes_the_place_of_the_sentence_that_says_it_and_of_no_other(
    remembering: Any, stage: Stage, tmp_path: Path
) -> None:
    await take_the_test_before(stage, tmp_path, False)
    said = "Ich wohne in Graz. Ich vertrage keine Milch. Mir ist Laktose egal, aber Ingwer macht mir Ausschlag."
    stage.model.will_say(claims(**{"where I live": "Graz", "intolerances": "Milch"}), to=said)
    stage.model.will_say('{"answers": ["yes", "yes"]}', to=said)
    await serve(remembering, stage, tmp_path)
    await remembering.answered("q", said)
    await remembering.frontend.hears(MemoryClassified)
    found = await remembering.ask("facts")
    assert {fact.value for fact in found.facts} == {"Graz", "Milch"}
    assert [fact.value.split()[-1] for fact in found.unconfirmed] == ["Ausschlag."]


async def test_what_is_so_until_a_day_is_told_with_it_and_not_any_more_when_it_is_over(
    remembering: Any, stage: Stage
) -> None:
    days = {"flight": ("2000-01-07", "2000-01-07"), "gym": ("", "2999-12-31"), "allergies": ("", "2000-01-01"),
            "trip": ("2999-01-01", "")}  # fmt: skip
    values = {"flight": "Lisbon", "gym": "Titan", "allergies": "pollen", "trip": "Oslo"}
    said = "My flight to Lisbon was on Friday, my gym is Titan, my allergies come from pollen, my trip is to Oslo."
    made = [
        {"slot": slot, "value": values[slot], "since": since, "until": until} for slot, (since, until) in days.items()
    ]
    stage.model.will_say(remembering.classification(*made), to=said)
    await remembering.serve(classify=True)
    await remembering.answered("q", said)
    await remembering.frontend.hears(MemoryClassified)
    found = await remembering.ask("facts")
    assert {fact.slot: (fact.holds_from, fact.holds_until) for fact in found.facts} == days
    assert sorted(line.partition(", said")[0] for line in found.lines) == [
        "allergies: pollen (until 2000-01-01, so no longer",
        "gym: Titan (until 2999-12-31",
        "trip: Oslo (from 2999-01-01, so not yet",
    ]
    assert re.search(r"The message is of \w+day, \d{4}-\d\d-\d\d\.", stage.model.asked[0].messages[0]["content"])


async def test_a_test_is_run_once_and_unreadable_results_are_no_results(stage: Stage, tmp_path: Path) -> None:
    for sentence in SENTENCES:
        stage.model.will_say("Sure!", to=sentence.text)

    def fitness() -> ClassifierFitness:
        return ClassifierFitness(stage.model, "gemma", CONTEXT_TOKENS, Leases(), tmp_path)

    assert not (await fitness().checked()).is_fit
    asked = len(stage.model.asked)
    assert not (await fitness().checked()).is_fit
    assert len(stage.model.asked) == asked
    (path,) = await asyncio.to_thread(lambda: list((tmp_path / "self_tests").iterdir()))
    await asyncio.to_thread(path.write_text, path.read_text().replace('"passed": 0', '"passed": "x"'))
    for sentence in SENTENCES:
        stage.model.will_say("Sure!", to=sentence.text)
    await fitness().checked()
    assert len(stage.model.asked) == 2 * asked


async def serve(remembering: Any, stage: Stage, tmp_path: Path) -> Any:
    fitness = ClassifierFitness(stage.model, "gemma", CONTEXT_TOKENS, Leases(), tmp_path)
    return await remembering.serve(classify=True, fitness=fitness)


SLOTS = {
    "hazelnuts": "allergies", "Porto": "where I live", "nurse": "what I work as", "Volvo": "my car",
    "Rex": "my dog", "without sugar": "how I take my tea", "Ana Sousa": "my name", "Mia": "my children",
    "Leo": "my child", "vegetarian": "my diet", "green": "my favourite colour",
}  # fmt: skip


def take_the_test(stage: Stage, *, says_yes_to_all: bool) -> None:
    """What a model says in its self-test whose first replies are right."""
    for sentence in SENTENCES:
        stage.model.will_say(claims(**{SLOTS[value]: value for value in sentence.values}), to=sentence.text)
        answers = ["yes"] * len(sentence.values) + ["yes" if says_yes_to_all else "no"] * (sentence.wrong is not None)
        if answers:
            stage.model.will_say(json.dumps({"answers": answers}), to=sentence.text)


async def take_the_test_before(stage: Stage, tmp_path: Path, says_yes_to_all: bool | None) -> None:
    """The model was tested before the memory starts; None: it says nothing useful."""
    if says_yes_to_all is None:
        for sentence in SENTENCES:
            stage.model.will_say("Sure!", to=sentence.text)
    else:
        take_the_test(stage, says_yes_to_all=says_yes_to_all)
    await ClassifierFitness(stage.model, "gemma", CONTEXT_TOKENS, Leases(), tmp_path).checked()
