"""A generator whose place is taken, or that is asked to stop, or that comes back to a journal that knows nothing."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from local.bus.messages import AgentTransition, BusDead, GenerationToken, QueryFailed, ResponseGeneration
from local.core.errors import StoreFull
from local.generator import output as outcomes
from local.journal import client as journal_consumer
from local.journal.messages import JournalConfirmed, JournalFenced
from local.journal.store import JournalStore
from local.models.chat import ToolCall
from local.runtime.runner import STOP_SECONDS


async def test_a_second_process_takes_over_and_the_first_one_ends(
    stage: Any, dice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_consumer, "WORKING_SECONDS", 0.02)
    first = await stage.generator()
    await stage.tool(dice)
    stage.model.will_say(ToolCall("dice", {}))
    stage.model.will_say("The", asyncio.Event())
    await stage.frontend.ask("Roll!", "q1")
    await stage.frontend.hears(GenerationToken)
    stage.model.will_say("The five.")
    await stage.generator()
    await stage.frontend.hears(JournalFenced, instance=first.bus.instance)
    await first.ended()
    response = await stage.end_of("q1")
    assert (response.status, response.answer) == ("answered", "The five.")
    assert (len(stage.model.asked), dice.rolls) == (3, [6])


async def test_a_process_that_was_replaced_and_does_not_know_it_yet_says_nothing_of_the_end_of_its_turns(
    stage: Any,
) -> None:
    first = await stage.generator()
    thawed, slow = asyncio.Event(), asyncio.Event()
    stage.model.will_say("One", thawed, ".")
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(GenerationToken, text="One")
    stage.model.will_say("Two", slow, ".")
    await stage.generator()
    await stage.frontend.hears(GenerationToken, text="Two")
    thawed.set()
    await first.ended()
    assert stage.frontend.of(ResponseGeneration) == []
    slow.set()
    assert (await stage.end_of("q1")).answer == "Two."
    assert stage.frontend.of(AgentTransition, action="FAIL") == stage.frontend.of(QueryFailed) == []


@pytest.mark.thorough
async def test_asked_to_stop_again_and_again_in_a_long_turn_it_does_so_at_once_and_is_never_given_up(
    stage: Any,
) -> None:
    await stage.journal(max_deliver=1)
    for attempt in range(1, 4):
        stage.model.will_say("The", asyncio.Event())
        served = await stage.generator()
        if attempt == 1:
            await stage.frontend.ask("Well?", "q1")
        await stage.frontend.hears(GenerationToken, attempt=attempt)
        started = time.monotonic()
        await served.stop()
        assert time.monotonic() - started < STOP_SECONDS / 2
    stage.model.will_say("The end.")
    await stage.generator()
    assert (await stage.end_of("q1")).answer == "The end."
    assert stage.frontend.of(BusDead) == []


@pytest.mark.parametrize(
    "failpoint",
    [
        "turn.step_stored",
        *(pytest.param(point, marks=pytest.mark.thorough) for point in ("turn.accepted", "turn.end_stored")),
    ],
)
async def test_where_the_journal_was_lost_it_hands_in_what_is_open_and_ends_it(
    stage: Any, dice: Any, failpoint: str
) -> None:
    stage.loses_live_queries = True
    first = await stage.doomed_generator(failpoint)
    await stage.tool(dice)
    stage.model.will_say(ToolCall("dice", {}))
    stage.model.will_say("A 5.")
    asked = await stage.frontend.ask("Roll!", "q1")
    await first.dead()
    await stage.no_journal()
    lose_journal(stage.database.parent)
    await stage.journal()
    await stage.generator()
    response = await stage.end_of("q1")
    assert (response.answer, len(stage.model.asked), dice.rolls) == ("A 5.", 2, [6])
    [envelope] = stage.frontend.envelopes(ResponseGeneration)
    assert (envelope.cause_id, envelope.session_id, envelope.user_id) == (asked.id, "s", "user")


@pytest.mark.thorough
async def test_what_the_journal_has_no_room_for_is_handed_in_until_it_has(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "RETRY_SECONDS", 0.01)
    first = await stage.doomed_generator("turn.accepted")
    asked = await stage.frontend.ask("Well?", "q1")
    await first.dead()
    await stage.no_journal()
    lose_journal(stage.database.parent)
    commit = JournalStore.commit

    async def has_no_room(store: JournalStore, new: Any, *changes: Any) -> Any:
        if any(entry.envelope_id == asked.id for entry in new):
            raise StoreFull("journal.db: the disk is full")
        return await commit(store, new, *changes)

    stage.model.will_say("Yes.")
    with monkeypatch.context() as patch:
        patch.setattr(JournalStore, "commit", has_no_room)
        await stage.journal()
        await stage.generator()
        await stage.frontend.hears(JournalConfirmed, 2, refused=(asked.id,))
    assert (await stage.end_of("q1")).answer == "Yes."


def lose_journal(folder: Path) -> None:
    for path in folder.glob("journal.db*"):
        path.unlink()
