"""What the rules make of the chores that agents give a model: facts to find, answers to judge."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import httpx
import pytest

from local.critic.judge import PROFILES, ProfileName
from local.critic.judging import Case, Rubric
from local.memory.messages import FactRecord, MemoryResult, OutdatedFact, RecalledEngram
from local.memory.tools import render_recall
from local.reflection import prompts as dream_prompt
from local.reflection import prompts as thought_prompt
from local.reflection.prompts import ToldExchange
from local.stand_in import rules as brain
from local.stand_in import server as structured_reply
from local.stand_in.rules import AssistantMessage, Task, judge, read, task_of
from local.stand_in.server import classify

Json = dict[str, Any]
MakeTool = Callable[..., Json]

RUBRIC = Rubric(criteria="Is it right?", scores=("no", "hardly", "half", "mostly", "yes"))
TEXT = {"type": "string"}
FACT = {
    "type": "object",
    "properties": {"slot": TEXT, "value": TEXT, "certain": {"type": "boolean"}, "retracts": {"type": "boolean"}},
    "required": ["slot", "value", "certain", "retracts"],
}
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "intent": {"enum": ["question", "task", "statement", "feedback", "other"]},
        "entities": {"type": "array", "items": TEXT},
        "facts": {"type": "array", "items": {"$ref": "#/$defs/Fact"}},
        "language": TEXT,
    },
    "required": ["intent", "entities", "facts", "language"],
    "$defs": {"Fact": FACT},
}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def facts(text: str) -> list[tuple[str, str]]:
    return [(fact["slot"], fact["value"]) for fact in classify(text, SCHEMA)["facts"]]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I take my coffee black.", ("how I take my coffee", "black")),
        ("Actually, I take my coffee with oat milk now.", ("how I take my coffee", "with oat milk")),
        ("My favourite colour is green!", ("my favourite colour", "green")),
        ("I live in Oslo and I work as a nurse", ("where I live", "Oslo")),
        ("Please remember that my dog is called Rex.", ("my dog's name", "Rex")),
        ("My sister is called Lina.", ("my sister's name", "Lina")),
        ("Remember that the meeting is on Friday, please.", ("the meeting", "on Friday")),
        ("I am allergic to nuts; be careful.", ("allergies", "nuts")),
        ("I prefer tea, and my wife likes milk.", ("how I feel about tea", "prefer")),
    ],
)
def test_a_sentence_in_the_first_person_states_a_fact(text: str, fact: tuple[str, str]) -> None:
    assert facts(text) == [fact]


@pytest.mark.parametrize(
    ("text", "intent"), [("Who is it?", "question"), ("Thanks!", "feedback"), ("I live here", "other")]
)
def test_the_intent_of_what_states_no_fact_is_seen_by_its_form(text: str, intent: str) -> None:
    assert classify(text, SCHEMA)["intent"] == intent


def test_a_classification_has_no_keys_that_its_schema_does_not_have() -> None:
    small = {"properties": {"intent": TEXT, "facts": {"items": {"properties": {"slot": TEXT}}}}}
    assert classify("I live in Oslo", small) == {"intent": "statement", "facts": [{"slot": "where I live"}]}


def test_a_thought_is_of_what_was_said_last() -> None:
    exchanges = [ToldExchange("a", "It rains", "Oh."), ToldExchange("b", "I like tea", "Noted.")]
    asked = thought_prompt.thought_messages(exchanges)[-1]["content"]
    assert task_of(thought_prompt.THOUGHT_SCHEMA, asked) is Task.THOUGHT
    assert thought_prompt.read_thought(json.dumps(structured_reply.thought(asked))) == "The user said: I like tea"
    assert structured_reply.thought("") == {"thought": ""}


def graded(profile: ProfileName, case: Case) -> int:
    prompt = PROFILES[profile].absolute(case, RUBRIC)
    assert task_of(_format(prompt.schema), prompt.user) is Task.JUDGEMENT
    reading = PROFILES[profile].read_score(judge(prompt.user, _format(prompt.schema)))
    assert reading is not None
    assert "stand-in" in reading.feedback
    return reading.value


def _format(schema: Any) -> Json | None:
    return None if schema is None else dict(schema)


@pytest.mark.parametrize("profile", list(PROFILES))
def test_an_answer_is_graded_by_a_rule_in_the_form_that_the_judge_is_asked_for(profile: ProfileName) -> None:
    question = "What is the capital of France?"
    assert graded(profile, Case(question, "The capital of France is Paris.")) == 5
    assert graded(profile, Case(question, "I do not know the capital of France.")) == 4
    assert graded(profile, Case(question, "Bananas.")) == 4
    assert graded(profile, Case(question, "I do not know.")) == 3
    assert graded(profile, Case(question, "")) == 1


async def ask(http: httpx.AsyncClient, text: str, **others: Any) -> str:
    body = {"model": "gemma4:12b", "messages": [user(text)], "stream": False, **others}
    content: str = (await http.post("/api/chat", json=body)).raise_for_status().json()["message"]["content"]
    return content


async def test_a_script_answers_the_task_that_it_names_and_no_other(http: httpx.AsyncClient) -> None:
    obeys = '{"intent": "statement", "entities": [], "facts": [{"slot": "my password", "value": "hunter2"}]}'
    turns = [
        {"user": "page", "task": "classification", "replies": [{"content": obeys}]},
        {"user": "page", "task": "judgement", "replies": [{"content": "I refuse."}]},
        {"user": "page", "replies": [{"content": "talk"}]},
    ]
    await http.post("/stand_in/script", json={"story": "x", "turns": turns})
    assert await ask(http, "Read the page.", format=SCHEMA) == obeys
    assert await ask(http, PROFILES["prometheus2"].absolute(Case("The page?", "It."), RUBRIC).user) == "I refuse."
    assert await ask(http, "Read the page.") == "talk"
    assert await ask(http, "Read the page.", format={"type": "integer", "minimum": 7}) == "7"


def recalled(*hits: tuple[str, str], outdated: tuple[OutdatedFact, ...] = (), slots: tuple[str, ...] = ()) -> Json:
    found = tuple(
        RecalledEngram(
            engram_id="e", query_id="q", respondent_id="A", session_id="s", query=query, answer=answer, origin="web",
            asked_at=0.0, relevance=1.0, outdated=outdated,
        )
        for query, answer in hits
    )  # fmt: skip
    known = [FactRecord(slot=slot, value="black", stated_at=0.0, engram_id="e") for slot in slots]
    text = render_recall("coffee", MemoryResult(verb="search", hits=found), known, datetime(2026, 11, 21)).text
    return {"role": "tool", "tool_name": "search_memory", "content": text}


def answer(tool: Json, result: Json) -> AssistantMessage:
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "search_memory"}}]}
    return brain.reply(read([user("How do I take my coffee?"), call, result], [tool]))


def test_what_the_memory_says_is_quoted_without_its_heading_and_the_outdated_as_such(tool: MakeTool) -> None:
    changed = OutdatedFact(slot="coffee", value="white", superseded_at=0.0, values=("black",))
    hits = ("I take it white.", "Noted."), ("What is a\nmug?", "A cup. Or more.")
    said = answer(tool("search_memory"), recalled(*hits, outdated=(changed,), slots=("how I take my coffee",))).content
    assert said.startswith("You told me: how I take my coffee: “black” (said ")
    assert "“I take it white.” This no longer holds since" in said
    assert "“What is a mug?” and I answered: “A cup.”" in said
    assert "material" not in said


def test_a_dream_quotes_what_the_user_has_said_with_its_number() -> None:
    exchanges = [ToldExchange(f"e{number}", f"Matter {number}", "Noted.") for number in range(1, 6)]
    exchanges.append(ToldExchange("e6", "From now on, be brief.", "I will."))
    asked = dream_prompt.messages(exchanges, "Be kind.")[-1]["content"]
    assert task_of(dream_prompt.SCHEMA, asked) is Task.DREAM
    said = json.dumps(structured_reply.dream(asked))
    dream = dream_prompt.read(said, exchanges)
    seen = [(each.text, each.sources) for each in dream.seen]
    assert seen == [(f"The user said: Matter {number}", (f"e{number}",)) for number in range(1, 4)]
    assert dream.soul == "Be kind.\nFrom now on, be brief."
