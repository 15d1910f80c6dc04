"""The second respondent: after the first one, behind every user, and without effects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from local.bus.envelope import Trace
from local.bus.messages import (
    AgentTransition,
    AnswerDialog,
    BusDead,
    GenerationToken,
    QueryAccepted,
    QueryFailed,
    ResponseGeneration,
    SessionDeleted,
    ToolRequest,
    ToolResult,
)
from local.core.errors import ModelError
from local.generator import agent as module
from local.generator.agent import CONSUMER_B as CONSUMER
from local.generator.agent import DELETIONS, SecondRespondent
from local.generator.config import GeneratorConfig
from local.generator.history import ConversationService, StoredTurn
from local.journal.messages import JournalAck, JournalRedact, JournalRedacted
from local.memory.messages import MemoryDeleted
from local.models.arbiter import Arbiter, ArbiterConfig
from local.models.chat import ToolCall
from local.models.settings import Endpoint, ModelsConfig, Routing
from local.runtime.participant import Resources, Settingless
from local.tools.tool import Tool


class Mail(Tool):
    """Send a mail."""

    name = "mail"
    effect = "write"

    def __init__(self) -> None:
        super().__init__(Settingless())
        self.sent: list[str] = []

    async def run(self, text: str) -> str:
        self.sent.append(text)
        return "sent"


@pytest.fixture
async def both(stage: Any) -> AsyncIterator[Any]:
    """A stage with both respondents, and an arbiter for the line of their model."""
    await stage.serve(Arbiter(ArbiterConfig()))
    await stage.generator()
    await stage.gatekeeper(allowed_tools=["mail"])
    stage.served_b = await stage.second_respondent()
    yield stage


async def of_b(stage: Any, query_id: str = "q1") -> ResponseGeneration:
    response: ResponseGeneration = await stage.door.hears(ResponseGeneration, query_id=query_id, respondent_id="B")
    return response


async def is_done(stage: Any, consumer: str, times: int) -> None:
    """The second respondent has dealt with so many messages."""
    await stage.door.until(
        lambda: len({n for ack in stage.door.of(JournalAck, consumer=consumer) for n in ack.numbers}) >= times
    )


async def test_it_answers_what_the_first_has_answered_and_says_so_to_no_door(both: Any) -> None:
    both.model.will_say("Paris.")
    both.model_b.will_say("Lyon.")
    await both.door.ask("Where?", "q1")
    response = await of_b(both)
    assert (response.status, response.answer, response.model) == ("answered", "Lyon.", "other")
    first, second = both.door.of(ResponseGeneration)
    assert (first.respondent_id, first.answer, second.respondent_id) == ("A", "Paris.", "B")
    assert [said.respondent_id for said in both.door.of(QueryAccepted)] == ["A"]
    assert [said.answer for said in both.door.of(AnswerDialog)] == ["Paris."]
    subjects = both.door.subjects("q1")
    began = next(e for e in both.door.envelopes(AgentTransition, respondent_id="B"))
    assert both.door.heard.index(began) > both.door.heard.index(both.door.envelopes(ResponseGeneration)[0])
    assert subjects.count("-> PUBLISHING") == 2


async def test_a_tool_with_effects_is_never_sent_its_call(both: Any, tmp_path: Path) -> None:
    mail = Mail()
    await both.tool(mail.with_record(Resources(tmp_path)))
    both.model.will_say("I could.")
    both.model_b.will_say(ToolCall("mail", {"text": "hello"}))
    both.model_b.will_say("I could not.")
    await both.door.ask("Write!", "q1")
    [record] = (await of_b(both)).tool_calls
    assert record.error is not None
    assert (record.error.kind, mail.sent, both.door.of(ToolRequest)) == ("fenced", [], [])
    assert "second respondent" in both.model_b.asked[1].messages[-1]["content"]


async def test_a_call_that_the_first_has_made_takes_its_result_and_another_is_made(both: Any, dice: Any) -> None:
    await both.tool(dice)
    both.model.will_say(ToolCall("dice", {"sides": 6}))
    both.model.will_say("A 5.")
    both.model_b.will_say(ToolCall("dice", {"sides": 6}), ToolCall("dice", {"sides": 20}))
    both.model_b.will_say("Both.")
    await both.door.ask("Roll!", "q1")
    response = await of_b(both)
    assert [record.result for record in response.tool_calls] == ["a 5 of 6", "a 19 of 20"]
    assert dice.rolls == [6, 20]
    requests = dict.fromkeys((said.respondent_id, said.args["sides"]) for said in both.door.of(ToolRequest))
    assert list(requests) == [("A", 6), ("B", 20)]  # on a busy machine some are said again
    assert list(dict.fromkeys(said.respondent_id for said in both.door.of(ToolResult))) == ["A", "B"]


async def test_a_users_turn_takes_its_place_and_it_begins_its_message_again(both: Any) -> None:
    both.model.will_say("Paris.", to="Where?")
    both.model_b.will_say("Wro", asyncio.Event())
    both.model_b.will_say("Right.")
    await both.door.ask("Where?", "q1")
    await both.door.hears(GenerationToken, respondent_id="B", text="Wro")
    both.model.will_say("Noon.", to="When?")
    await both.door.ask("When?", "q2", session="another user's")
    assert (await both.door.hears(ResponseGeneration, query_id="q2")).answer == "Noon."
    await asyncio.wait_for(both.model_b.closed_early.wait(), 30)
    both.model_b.will_say("At noon.")
    assert (await of_b(both)).answer == "Right."
    told = [(said.attempt, said.index, said.text) for said in both.door.of(GenerationToken, respondent_id="B")]
    assert told[:2] == [(1, 0, "Wro"), (2, 0, "Right.")]
    assert (await of_b(both, "q2")).answer == "At noon."


async def test_what_the_first_has_not_answered_it_does_not_answer_either(both: Any) -> None:
    both.model.will_say("Wel", asyncio.Event())
    both.model.will_say(ModelError("gone"), to="Broken?")
    await both.door.ask("Long?", "q1")
    await both.door.hears(GenerationToken)
    await both.door.cancel("q1")
    await both.door.hears(ResponseGeneration, query_id="q1", status="cancelled")
    await both.door.ask("Broken?", "q2")
    unremembered: list[dict[str, Any]] = [{"incognito": True}, {"history": ()}]
    for number, fields in enumerate(unremembered, 3):
        both.model.will_say("Psst.")
        await both.door.ask("Secret?", f"q{number}", session=f"s{number}", **fields)
    await is_done(both, CONSUMER, 4)
    assert both.model_b.asked == []
    assert both.door.of(ResponseGeneration, respondent_id="B") == []


async def test_what_was_answered_long_before_it_took_part_is_left_alone(
    both: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OLD_SECONDS", -1.0)
    both.model.will_say("Paris.")
    await both.door.ask("Where?", "q1")
    await is_done(both, CONSUMER, 1)
    assert both.model_b.asked == []


async def test_it_remembers_its_own_answers(both: Any) -> None:
    for answer_a, answer_b, query_id in (("Paris.", "Lyon.", "q1"), ("Big.", "Small.", "q2")):
        both.model.will_say(answer_a)
        both.model_b.will_say(answer_b)
        await both.door.ask(f"Question {query_id}?", query_id)
        await of_b(both, query_id)
    said = [message["content"] for message in both.model_b.asked[1].messages if message["role"] == "assistant"]
    assert said == ["Lyon."]
    said = [message["content"] for message in both.model.asked[1].messages if message["role"] == "assistant"]
    assert said == ["Paris."]


async def test_killed_in_a_turn_it_goes_on_from_its_last_step(both: Any, dice: Any) -> None:
    await both.tool(dice)
    both.model.will_say("A 3.")
    both.model_b.will_say(ToolCall("dice", {"sides": 20}))
    both.model_b.will_say("It ", asyncio.Event())
    await both.door.ask("Roll!", "q1")
    await both.door.hears(GenerationToken, respondent_id="B", text="It ")
    await both.served_b.kill()
    both.model_b.will_say("It is a 19.")
    await both.second_respondent()
    response = await of_b(both)
    assert (response.answer, dice.rolls, len(both.model_b.asked)) == ("It is a 19.", [20], 3)
    await is_done(both, CONSUMER, 1)
    entries = await both.on_record("q1", ResponseGeneration)
    assert len(entries) == 2
    assert (await both.door.hears(GenerationToken, text="It is a 19.")).attempt == 2


async def test_one_that_kills_its_process_again_and_again_fails_for_the_second_respondent_alone(both: Any) -> None:
    await both.journal(max_deliver=1)
    both.model.will_say("Paris.")
    await both.door.ask("Where?", "q1")
    served = both.served_b
    for _ in range(3):
        both.model_b.will_say("Th", asyncio.Event())
        asked = len(both.door.of(GenerationToken, respondent_id="B"))
        await both.door.hears(GenerationToken, asked + 1, respondent_id="B")
        await served.kill()
        served = await both.second_respondent()
    failed = await both.door.hears(QueryFailed)
    assert (failed.respondent_id, failed.error.kind) == ("B", "gave_up")
    assert [dead.participant for dead in both.door.of(BusDead)] == [CONSUMER]


async def test_a_failure_of_its_model_is_its_own(both: Any) -> None:
    both.model.will_say("Paris.")
    both.model_b.will_say(ModelError("out of memory"))
    await both.door.ask("Where?", "q1")
    response = await of_b(both)
    assert (response.status, both.door.of(QueryFailed)) == ("failed", [])
    assert (await both.door.hears(ResponseGeneration, respondent_id="A")).answer == "Paris."


async def test_of_a_deleted_session_it_keeps_nothing_and_finishes_nothing(both: Any) -> None:
    both.model.will_say("Paris.")
    both.model_b.will_say("Lyon.")
    await both.door.ask("Where?", "q1")
    await of_b(both)
    both.model.will_say("Noon.")
    both.model_b.will_say("Mid", asyncio.Event())
    await both.door.ask("When?", "q2")
    await both.door.hears(GenerationToken, respondent_id="B", text="Mid")
    await both.door.bus.publish(SessionDeleted(deleted_session_id="s"), Trace("deletion"))
    assert (await of_b(both, "q2")).status == "cancelled"
    await is_done(both, DELETIONS, 1)
    await both.served_b.stop()
    assert await of_session(both) == []


async def test_a_turn_left_open_by_a_dead_process_is_deleted_with_its_session(both: Any) -> None:
    both.model.will_say("Paris.")
    both.model_b.will_say("Ly", asyncio.Event())
    await both.door.ask("Where?", "q1")
    await both.door.hears(GenerationToken, respondent_id="B", text="Ly")
    await both.served_b.kill()
    await both.door.bus.request(JournalRedact(session_id="s"), JournalRedacted, 20.0)
    served = await both.second_respondent()
    await both.door.bus.publish(SessionDeleted(deleted_session_id="s"), Trace("deletion"))
    await is_done(both, DELETIONS, 1)
    await served.stop()
    assert await of_session(both) == []


async def test_of_an_exchange_that_is_forgotten_it_finishes_and_keeps_nothing(both: Any) -> None:
    for query_id, answer_b in (("q1", ("Lyon.",)), ("q2", ("Mid", asyncio.Event()))):
        both.model.will_say("I know.")
        both.model_b.will_say(*answer_b)
        await both.door.ask(f"Question {query_id}?", query_id)
        await both.door.hears(GenerationToken, respondent_id="B", text=answer_b[0])
    forgotten = MemoryDeleted(engram_id="e" * 32, query_id="q2", respondent_id="A")
    await both.door.bus.publish(forgotten, Trace("deletion"))
    assert (await of_b(both, "q2")).status == "cancelled"
    await is_done(both, DELETIONS, 1)
    await both.served_b.stop()
    assert [stored.query_id for stored in await of_session(both)] == ["q1"]


async def of_session(stage: Any) -> list[StoredTurn]:
    """What a second respondent that was stopped has on record."""
    async with ConversationService(stage.database.with_name(SecondRespondent.policy.record), "B") as record:
        return await record.session("s")


HOME = Endpoint(kind="ollama", url="http://127.0.0.1:1")
CHAIN = ModelsConfig.model_validate({"roles": {"chat": ["openai/large", "ollama/gemma"]}})
ROUTING = Routing(
    config=CHAIN, endpoints={"ollama": HOME, "openai": Endpoint(kind="openai", url="http://box/v1")}, default="ollama"
)


@pytest.mark.parametrize(("model", "asked"), [("gemma", "openai/large"), ("mistral", "mistral")])
def test_a_model_of_its_own_is_asked_and_else_whoever_the_first_asks(tmp_path: Path, model: str, asked: str) -> None:
    resources = Resources(tmp_path, ROUTING, chat_model="gemma")
    assert SecondRespondent.build(GeneratorConfig(model=model), resources).details()["model"] == asked
