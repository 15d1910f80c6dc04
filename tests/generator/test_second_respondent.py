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
    AnswerOptions,
    AnswerProfile,
    BusDead,
    ConversationRequest,
    ConversationResult,
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
from local.generator.history import ConversationService, StoredTurn
from local.journal.messages import JournalAck, JournalRedact, JournalRedacted
from local.memory.messages import MemoryDeleted
from local.models import leases
from local.models.arbiter import Arbiter, ArbiterConfig
from local.models.chat import ToolCall
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
async def both(stage: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """A stage with both respondents, and no arbiter that could make the second one wait."""
    monkeypatch.setattr(leases, "ALONE_SECONDS", 0.0)
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.02)
    await stage.generator()
    stage.served_b = await stage.second_respondent()
    yield stage


async def of_b(stage: Any, query_id: str = "q1") -> ResponseGeneration:
    response: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id=query_id, respondent_id="B")
    return response


async def is_done(stage: Any, consumer: str, times: int) -> None:
    """The second respondent has dealt with so many messages."""
    await stage.frontend.until(
        lambda: len({n for ack in stage.frontend.of(JournalAck, consumer=consumer) for n in ack.numbers}) >= times
    )


def said_by(model: Any) -> list[str]:
    """What its last prompt holds of the conversation."""
    return [message["content"] for message in model.asked[-1].messages if message["role"] != "system"]


async def test_it_answers_what_the_first_has_answered_from_its_own_answers_and_says_so_to_no_frontend(
    both: Any,
) -> None:
    for number in (1, 2):
        both.model.will_say(f"A {number}")
        both.model_b.will_say(f"B {number}")
        await both.frontend.ask(f"Question {number}", f"q{number}")
        response = await of_b(both, f"q{number}")
    assert (response.status, response.answer, response.model) == ("answered", "B 2", "other")
    assert said_by(both.model_b) == ["Question 1", "B 1", "Question 2"]
    assert said_by(both.model) == ["Question 1", "A 1", "Question 2"]
    assert [said.respondent_id for said in both.frontend.of(QueryAccepted)] == ["A", "A"]
    assert [said.answer for said in both.frontend.of(AnswerDialog)] == ["A 1", "A 2"]
    began = next(e for e in both.frontend.envelopes(AgentTransition, respondent_id="B"))
    assert both.frontend.heard.index(began) > both.frontend.heard.index(both.frontend.envelopes(ResponseGeneration)[0])
    request = ConversationRequest(verb="branch", key="s", before="q2", branch_id="b")
    await both.frontend.bus.request(request, ConversationResult, 15)
    both.model.will_say("A edited")
    both.model_b.will_say(ModelError("out of memory"))
    await both.frontend.ask("Edited", "edited", session="b")
    failed = await of_b(both, "edited")
    assert said_by(both.model_b) == ["Question 1", "B 1", "Edited"]
    assert (failed.status, both.frontend.of(QueryFailed)) == ("failed", [])


async def test_it_makes_no_call_with_effects_and_takes_the_result_of_one_that_the_first_has_made(
    both: Any, dice: Any, tmp_path: Path
) -> None:
    mail = Mail()
    await both.gatekeeper(allowed_tools=["mail"])
    await both.tool(dice)
    await both.tool(mail.with_record(Resources(tmp_path)))
    both.model.will_say(ToolCall("dice", {"sides": 6}))
    both.model.will_say("A 5.")
    calls = [ToolCall("dice", {"sides": 6}), ToolCall("dice", {"sides": 20}), ToolCall("mail", {"text": "hello"})]
    both.model_b.will_say(*calls)
    both.model_b.will_say("Both.")
    await both.frontend.ask("Roll!", "q1")
    taken, made, fenced = (await of_b(both)).tool_calls
    assert (taken.result, made.result, dice.rolls) == ("a 5 of 6", "a 19 of 20", [6, 20])
    assert fenced.error is not None and (fenced.error.kind, mail.sent) == ("fenced", [])
    requests = dict.fromkeys((said.respondent_id, said.args["sides"]) for said in both.frontend.of(ToolRequest))
    assert list(requests) == [("A", 6), ("B", 20)]  # on a busy machine some are said again
    assert list(dict.fromkeys(said.respondent_id for said in both.frontend.of(ToolResult))) == ["A", "B"]


async def test_a_profile_narrows_its_tools_and_leaves_it_its_model(both: Any, dice: Any) -> None:
    await both.tool(dice)
    both.model.will_say("Well.")
    both.model_b.will_say("Well, too.")
    profile = AnswerProfile(name="large", model="gemma4:31b", tools=())
    await both.frontend.ask("Well?", "q1", options=AnswerOptions(profile=profile))
    assert ((await of_b(both)).model, both.model_b.asked[0].tools) == ("other", [])


async def test_a_users_turn_takes_its_place_and_it_begins_its_message_again(stage: Any) -> None:
    await stage.serve(Arbiter(ArbiterConfig()))
    await stage.generator()
    await stage.second_respondent()
    stage.model.will_say("Paris.", to="Where?")
    stage.model_b.will_say("Wro", asyncio.Event())
    stage.model_b.will_say("Right.")
    await stage.frontend.ask("Where?", "q1")
    await stage.frontend.hears(GenerationToken, respondent_id="B", text="Wro")
    stage.model.will_say("Noon.", to="When?")
    await stage.frontend.ask("When?", "q2", session="another user's")
    assert (await stage.frontend.hears(ResponseGeneration, query_id="q2")).answer == "Noon."
    await asyncio.wait_for(stage.model_b.closed_early.wait(), 90)
    stage.model_b.will_say("At noon.")
    assert (await of_b(stage)).answer == "Right."
    told = [(said.attempt, said.index, said.text) for said in stage.frontend.of(GenerationToken, respondent_id="B")]
    assert told[:2] == [(1, 0, "Wro"), (2, 0, "Right.")]
    assert (await of_b(stage, "q2")).answer == "At noon."


async def test_what_the_first_has_not_answered_or_long_ago_it_does_not_answer_either(
    both: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    both.model.will_say("Wel", asyncio.Event())
    both.model.will_say(ModelError("gone"), to="Broken?")
    await both.frontend.ask("Long?", "q1")
    await both.frontend.hears(GenerationToken)
    await both.frontend.cancel("q1")
    await both.frontend.hears(ResponseGeneration, query_id="q1", status="cancelled")
    await both.frontend.ask("Broken?", "q2")
    monkeypatch.setattr(module, "OLD_SECONDS", -1.0)
    unremembered: list[dict[str, Any]] = [{"incognito": True}, {"history": ()}, {}]
    for number, fields in enumerate(unremembered, 3):
        both.model.will_say("Psst.")
        await both.frontend.ask("Secret?", f"q{number}", session=f"s{number}", **fields)
    await is_done(both, CONSUMER, 5)
    assert both.model_b.asked == []
    assert both.frontend.of(ResponseGeneration, respondent_id="B") == []


async def test_killed_in_a_turn_it_goes_on_from_its_last_step(both: Any, dice: Any) -> None:
    await both.tool(dice)
    both.model.will_say("A 3.")
    both.model_b.will_say(ToolCall("dice", {"sides": 20}))
    both.model_b.will_say("It ", asyncio.Event())
    await both.frontend.ask("Roll!", "q1")
    await both.frontend.hears(GenerationToken, respondent_id="B", text="It ")
    await both.served_b.kill()
    both.model_b.will_say("It is a 19.")
    await both.second_respondent()
    response = await of_b(both)
    assert (response.answer, dice.rolls, len(both.model_b.asked)) == ("It is a 19.", [20], 3)
    await is_done(both, CONSUMER, 1)
    assert len(await both.on_record("q1", ResponseGeneration)) == 2
    assert (await both.frontend.hears(GenerationToken, text="It is a 19.")).attempt == 2


async def test_one_that_kills_its_process_again_and_again_fails_for_the_second_respondent_alone(both: Any) -> None:
    await both.journal(max_deliver=1)
    both.model.will_say("Paris.")
    await both.frontend.ask("Where?", "q1")
    served = both.served_b
    for _ in range(3):
        both.model_b.will_say("Th", asyncio.Event())
        asked = len(both.frontend.of(GenerationToken, respondent_id="B"))
        await both.frontend.hears(GenerationToken, asked + 1, respondent_id="B")
        await served.kill()
        served = await both.second_respondent()
    failed = await both.frontend.hears(QueryFailed)
    assert (failed.respondent_id, failed.error.kind) == ("B", "gave_up")
    assert [dead.participant for dead in both.frontend.of(BusDead)] == [CONSUMER]


async def test_of_what_users_delete_it_keeps_nothing_and_finishes_nothing(both: Any) -> None:
    for query_id, session, answer_b in (
        ("kept", "t", ("Lyon.",)), ("forgotten", "t", ("Mid", asyncio.Event())),
        ("q1", "s", ("Lyon.",)), ("q2", "s", ("Mid", asyncio.Event())),
    ):  # fmt: skip
        both.model.will_say("I know.")
        both.model_b.will_say(*answer_b)
        await both.frontend.ask(f"Question {query_id}?", query_id, session=session)
        await both.frontend.hears(GenerationToken, query_id=query_id, respondent_id="B", text=answer_b[0])
    forgotten = MemoryDeleted(engram_id="e" * 32, query_id="forgotten", respondent_id="A")
    await both.frontend.bus.publish(forgotten, Trace("deletion"))
    await both.frontend.bus.publish(SessionDeleted(deleted_session_id="s"), Trace("deletion"))
    for query_id in ("forgotten", "q2"):
        assert (await of_b(both, query_id)).status == "cancelled"
    await is_done(both, DELETIONS, 2)
    await both.served_b.stop()
    assert [stored.query_id for stored in await on_its_record("s", both) + await on_its_record("t", both)] == ["kept"]


@pytest.mark.thorough
async def test_a_turn_left_open_by_a_dead_process_is_deleted_with_its_session(both: Any) -> None:
    both.model.will_say("Paris.")
    both.model_b.will_say("Ly", asyncio.Event())
    await both.frontend.ask("Where?", "q1")
    await both.frontend.hears(GenerationToken, respondent_id="B", text="Ly")
    await both.served_b.kill()
    await both.frontend.bus.request(JournalRedact(session_id="s"), JournalRedacted, 20.0)
    served = await both.second_respondent()
    await both.frontend.bus.publish(SessionDeleted(deleted_session_id="s"), Trace("deletion"))
    await is_done(both, DELETIONS, 1)
    await served.stop()
    assert await on_its_record("s", both) == []


async def on_its_record(session: str, stage: Any) -> list[StoredTurn]:
    """What a second respondent that was stopped has on record of a session."""
    async with ConversationService(stage.database.with_name(SecondRespondent.policy.record), "B") as record:
        return await record.session(session)
