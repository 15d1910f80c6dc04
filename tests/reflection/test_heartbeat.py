"""A heartbeat beside a memory: when goals are checked, what is said of them, and what outlives a death."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from agent_stage.night import NOON, Night

from local.bus.messages import ModelUsed, ResponseGeneration
from local.core import failpoints
from local.core.errors import ModelError
from local.journal.messages import JournalEntries, JournalRead
from local.memory.messages import MemoryDeleted
from local.models.arbiter import Arbiter, ArbiterConfig
from local.models.chat import Done, Usage
from local.models.lease_messages import LeaseClaim
from local.reflection.goals import HEARTBEAT_FILE as FILE_NAME
from local.reflection.messages import GoalChanged, GoalSaid

HOUR = 3600.0


def found(text: str = "", *, is_done: bool = False) -> str:
    return json.dumps({"has_something_to_say": bool(text), "text": text, "is_done": is_done})


@pytest.fixture
def deadly(night: Night, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], asyncio.Event]:
    """Has the process die at a failpoint."""

    def arm(name: str) -> asyncio.Event:
        died = asyncio.Event()

        def reach(reached: str) -> None:
            if reached == name and not died.is_set():
                died.set()
                night.served.die()
                raise asyncio.CancelledError

        monkeypatch.setattr(failpoints, "reach", reach)
        return died

    return arm


async def test_what_is_to_be_said_is_told_once_with_its_sources_and_shown_until_it_is_seen(
    night: Night, until: Callable[..., Any]
) -> None:
    await night.said("The tax return is due on Friday")
    reflection = await night.begins()
    [goal] = await night.goals("set", text="Hand in the tax return", schedule="every 1h", by="terminal")
    changed = await night.frontend.hears(GoalChanged)
    assert (changed.text, changed.state, changed.by) == ("Hand in the tax return", "active", "terminal")
    night.model.will_say(found("Friday is tomorrow."), Done(Usage(100, 20)))
    night.now = NOON + HOUR + 5
    said = await night.frontend.hears(GoalSaid)
    ids = await night.engram_ids()
    assert (said.goal, said.text, said.due_at, said.sources) == (
        "Hand in the tax return", "Friday is tomorrow.", NOON + HOUR, tuple(ids.values()),
    )  # fmt: skip
    used = await night.frontend.hears(ModelUsed)
    assert (used.purpose, used.about, used.outcome, used.prompt_tokens) == (
        "heartbeat", goal.goal_id, "something to say", 100,
    )  # fmt: skip
    await until(lambda: night.state(FILE_NAME).done_at)
    [told] = await night.goals()
    assert (told.words, told.words_at, told.is_seen, told.checks, told.quiet) == (
        "Friday is tomorrow.", NOON + HOUR, False, 1, 0,
    )  # fmt: skip
    assert reflection.metrics() == {"goals_unseen": 1, "goals_said": 1}
    assert (await night.ask("status", "heartbeat")).tokens_today == 120
    [seen] = await night.goals("seen", goal_id=goal.goal_id, words_at=told.words_at)
    assert seen.is_seen and reflection.metrics() == {"goals_unseen": 0, "goals_said": 1}


async def test_a_check_that_was_killed_before_its_reply_is_not_made_again_for_that_time(
    night: Night, deadly: Callable[[str], asyncio.Event]
) -> None:
    await night.begins()
    await night.goals("set", text="Swim", schedule="every 1h")
    died = deadly("heartbeat.decided")
    night.now = NOON + HOUR
    await asyncio.wait_for(died.wait(), 90)
    await night.served.dead()
    await night.begins()
    assert (await night.ask("status", "heartbeat")).why == "no goal is due"
    night.model.will_say(found("Swim!"))
    night.now = NOON + 2 * HOUR
    assert (await night.frontend.hears(GoalSaid)).due_at == NOON + 2 * HOUR
    assert len(night.model.asked) == 1


async def test_words_that_were_found_before_a_death_are_told_after_it_and_not_asked_for_again(
    night: Night, deadly: Callable[[str], asyncio.Event]
) -> None:
    await night.begins()
    await night.goals("set", text="Swim", schedule="every 1h")
    died = deadly("heartbeat.checked")
    night.model.will_say(found("Swim!"))
    night.now = NOON + HOUR
    await asyncio.wait_for(died.wait(), 90)
    await night.served.dead()
    assert night.frontend.of(GoalSaid) == []
    await night.begins(heartbeat=False)  # what is found is told all the same
    assert (await night.frontend.hears(GoalSaid)).text == "Swim!"
    assert len(night.model.asked) == 1


async def test_of_a_goal_that_is_dropped_while_it_is_checked_nothing_is_said(
    night: Night, until: Callable[..., Any]
) -> None:
    await night.begins()
    [goal] = await night.goals("set", text="Swim", schedule="every 1h")
    ended = asyncio.Event()
    night.model.will_say(ended, found("Swim!"))
    await night.ask("now", "heartbeat")
    await until(lambda: night.model.asked)
    await night.goals("drop", goal_id=goal.goal_id)
    ended.set()
    await until(lambda: night.state(FILE_NAME).done_at)
    assert night.frontend.of(GoalSaid) == []


async def test_a_check_is_made_up_for_when_the_model_is_back(night: Night, until: Callable[..., Any]) -> None:
    reflection = await night.begins()
    await night.goals("set", text="Swim", schedule="every 1h")
    for _ in range(2):
        night.model.will_say(ModelError("no server"))
    night.model.will_say(found("Swim!"))
    night.now = NOON + HOUR
    assert (await night.frontend.hears(GoalSaid)).due_at == NOON + HOUR
    await until(lambda: night.state(FILE_NAME).done_at and "problem" not in reflection.details())
    assert len(night.model.asked) == 3


async def test_a_check_makes_way_for_a_user_and_is_made_afterwards(night: Night) -> None:
    await night.memory.stage.serve(Arbiter(ArbiterConfig()))
    await night.memory.stage.generator()
    await night.begins()
    await night.goals("set", text="Swim")
    for reply in ((asyncio.Event(), "never"), (found("Swim!"),)):
        night.model.will_say(*reply)
    await night.ask("now", "heartbeat")
    await night.frontend.hears(LeaseClaim)
    night.model.will_say("Yes.", to="Shall I go?")
    while not night.model.asked:
        await night.goals()
    await night.frontend.ask("Shall I go?", "q")
    await asyncio.wait_for(night.model.closed_early.wait(), 90)  # the check's call
    assert (await night.frontend.hears(ResponseGeneration)).answer == "Yes."
    assert (await night.frontend.hears(GoalSaid)).text == "Swim!"
    assert [each.query == "Shall I go?" for each in night.model.asked] == [False, True, False]


async def test_a_fault_of_ours_ends_no_routine_and_is_shown(night: Night, until: Callable[..., Any]) -> None:
    reflection = await night.begins()
    await night.goals("set", text="Swim")
    night.model.will_say(RuntimeError("a fault"))
    await night.ask("now", "heartbeat")
    await until(lambda: "problem" in reflection.details())
    assert reflection.details()["problem"] == "heartbeat: RuntimeError: a fault"
    night.model.will_say(found("Swim!"))
    await night.ask("now", "heartbeat")
    await night.frontend.hears(GoalSaid)
    await until(lambda: "problem" not in reflection.details())


async def test_what_rests_on_a_deleted_exchange_is_kept_no_more(night: Night, until: Callable[..., Any]) -> None:
    await night.said("My secret")
    await night.begins()
    await night.goals("set", text="Swim")
    night.model.will_say(found("It is 4711."))
    await night.ask("now", "heartbeat")
    await night.frontend.hears(GoalSaid)
    await until(lambda: night.state(FILE_NAME).done_at)
    [engram_id] = (await night.engram_ids()).values()
    await night.memory.ask("delete", engram_id=engram_id)
    await night.frontend.hears(MemoryDeleted)
    async with asyncio.timeout(90):
        while (await night.goals())[0].words:  # each look is a request over the bus
            pass
    assert "4711" not in (night.folder / "goals.json").read_text()
    recorded = await night.frontend.bus.request(JournalRead(), JournalEntries, 20)
    assert "goal.said" in str(recorded.entries) and "4711" not in str(recorded.entries)


async def test_a_goal_that_cannot_be_kept_is_refused_with_a_reason_and_is_no_fault_of_ours(
    night: Night, caplog: pytest.LogCaptureFixture
) -> None:
    await night.begins(heartbeat_most_goals=1)
    for order, why in (
        ({"text": "  "}, "text: is blank"),
        ({"text": "x" * 1001}, "text: is too long"),
        ({"text": "Swim", "schedule": "sometimes"}, "expected a cron expression"),
        ({"text": "Swim", "schedule": "at 2001-01-01T00:00"}, "that time has passed"),
    ):
        with pytest.raises(AssertionError, match=why):
            await night.goals("set", **order)
    assert await night.goals() == ()
    [goal] = await night.goals("set", text="Swim")
    with pytest.raises(AssertionError, match="which is the maximum"):
        await night.goals("set", text="Run")
    await night.goals("drop", goal_id=goal.goal_id[:6])
    await night.goals("set", text="Run")
    with pytest.raises(AssertionError, match="which is the maximum"):
        await night.goals("reopen", goal_id=goal.goal_id)
    with pytest.raises(AssertionError, match="there is no goal"):
        await night.goals("done", goal_id="none")
    assert "ERROR" not in {record.levelname for record in caplog.records}


async def test_a_check_may_find_nothing_to_say_and_then_that_the_goal_is_reached(
    night: Night, until: Callable[..., Any]
) -> None:
    await night.begins()
    [goal] = await night.goals("set", text="Swim", schedule="every 1h")
    night.model.will_say(found())
    night.now = NOON + 100 * HOUR  # all the times that have passed are one check
    assert (await night.frontend.hears(ModelUsed)).outcome == "nothing to say"
    await until(lambda: night.state(FILE_NAME).done_at)
    [quiet] = await night.goals()
    assert (quiet.checks, quiet.quiet, quiet.words, night.frontend.of(GoalSaid)) == (1, 1, "", [])
    night.now = NOON + 99 * HOUR  # a clock that was put back
    assert (await night.ask("status", "heartbeat")).why == "no goal is due"
    night.model.will_say(found(is_done=True))
    night.now = NOON + 102 * HOUR
    said = await night.frontend.hears(GoalSaid)
    assert (said.is_done, said.text) == (True, "This goal seems to be reached.")
    assert (await night.frontend.hears(GoalChanged, 2)).by == "heartbeat"
    [done] = await night.goals()
    assert (done.state, done.next_at) == ("done", None)
    assert (await night.goals("reopen", goal_id=goal.goal_id))[0].state == "active"
