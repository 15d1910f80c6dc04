"""Claims of a model that has failed its self-test stay unconfirmed; what plain sentences state counts all the same."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from agent_stage.stage import Stage

from local.memory.agent import CONTEXT_TOKENS
from local.memory.classifier_test import SENTENCES, ClassifierFitness
from local.memory.messages import MemoryClassified
from local.models.leases import Leases

NOTHING = json.dumps({"intent": "other", "entities": [], "facts": []})


def claims(**facts: str) -> str:
    made = [{"slot": slot, "value": value, "certain": True, "retracts": False} for slot, value in facts.items()]
    return json.dumps({"intent": "statement", "entities": [], "facts": made})


async def test_claims_of_a_model_that_fails_are_stored_and_are_no_current_facts(
    remembering: Any, stage: Stage, tmp_path: Path
) -> None:
    for sentence in SENTENCES:
        stage.model.will_say("Sure!", to=sentence.text)
    said = "I am severely allergic to hazelnuts and walnuts, and my favourite colour is green."
    stage.model.will_say(claims(**{"my favourite colour": "green", "allergies": "hazelnuts and walnuts"}), to=said)
    served = await serve(remembering, stage, tmp_path)
    await remembering.answered("q", said)
    told = await remembering.door.hears(MemoryClassified)
    stored = {"hazelnuts": True, "walnuts": True, "green": False}
    assert {fact.value: fact.confirmed for fact in told.facts} == stored
    assert {fact.value for fact in (await remembering.ask("facts")).facts} == {"hazelnuts", "walnuts"}
    history = (await remembering.ask("facts", history=True)).facts
    assert {fact.value: fact.confirmed for fact in history} == stored
    assert len(stage.model.asked) == 6  # five sentences are enough to fail
    assert served.participant.details()["classifier_self_test"].startswith("failed: 0 of 5 right")


async def test_claims_of_a_model_that_passes_are_facts(remembering: Any, stage: Stage, tmp_path: Path) -> None:
    slots = {
        "hazelnuts": "allergies", "Porto": "where I live", "nurse": "what I work as", "Volvo": "my car",
        "Rex": "my dog", "without sugar": "how I take my tea", "Ana Sousa": "my name", "Mia": "my children",
        "Leo": "my child", "vegetarian": "my diet", "green": "my favourite colour",
    }  # fmt: skip
    for sentence in SENTENCES:
        stage.model.will_say(claims(**{slots[value]: value for value in sentence.values}), to=sentence.text)
    stage.model.will_say(claims(**{"how I take my coffee": "black"}), to="I take my coffee black")
    served = await serve(remembering, stage, tmp_path)
    await remembering.answered("q", "I take my coffee black")
    (fact,) = (await remembering.door.hears(MemoryClassified)).facts
    assert fact.confirmed
    assert served.participant.details()["classifier_self_test"].startswith("passed: ")


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
