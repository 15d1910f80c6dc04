"""A generator that is killed at every point of a turn, once or again and again: each query has exactly one end."""

import asyncio
from typing import Any

import pytest

from local.bus.envelope import Trace
from local.bus.message import ErrorInfo
from local.bus.messages import AnswerDialog, BusDead, GenerationToken, QueryFailed
from local.generator.agent import CANCELS, CONSUMER
from local.generator.output import OutcomePublisher
from local.journal.messages import JournalAck
from local.models.chat import ToolCall

POINTS = [
    ("turn.step_stored", 1),
    ("turn.published", 1),
    *(
        pytest.param(point, passes, marks=pytest.mark.thorough)
        for point, passes in (
            ("generator.delivered", 1),
            ("turn.accepted", 1),
            ("turn.results_in", 1),
            ("turn.step_stored", 2),
            ("turn.end_stored", 1),
        )
    ),
]


@pytest.fixture(autouse=True)
def every_turn_is_on_record_first(stage: Any) -> None:
    """What was only computed ahead is asked again after a death: test_speculations.py has that."""
    stage.loses_live_queries = True


@pytest.mark.parametrize(("point", "passes"), POINTS)
async def test_killed_once_at_any_point_it_gives_one_answer_and_asks_neither_model_nor_tool_again(
    stage: Any, dice: Any, point: str, passes: int
) -> None:
    first = await stage.doomed_generator(point, passes)
    await stage.tool(dice)
    stage.model.will_say(ToolCall("dice", {}))
    stage.model.will_say("A 5.")
    await stage.frontend.ask("Roll!", "q1")
    await first.dead()
    await stage.generator()
    response = await stage.end_of("q1")
    assert (response.status, response.answer) == ("answered", "A 5.")
    assert [record.result for record in response.tool_calls] == ["a 5 of 6"]
    assert (len(stage.model.asked), dice.rolls) == (2, [6])
    await stage.frontend.hears(AnswerDialog)
    assert len({envelope.id for envelope in stage.frontend.envelopes(AnswerDialog)}) == 1


async def test_killed_at_one_point_after_the_other_it_gives_one_answer(stage: Any, dice: Any) -> None:
    await stage.journal(max_deliver=10)
    first = await stage.doomed_generator("turn.accepted")
    await stage.tool(dice)
    stage.model.will_say(ToolCall("dice", {}))
    stage.model.will_say("A 5.")
    await stage.frontend.ask("Roll!", "q1")
    await first.dead()
    for point in ("turn.step_stored", "turn.results_in", "turn.end_stored", "generator.delivered", "turn.published"):
        await (await stage.doomed_generator(point)).dead()
    await stage.generator()
    assert (await stage.end_of("q1")).answer == "A 5."
    assert (len(stage.model.asked), dice.rolls) == (2, [6])


async def deaths(stage: Any, times: int, beside: str = "") -> None:
    """Processes that die as soon as they work on "poison", and on what is beside it."""
    deadly = ["poison", beside] if beside else ["poison"]
    for _ in range(times):
        before = {query: times_asked(stage, query) for query in deadly}
        for query in deadly:
            stage.model.will_say(asyncio.Event(), to=query)
        process = await stage.generator()
        await stage.frontend.until(lambda before=before: all(times_asked(stage, q) > n for q, n in before.items()))
        await process.kill()


def times_asked(stage: Any, query: str) -> int:
    return sum(asked.query == query for asked in stage.model.asked)


async def test_a_query_that_kills_every_process_is_given_up_and_the_others_are_answered(stage: Any) -> None:
    await stage.frontend.ask("poison", "q1")
    await stage.frontend.ask("innocent", "q2", session="other")
    await deaths(stage, 2, beside="innocent")
    stage.model.will_say("Yes.", to="innocent")
    await deaths(stage, 3)
    await stage.generator()
    end = await stage.end_of("q1")
    assert (end.error.kind, end.error.message) == (
        "gave_up",
        "5 processes died while handling it, 3 of them because of this message alone",
    )
    dead = await stage.frontend.hears(BusDead)
    assert (dead.participant, dead.dead_subject) == (CONSUMER, "query.received")
    assert (await stage.end_of("q2")).answer == "Yes."


async def test_a_query_is_given_up_on_the_journal_s_word_alone(stage: Any) -> None:
    generator = await stage.generator()
    stage.model.will_say("Still", asyncio.Event(), " here.")
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(GenerationToken)
    letter = BusDead(
        participant=CONSUMER, envelope_id="e", dead_subject="query.received",
        error=ErrorInfo(kind="gave_up", message="forged"),
    )  # fmt: skip
    said = await stage.frontend.bus.publish(letter, Trace("q1"))
    await generator.participant.give_up(letter, said)
    assert stage.frontend.of(QueryFailed) == []
    assert (await generator.participant._conversation.turn("q1")).outcome is None


async def test_a_query_that_hangs_in_its_third_process_stops_no_other_session(stage: Any) -> None:
    await stage.frontend.ask("poison", "q1")
    await deaths(stage, 2)
    for text in ("poison", "behind it", "beside it"):
        stage.model.will_say(asyncio.Event() if text == "poison" else "Yes.", to=text)
    await stage.generator()
    await stage.frontend.until(lambda: times_asked(stage, "poison") == 3)
    await stage.frontend.ask("behind it", "q2")
    await stage.frontend.ask("beside it", "q3", session="other")
    assert (await stage.end_of("q3")).answer == "Yes."
    assert [asked.query for asked in stage.model.asked] == [*["poison"] * 3, "beside it"]


@pytest.mark.thorough
async def test_a_query_that_was_begun_is_given_up_in_the_record_of_its_session_too(stage: Any) -> None:
    await stage.journal(max_deliver=1)
    first = await stage.doomed_generator("turn.accepted")
    await stage.frontend.ask("poison", "q1")
    await first.dead()
    for _ in range(2):
        await (await stage.doomed_generator("turn.accepted")).dead()
    await stage.generator()
    failed = await stage.end_of("q1")
    assert failed.error.kind == "gave_up"
    await stage.frontend.ask("poison", "q1")
    assert await stage.frontend.hears(QueryFailed, 2) == failed
    stage.model.will_say("Yes.")
    await stage.frontend.ask("And now?", "q2")
    assert (await stage.end_of("q2")).answer == "Yes."
    assert [message["content"] for message in stage.model.asked[0].messages[1:]] == ["And now?"]


@pytest.mark.thorough
async def test_a_query_that_is_given_up_after_its_end_was_stored_has_that_end(stage: Any) -> None:
    await stage.journal(max_deliver=1)
    stage.model.will_say("Yes.")
    first = await stage.doomed_generator("turn.end_stored")
    await stage.frontend.ask("Well?", "q1")
    await first.dead()
    for _ in range(2):
        await (await stage.doomed_generator("generator.delivered")).dead()
    await stage.generator()
    assert (await stage.end_of("q1")).answer == "Yes."
    assert [dead.error.kind for dead in stage.frontend.of(BusDead)] == ["gave_up"]


@pytest.mark.thorough
async def test_a_letter_that_kills_processes_too_is_followed_by_another_and_the_query_ends(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.journal(max_deliver=1)
    first = await stage.doomed_generator("generator.delivered")
    await stage.frontend.ask("poison", "q1")
    await first.dead()
    for _ in range(2):
        await (await stage.doomed_generator("generator.delivered")).dead()

    with monkeypatch.context() as patch:
        patch.setattr(OutcomePublisher, "fail_unstored", lambda *_: stage.reach("letter"))
        for _ in range(3):
            await (await stage.doomed_generator("letter")).dead()
    await stage.generator()
    await stage.frontend.hears(BusDead, 2)
    assert [dead.dead_subject for dead in stage.frontend.of(BusDead)] == ["query.received", "bus.dead"]
    assert (await stage.end_of("q1")).error.kind == "gave_up"


async def test_a_turn_whose_process_died_after_its_cancellation_ends_with_what_was_said(stage: Any, dice: Any) -> None:
    first = await stage.generator()
    await stage.tool(dice)
    dice.may_fall.clear()
    stage.model.will_say("I roll.", ToolCall("dice", {}))
    await stage.frontend.ask("Roll!", "q1")
    await asyncio.wait_for(dice.started.wait(), 90)
    conversation = first.participant._conversation
    store = conversation.cancel

    async def cancel_and_die(query_id: str) -> None:
        await store(query_id)
        first.die()

    conversation.cancel = cancel_and_die
    stage.model.will_say(asyncio.Event())  # the tool may hear of it first, and be done before the turn is
    await stage.frontend.cancel("q1")
    await first.dead()
    await stage.generator()
    response = await stage.end_of("q1")
    assert (response.status, response.answer) == ("cancelled", "I roll.")


async def test_a_cancellation_that_was_acknowledged_outlives_the_process(stage: Any) -> None:
    first = await stage.generator()
    stuck = asyncio.Event()

    async def never(*_: Any) -> None:
        stuck.set()
        await asyncio.Event().wait()

    first.participant._conversation.finish = never
    stage.model.will_say("So far", asyncio.Event())
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(GenerationToken)
    await stage.frontend.cancel("q1")
    await asyncio.wait_for(stuck.wait(), 90)
    await stage.frontend.hears(JournalAck, consumer=CANCELS)
    await first.kill()
    await stage.generator()
    assert (await stage.end_of("q1")).status == "cancelled"
    assert len(stage.model.asked) == 1


@pytest.mark.thorough
async def test_a_cancellation_of_a_query_still_to_come_outlives_the_process(stage: Any) -> None:
    first = await stage.generator()
    await stage.frontend.cancel("q1")
    await stage.frontend.hears(JournalAck, consumer=CANCELS)
    await first.kill()
    await stage.generator()
    await stage.frontend.ask("Well?", "q1")
    assert (await stage.end_of("q1")).error.kind == "cancelled"
    assert stage.model.asked == []
