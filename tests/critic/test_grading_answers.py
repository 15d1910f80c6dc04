"""Answers being graded: what is asked, what is told, and what is left alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from local.bus.envelope import Trace
from local.bus.message import ErrorInfo
from local.bus.messages import AgentTransition, ModelUsed, ToolCallRecord, ToolSchema
from local.core.errors import JournalFull, ModelError
from local.critic.judge import MOST, judgement_id
from local.critic.messages import CritiqueResult

MISSING = ModelError("model judge is not pulled: ollama pull judge", kind="model_missing", status=404)
DOWN = ModelError("no server answers", kind="unreachable")


def call(tool: str, result: str) -> ToolCallRecord:
    return ToolCallRecord(call_id="c", tool=tool, args={}, result=result)


async def test_an_answer_is_graded_by_the_judge_and_every_step_is_told(critics: Any) -> None:
    critics.model.will_say("Right and short. [RESULT] 5")
    await critics.serve()
    await critics.answered()
    graded = await critics.critique()
    assert (graded.score, graded.status, graded.feedback) == (5, "graded", "Right and short.")
    assert (graded.respondent_id, graded.rubric, graded.judge, graded.self_judged) == ("A", "knowledge", "judge", False)
    assert graded.session_id == "session of q"
    await critics.frontend.hears(AgentTransition, to_state="IDLE")
    told = [(step.agent, step.action, step.to_state) for step in critics.frontend.of(AgentTransition, query_id="q")]
    assert told == [
        ("CriticAgent", "GRADE", "GRADING"),
        ("CriticAgent", "JUDGED", "PUBLISHING"),
        ("CriticAgent", "PUBLISHED", "IDLE"),
    ]
    used = await critics.frontend.hears(ModelUsed)
    assert (used.purpose, used.model, used.prompt_tokens, used.completion_tokens) == ("critic", "judge", 2, 1)
    (asked,) = critics.model.asked
    assert "How deep is it?" in asked.query and "1308 metres." in asked.query
    assert (asked.options["num_ctx"], asked.options["temperature"], asked.think, asked.logprobs) == (
        32000,
        0,
        False,
        True,
    )


async def test_what_tools_returned_is_the_evidence_and_decides_the_rubric(critics: Any) -> None:
    for _ in range(3):
        critics.model.will_say("Supported. [RESULT] 4")
    await critics.serve()
    await critics.answered(query_id="q1", tool_calls=(call("web_fetch", "1308 m deep"),))
    assert (await critics.critique("q1")).rubric == "tools"
    assert "web_fetch returned:\n> 1308 m deep" in critics.model.asked[0].query
    await critics.answered(query_id="q2", tool_calls=(call("search_memory", "You asked …"),))
    assert (await critics.critique("q2")).rubric == "memory"


async def test_a_tool_can_name_the_rubric_that_its_answers_are_graded_by(critics: Any) -> None:
    rubric = {"criteria": "Is the sum right?", "scores": ["1", "2", "3", "4", "5"]}
    critics.model.will_say("Right. [RESULT] 5")
    critic = await critics.serve(rubrics={"of_tools": {"sums": rubric}})
    await critics.frontend.bus.publish(ToolSchema(tool="adder", description="", parameters={}, rubric="sums"))
    await critics.frontend.until(lambda: "adder" in critic.participant._grader.rubrics_of_tools)
    await critics.answered(tool_calls=(call("adder", "4"),))
    assert (await critics.critique()).rubric == "sums"
    assert "Is the sum right?" in critics.model.asked[0].query


async def test_what_was_cancelled_or_failed_or_is_to_leave_nothing_behind_is_not_judged(critics: Any) -> None:
    critics.model.will_say("Right. [RESULT] 5")
    await critics.serve()
    await critics.answered(query_id="q1", status="cancelled")
    await critics.answered(query_id="q2", status="failed", error=ErrorInfo(kind="x", message="y"))
    await critics.answered(query_id="q3", incognito=True)
    await critics.answered(query_id="q4")
    await critics.done(4)
    assert [graded.query_id for graded in critics.frontend.of(CritiqueResult)] == ["q4"]


async def test_what_was_answered_long_before_it_took_part_is_left_alone_and_counted(critics: Any) -> None:
    for query_id in ("q1", "q2"):
        await critics.answered(query_id=query_id)
    critic = await critics.serve(grade_within_hours=1e-9)
    await critics.done(2)
    assert critics.model.asked == []
    assert critic.participant.metrics()["old_answers_left_alone"] == 2


async def test_of_a_long_line_the_newest_are_judged_and_the_others_are_told_to_be_left_out(critics: Any) -> None:
    never = asyncio.Event()
    critics.model.will_say(never, "[RESULT] 5")
    critic = await critics.serve()
    await critics.answered(query_id="first")
    await critics.frontend.until(lambda: bool(critics.model.asked))
    answers = 3 * MOST
    for number in range(answers):
        await critics.answered(query_id=f"q{number}")
    figures = critic.participant.metrics
    await critics.frontend.until(lambda: figures()["answers_skipped"] == answers + 1 - MOST)
    skipped = critics.frontend.of(CritiqueResult, status="skipped")
    assert all(each.score is None and "answers waited" in each.feedback for each in skipped)
    assert all(each.session_id == f"session of {each.query_id}" for each in skipped)
    # the first is being judged, and stays
    assert {each.query_id for each in skipped} == {f"q{number}" for number in range(answers + 1 - MOST)}
    for _ in range(MOST):
        critics.model.will_say("[RESULT] 5")
    never.set()
    await critics.done(answers + 1)
    graded = [each.query_id for each in critics.frontend.of(CritiqueResult, status="graded")]
    assert graded == ["first", *(f"q{number}" for number in reversed(range(answers + 1 - MOST, answers)))]


async def test_what_was_judged_before_a_crash_is_not_judged_again(critics: Any) -> None:
    earlier = CritiqueResult(query_id="q", score=3, status="graded")
    await critics.frontend.bus.publish(earlier, Trace("q"), envelope_id=judgement_id(CritiqueResult, "q", "A"))
    await critics.answered()
    await critics.serve()
    await critics.done(1)
    assert critics.model.asked == []
    assert critics.frontend.of(CritiqueResult) == [earlier]


@pytest.mark.parametrize("ends", ["stop", "kill"])
async def test_an_answer_that_was_being_graded_is_graded_by_the_next_process_and_once(critics: Any, ends: str) -> None:
    critics.model.will_say(asyncio.Event())
    critics.model.will_say("Right. [RESULT] 5")
    critic = await critics.serve()
    await critics.answered()
    await critics.frontend.hears(AgentTransition, to_state="GRADING")
    await critics.frontend.until(lambda: critics.model.asked)
    await getattr(critic, ends)()
    await critics.serve()
    await critics.critique()
    await critics.done(1)
    assert len(await critics.stage.on_record("q", CritiqueResult)) == 1


async def test_a_model_that_fails_is_asked_again_and_the_answer_is_graded(critics: Any) -> None:
    critics.model.will_say(DOWN)
    critics.model.will_say("Right. [RESULT] 5")
    await critics.serve()
    await critics.answered()
    assert (await critics.critique()).score == 5
    assert critics.waits == [5.0]


async def test_a_model_that_is_missing_is_told_with_each_answer_and_not_asked_again(critics: Any) -> None:
    critics.model.will_say(MISSING)
    critic = await critics.serve()
    for query_id in ("q1", "q2"):
        await critics.answered(query_id=query_id)
        graded = await critics.critique(query_id)
        assert (graded.score, graded.status, graded.judge) == (None, "failed", "judge")
        assert "ollama pull judge" in graded.feedback
    assert len(critics.model.asked) == 1
    assert "ollama pull judge" in critic.participant.details()["problem"]
    assert critic.participant.metrics()["judgements_failed"] == 2


async def test_an_answer_too_long_for_the_judge_is_shown_in_less_room(critics: Any) -> None:
    critics.model.will_say(ModelError("too long", kind="context_overflow", status=400))
    critics.model.will_say("Right. [RESULT] 5")
    await critics.serve()
    await critics.answered("Deep. " * 5000)
    assert (await critics.critique()).score == 5
    first, second = (len(asked.query) for asked in critics.model.asked)
    assert second < first / 2


async def test_a_judgement_for_which_the_journal_has_no_room_is_made_again_later(
    critics: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        critics.model.will_say("Right. [RESULT] 5")
    critic = await critics.serve()
    publish, refusals = critic.bus.publish, [JournalFull("the disk is full")]

    async def publish_if_there_is_room(message: Any, *args: Any, **how: Any) -> Any:
        if isinstance(message, CritiqueResult) and refusals:
            raise refusals.pop()
        return await publish(message, *args, **how)

    monkeypatch.setattr(critic.bus, "publish", publish_if_there_is_room)
    await critics.answered()
    assert (await critics.critique()).score == 5
    assert not refusals
