"""A record that cannot be written for a while: everything waits, nothing fails."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from local.bus.message import Message
from local.bus.messages import GenerationToken, ParticipantStatus, QueryAccepted, QueryFailed, ResponseGeneration
from local.core.database import Database
from local.core.errors import NotConfirmed, StoreFull
from local.generator import queue as turn_queue
from local.models.chat import ToolCall
from local.runtime.runner import STOP_SECONDS, STORE_PROBLEM

Break = Callable[..., asyncio.Event]


@pytest.fixture
def breaks(monkeypatch: pytest.MonkeyPatch) -> Break:
    """`breaks(generator, "accept", times)`: the disk is full that often for query q1; the event is that it was."""
    monkeypatch.setattr(turn_queue, "RETRY_SECONDS", 0.01)

    def begin(served: Any, method: str, times: int = 10**9) -> asyncio.Event:
        conversation, left, was_full = served.participant._conversation, iter(range(times)), asyncio.Event()
        works = getattr(conversation, method)

        async def fails(first: Any, *others: Any, **how: Any) -> Any:
            if getattr(first, "query_id", first) == "q1" and next(left, None) is not None:
                was_full.set()
                raise StoreFull("conversation.db: the disk is full")
            return await works(first, *others, **how)

        monkeypatch.setattr(conversation, method, fails)
        return was_full

    return begin


async def test_a_query_waits_until_it_can_be_stored_and_so_does_what_comes_after_it_in_its_session(
    stage: Any, breaks: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.loses_live_queries = True
    served = await stage.generator()
    works = served.participant._conversation.accept
    was_full = breaks(served, "accept")
    for name in ("first", "second", "other"):
        stage.model.will_say(f"The {name}.", to=name)
    await stage.frontend.ask("first", "q1")
    await asyncio.wait_for(was_full.wait(), 90)
    await stage.frontend.ask("second", "q2")
    await stage.frontend.ask("other", "q3", session="other")
    assert (await stage.end_of("q3")).answer == "The other."
    assert [asked.query for asked in stage.model.asked] == ["other"]
    monkeypatch.setattr(served.participant._conversation, "accept", works)
    assert (await stage.end_of("q1")).answer == "The first."
    assert (await stage.end_of("q2")).answer == "The second."
    assert [message["content"] for message in stage.model.asked[-1].messages[1:]] == ["first", "The first.", "second"]
    assert stage.frontend.of(QueryFailed) == []


async def test_a_generator_that_cannot_store_a_query_says_so_in_its_status(stage: Any) -> None:
    await stage.generator()
    file = stage.database
    aside = file.rename(file.with_name("aside.db"))

    def problems() -> list[str]:
        told = [status for status in stage.frontend.of(ParticipantStatus) if status.name == "generator"]
        return [status.details.get(STORE_PROBLEM, "") for status in told]

    await stage.frontend.ask("first", "q1")
    await stage.frontend.until(lambda: any(str(file) in problem for problem in problems()))
    stage.model.will_say("The first.")
    aside.rename(file)
    assert (await stage.end_of("q1")).answer == "The first."
    await stage.frontend.until(lambda: problems()[-1] == "")


@pytest.mark.parametrize(("method", "said"), [("add_steps", [3, 1]), ("finish", [1, 3])])
async def test_a_turn_that_cannot_be_stored_goes_on_from_its_last_step_until_it_can(
    stage: Any, dice: Any, breaks: Break, method: str, said: list[int]
) -> None:
    served = await stage.generator()
    await stage.tool(dice)
    breaks(served, method, 2)
    for message, times in zip((ToolCall("dice", {}), "A 5."), said, strict=True):
        for _ in range(times):
            stage.model.will_say(message, to="Roll!")
    stage.model.will_say("So it is.", to="Really?")
    await stage.frontend.ask("Roll!", "q1")
    await stage.frontend.ask("Really?", "q2")
    assert (await stage.end_of("q1")).answer == "A 5."
    assert (await stage.end_of("q2")).answer == "So it is."
    assert [asked.query for asked in stage.model.asked] == ["Roll!"] * 4 + ["Really?"]
    assert dice.rolls == [6]
    assert [response.status for response in stage.frontend.of(ResponseGeneration)] == ["answered", "answered"]


async def test_a_call_leaves_and_an_answer_is_given_only_when_that_is_on_the_disk_and_results_wait_for_no_disk(
    stage: Any, dice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.generator()
    commit, commits = Database._commit_together, []

    def noted(self: Any, group: Any) -> Any:
        outcomes = commit(self, group)
        if "conversation" in self._path.name:
            commits.append((len(stage.model.asked), len(dice.rolls), self._is_synced))
        return outcomes

    monkeypatch.setattr(Database, "_commit_together", noted)
    await stage.tool(dice)
    stage.model.will_say(ToolCall("dice", {}))
    stage.model.will_say("A 5.")
    await stage.frontend.ask("Roll!", "q1")
    assert (await stage.end_of("q1")).answer == "A 5."
    accepted, step, results, end = (1, 0, False), (1, 0, True), (1, 1, False), (2, 1, True)
    assert (accepted, step, results, end) in zip(commits, commits[1:], commits[2:], commits[3:], strict=False), commits


async def test_a_turn_that_is_cancelled_while_it_cannot_be_stored_ends_as_cancelled(stage: Any, breaks: Break) -> None:
    served = await stage.generator()
    was_full = breaks(served, "finish", 3)
    stage.model.will_say("So far", asyncio.Event())
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(GenerationToken)
    await stage.frontend.cancel("q1")
    await asyncio.wait_for(was_full.wait(), 90)
    assert (await stage.end_of("q1")).status == "cancelled"
    assert len(stage.model.asked) == 1


@pytest.mark.thorough
async def test_the_live_cancel_of_a_turn_whose_end_cannot_be_stored_holds_before_the_one_on_record_comes(
    stage: Any, breaks: Break
) -> None:
    served = await stage.generator()
    breaks(served, "finish", 3)
    stage.model.will_say("So far", asyncio.Event())
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(GenerationToken)
    served.participant._turns.stop("q1")
    assert (await stage.end_of("q1")).status == "cancelled"
    assert len(stage.model.asked) == 1


@pytest.mark.thorough
async def test_a_cancellation_that_cannot_be_stored_comes_again(stage: Any, breaks: Break) -> None:
    await stage.journal(ack_wait_seconds=0.1)
    served = await stage.generator()
    breaks(served, "cancel", 1)
    stage.model.will_say("So far", asyncio.Event())
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(GenerationToken)
    await stage.frontend.cancel("q1")
    response = await stage.end_of("q1")
    assert (response.status, response.answer) == ("cancelled", "So far")


@pytest.mark.thorough
async def test_a_query_in_line_whose_cancellation_cannot_be_stored_as_its_end_comes_again_and_ends(
    stage: Any, breaks: Break
) -> None:
    await stage.journal(ack_wait_seconds=0.1)
    served = await stage.generator()
    slow = asyncio.Event()
    stage.model.will_say(slow, "One.", to="first")
    await stage.frontend.ask("first", "q0")
    await stage.frontend.ask("second", "q1")
    await stage.frontend.hears(QueryAccepted, query_id="q1")
    breaks(served, "finish", 1)
    await stage.frontend.cancel("q1")
    slow.set()
    end = await stage.end_of("q1")
    assert (end.error.kind if isinstance(end, QueryFailed) else end.status) == "cancelled"
    assert (await stage.end_of("q0")).answer == "One."


@pytest.mark.parametrize("method", ["finish", pytest.param("accept", marks=pytest.mark.thorough)])
async def test_a_generator_that_waits_for_its_disk_stops_at_once_when_asked_to(
    stage: Any, breaks: Break, method: str
) -> None:
    served = await stage.generator()
    was_full = breaks(served, method)
    for _ in range(2):
        stage.model.will_say("Yes.")
    await stage.frontend.ask("Well?", "q1")
    await asyncio.wait_for(was_full.wait(), 90)
    started = time.monotonic()
    await served.stop()
    assert time.monotonic() - started < STOP_SECONDS / 2
    await stage.generator()
    assert (await stage.end_of("q1")).answer == "Yes."


async def test_a_query_whose_acceptance_could_not_be_told_is_answered_and_never_called_failed(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.journal(ack_wait_seconds=0.1)
    served = await stage.generator()
    publish = served.bus.publish

    async def publish_no_acceptance(message: Message, *arguments: Any, **options: Any) -> Any:
        if isinstance(message, QueryAccepted):
            raise NotConfirmed(message.subject, 30.0)
        return await publish(message, *arguments, **options)

    monkeypatch.setattr(served.bus, "publish", publish_no_acceptance)
    stage.model.will_say("Yes.")
    await stage.frontend.ask("Well?", "q1")
    assert (await stage.end_of("q1")).answer == "Yes."
