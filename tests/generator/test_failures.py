"""Models that fail, and a bus that is away."""

import asyncio
from typing import Any

import pytest

from local.bus.messages import AnswerDialog, ContextCompacted, ResponseGeneration
from local.core.errors import ModelError
from local.generator.fitting import MOST_WAITED_FOR
from local.models.chat import ThinkingDelta


async def test_a_failed_turn_ends_with_what_was_said_and_leaves_no_history_and_other_turns_go_on(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say(ThinkingDelta("Hm."), "So f", ModelError("the server went away", kind="unreachable"))
    await stage.frontend.ask("Well?", "q1")
    failed = await stage.frontend.hears(ResponseGeneration)
    assert (failed.status, failed.answer, failed.thinking) == ("failed", "So f", "Hm.")
    assert (failed.error.kind, failed.error.message) == ("unreachable", "the server went away")
    assert stage.frontend.of(AnswerDialog) == []
    stage.model.will_say(ZeroDivisionError("oops"), to="bad")
    stage.model.will_say("Yes.", to="good")
    await stage.frontend.ask("bad", "q2", session="red")
    await stage.frontend.ask("good", "q3")
    failed = await stage.frontend.hears(ResponseGeneration, query_id="q2")
    assert (failed.status, failed.error.kind, failed.error.message) == ("failed", "internal", "ZeroDivisionError: oops")
    assert (await stage.frontend.hears(ResponseGeneration, query_id="q3")).answer == "Yes."
    assert [message["content"] for message in stage.model.asked[-1].messages[1:]] == ["good"]


async def test_a_prompt_that_is_too_long_is_shortened_and_that_is_told(stage: Any) -> None:
    await stage.generator(num_ctx=4096)
    for number in (1, 2, 3):
        stage.model.will_say(f"Answer {number}" + " and so on" * 120)
        await stage.frontend.ask(f"Question {number}", f"q{number}")
        await stage.frontend.hears(ResponseGeneration, number)
    stage.model.will_say(ModelError("the prompt is too long", kind="context_overflow"), to="Question 4")
    for _ in range(MOST_WAITED_FOR):
        stage.model.will_say("FACTS\nSUMMARY\nThey counted.")
    stage.model.will_say("Short.", to="Question 4")
    await stage.frontend.ask("Question 4", "q4")
    response = await stage.frontend.hears(ResponseGeneration, 4)
    assert (response.answer, response.degraded) == ("Short.", ())
    contents = [message["content"] for message in stage.model.asked[-1].messages]
    assert contents[-1] == "Question 4"
    assert any("They counted." in content for content in contents)
    compaction = await stage.frontend.hears(ContextCompacted)
    assert compaction.gauge.used < compaction.tokens_before


async def test_a_query_that_is_too_long_by_itself_fails_and_says_so(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say(ModelError("the prompt is too long", kind="context_overflow"))
    stage.model.will_say(ModelError("the prompt is too long", kind="context_overflow"))
    await stage.frontend.ask("Well?", "q1")
    response = await stage.frontend.hears(ResponseGeneration)
    assert (response.status, response.error.kind) == ("failed", "context_overflow")


async def test_an_answer_that_could_not_leave_is_published_after_the_reconnection(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await stage.generator()
    conversation = served.participant._conversation
    finish, lost = conversation.finish, asyncio.Event()

    async def finish_and_lose_the_bus(*record: Any, **more: Any) -> None:
        await finish(*record, **more)
        stage.hub.down()
        lost.set()

    monkeypatch.setattr(conversation, "finish", finish_and_lose_the_bus)
    stage.model.will_say("Yes.")
    await stage.frontend.ask("Well?", "q1")
    await asyncio.wait_for(lost.wait(), 90)
    assert stage.frontend.of(ResponseGeneration) == []
    stage.hub.up()
    assert (await stage.end_of("q1")).answer == "Yes."
    assert (await stage.frontend.hears(AnswerDialog)).answer == "Yes."


async def test_an_answer_that_the_journal_did_not_live_to_store_is_stored_by_the_next_one(stage: Any) -> None:
    await stage.generator()
    slow = asyncio.Event()
    stage.model.will_say(slow, "Yes.")
    await stage.frontend.ask("Well?", "q1")
    await stage.no_journal()
    slow.set()
    await stage.frontend.hears(ResponseGeneration)
    assert stage.acknowledged() == set()
    await stage.journal()
    assert (await stage.end_of("q1")).answer == "Yes."
    assert (await stage.frontend.hears(AnswerDialog)).answer == "Yes."
    assert len(stage.model.asked) == 1
