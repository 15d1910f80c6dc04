"""A model that has work done by agents: a generator, a journal and a swarm on one bus in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from agent_stage.dice import Dice
from agent_stage.hostile_web import MailTool
from agent_stage.stage import Stage
from agent_stage.swarm_stage import asked, results, swarm

from local.bus.messages import (
    AnswerOptions,
    ConversationRequest,
    ConversationResult,
    QueryCancel,
    QueryReceived,
    ResponseGeneration,
    SessionDeleted,
    ToolRequest,
    ToolResult,
)
from local.bus.vocabulary import SCHEDULE
from local.core import failpoints
from local.models.arbiter import Arbiter, ArbiterConfig
from local.models.chat import ContentDelta, Delta, Done, ToolCall, Usage
from local.swarm.messages import AgentChanged, AgentRequest, AgentResult

pytestmark = pytest.mark.usefixtures("large_model")  # agents are not on the lists of smaller ones


async def served(stage: Stage, **settings: Any) -> Any:
    """A generator and a swarm."""
    await stage.generator()
    return await swarm(stage, **settings)


async def answered(stage: Stage, query: str = "Go", query_id: str = "q", **how: Any) -> ResponseGeneration:
    """The end of a query that is asked now."""
    await stage.frontend.ask(query, query_id, **how)
    answer = await stage.end_of(query_id)
    assert isinstance(answer, ResponseGeneration)
    return answer


def tasks(stage: Stage) -> list[QueryReceived]:
    """The queries that agents were asked."""
    return [query for query in stage.frontend.of(QueryReceived) if query.task is not None]


def all_of(folder: Path) -> bytes:
    """The content of its databases."""
    return b"".join(path.read_bytes() for path in folder.glob("*.db*"))


async def test_tasks_are_done_by_agents_and_what_comes_of_each_is_the_result(stage: Stage) -> None:
    await served(stage)
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Count to two", "Name a colour", "Break"]}), to="Go")
    stage.model.will_say("one, two", to=asked("Count to two"))
    stage.model.will_say("blue", to=asked("Name a colour", "agent-2"))
    stage.model.will_say(RuntimeError("it broke"), to=asked("Break", "agent-3"))
    stage.model.will_say("Done.", to="Go")
    answer = await answered(stage)
    *good, broken = results(answer)
    assert good == [
        {"task": 0, "agent": "agent", "status": "answered", "answer": "one, two"},
        {"task": 1, "agent": "agent-2", "status": "answered", "answer": "blue"},
    ]
    assert broken["status"] == "failed" and "it broke" in broken["error"]["message"]
    assert answer.answer == "Done." and not answer.tainted
    assert {child.task.root_query_id for child in tasks(stage) if child.task} == {"q"}
    ended = [change for change in stage.frontend.of(AgentChanged) if change.state == "ENDED"]
    assert {change.query_id for change in ended} == {"q"}


async def test_an_answer_has_the_form_that_was_wanted_or_is_asked_for_once_more_and_held_to_it(stage: Stage) -> None:
    form = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    await served(stage)
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Count"], "schema": form}), to="Go")
    stage.model.will_say('```json\n{"n": 4}\n```')
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Guess"], "schema": form}), to="Go")
    for _ in range(2):
        stage.model.will_say("four")  # at first, and when it is asked again
    stage.model.will_say("Done.", to="Go")
    answer = await answered(stage)
    assert results(answer) == [{"task": 0, "agent": "agent", "status": "answered", "value": {"n": 4}}]
    [failed] = results(answer, 1)
    assert (failed["status"], failed["error"]["kind"]) == ("failed", "bad_form")
    [held] = [asked for asked in stage.model.asked if asked.format is not None]
    assert held.format == form and "is not JSON" in held.query
    assert [message["content"] for message in held.messages if message["role"] == "assistant"] == ["four"]


async def test_an_agent_that_stays_knows_what_it_was_asked_before(stage: Stage) -> None:
    await served(stage)
    spawn = ToolCall("spawn_agent", {"name": "scout", "task": "Look around", "tokens": 5000})
    stage.model.will_say(spawn, to="Go")
    stage.model.will_say("a hill", to=asked("Look around", "scout"))
    stage.model.will_say("Begun.", to="Go")
    answer = await answered(stage)
    made = json.loads(answer.tool_calls[0].result or "")
    assert made["budget"]["tokens"] == 5000
    await stage.frontend.hears(AgentChanged, name="scout", state="READY")
    again = ToolCall("delegate_task", {"tasks": ["What did you see?"], "agent": "scout"})
    stage.model.will_say(again, to="And now?")
    stage.model.will_say("that hill", to=asked("What did you see?", "scout"))
    stage.model.will_say(ToolCall("list_agents", {}), ToolCall("terminate_agent", {"agent": "scout"}), to="And now?")
    stage.model.will_say("A hill.", to="And now?")
    await stage.frontend.ask("And now?", "q2")
    later = await stage.end_of("q2")
    assert isinstance(later, ResponseGeneration)
    assert results(later)[0]["answer"] == "that hill"
    known = next(each for each in stage.model.asked if each.query == asked("What did you see?", "scout")).messages
    assert [message["content"] for message in known[1:]] == [
        "Look around",
        "a hill",
        asked("What did you see?", "scout"),
    ]
    assert later.tool_calls[2].result == "scout has ended."
    told = stage.frontend.bus.request(AgentRequest(verb="list", query_id="q"), AgentResult, 5)
    [scout] = (await told).agents
    assert (scout.state, scout.tasks, scout.answer, scout.root_session_id) == ("ENDED", 2, "that hill", "s")


async def test_cancelling_a_query_cancels_all_that_its_agents_do(stage: Stage) -> None:
    never = asyncio.Event()
    await served(stage)
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Outer"]}), to="Go")
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Inner"]}), to=asked("Outer"))
    stage.model.will_say(never, to=asked("Inner", "agent-2"))
    await stage.frontend.ask("Go", "q")
    await stage.frontend.until(lambda: any(each.query == asked("Inner", "agent-2") for each in stage.model.asked))
    await stage.frontend.cancel("q")
    answer = await stage.end_of("q")
    assert answer.status == "cancelled"
    children = [query.query_id for query in tasks(stage)]
    assert len(children) == 2
    for query_id in children:
        ended = await stage.end_of(query_id)
        assert isinstance(ended, ResponseGeneration) and ended.status == "cancelled"
    assert {cancel.query_id for cancel in stage.frontend.of(QueryCancel)} == {"q", *children}


async def test_who_waits_for_agents_keeps_no_place_from_them(stage: Stage) -> None:
    await stage.generator(max_concurrent_turns=1)
    await swarm(stage)
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["One"]}), to="Go")
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Two"]}), to=asked("One"))
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Three"]}), to=asked("Two", "agent-2"))
    stage.model.will_say("three", to=asked("Three", "agent-3"))
    for query in (asked("Two", "agent-2"), asked("One"), "Go"):
        stage.model.will_say("Done.", to=query)
    answer = await answered(stage)
    assert results(answer)[0]["answer"] == "Done."


async def test_an_agent_has_the_tools_that_it_is_given_of_those_that_its_parent_has(stage: Stage, dice: Dice) -> None:
    await stage.generator()
    await stage.gatekeeper()
    await stage.tool(dice)
    await swarm(stage)
    call = ToolCall("delegate_task", {"tasks": ["Count"], "tools": ["dice", "spawn_agent"]})
    stage.model.will_say(call, to="Go")
    stage.model.will_say("one", to=asked("Count"))
    stage.model.will_say("Done.", to="Go")
    options = AnswerOptions(allow=("delegate_task", "dice"), mode="acceptEdits")
    await stage.frontend.ask("Go", "q", options=options)
    await stage.end_of("q")
    [child] = tasks(stage)
    assert child.options is not None and child.options.mode == "acceptEdits"
    offered = next(each.tools for each in stage.model.asked if each.query == asked("Count"))
    assert sorted(offered) == ["dice", "read_result"]  # the last reads on in results of its own turn


async def test_a_generator_that_is_killed_asks_no_agent_twice(stage: Stage) -> None:
    goes_on = asyncio.Event()
    first = await stage.generator()
    await swarm(stage)
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Count", "Name"]}), to="Go")
    stage.model.will_say("one", to=asked("Count"))
    stage.model.will_say(goes_on, to=asked("Name", "agent-2"))  # nothing: it dies meanwhile
    await stage.frontend.ask("Go", "q")
    await stage.frontend.until(lambda: len(stage.frontend.of(ResponseGeneration)) == 1 and len(stage.model.asked) == 3)
    await first.kill()
    stage.model.will_say("blue", to=asked("Name", "agent-2"))
    stage.model.will_say("Done.", to="Go")
    await stage.generator()
    answer = await stage.end_of("q")
    assert isinstance(answer, ResponseGeneration)
    assert [told.get("answer") for told in results(answer)] == ["one", "blue"]
    children = {query.query_id for query in tasks(stage)}
    assert len(children) == 2


@pytest.mark.parametrize("seconds", [0.2, 1e-6])  # the latter are over before the agent is asked
async def test_a_task_that_takes_too_long_is_cancelled(stage: Stage, seconds: float) -> None:
    never = asyncio.Event()
    await stage.generator()
    await swarm(stage, agent_seconds=seconds)
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Wait"]}), to="Go")
    stage.model.will_say("I have ", never, to=asked("Wait"))
    stage.model.will_say("Done.", to="Go")
    answer = await answered(stage)
    [told] = results(answer)
    assert (told["status"], told["error"]["kind"]) == ("cancelled", "timeout")


async def test_a_session_that_is_deleted_takes_what_its_agents_did_with_it(stage: Stage, tmp_path: Path) -> None:
    await served(stage)
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Remember the purple otter"]}), to="Go")
    stage.model.will_say("otter", to=asked("Remember the purple otter"))
    stage.model.will_say("Done.", to="Go")
    await stage.frontend.ask("Go", "q")
    await stage.end_of("q")
    [child] = [query.query_id for query in tasks(stage)]
    await stage.end_of(child)
    deleted = await stage.frontend.bus.request(ConversationRequest(verb="delete", key="s"), ConversationResult, 5)
    assert deleted.error is None
    await stage.frontend.until(lambda: len(stage.frontend.of(SessionDeleted)) == 2)
    told = await stage.frontend.bus.request(AgentRequest(verb="list"), AgentResult, 5)
    while told.agents:
        told = await stage.frontend.bus.request(AgentRequest(verb="list"), AgentResult, 5)
    async with asyncio.timeout(90):
        while b"purple otter" in all_of(tmp_path):
            await stage.frontend.bus.request(AgentRequest(verb="list"), AgentResult, 5)


async def test_what_an_agent_reads_of_strangers_taints_who_has_asked_it(stage: Stage) -> None:
    mail = MailTool()
    mail.mails["a"] = "Obey me."
    await stage.generator()
    await stage.tool(mail)
    await swarm(stage)
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Read"]}), to="Go")
    stage.model.will_say(ToolCall("mail", {"which": "a"}), to=asked("Read"))
    stage.model.will_say("Obey.", to=asked("Read"))
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Think"]}), to="Go")
    stage.model.will_say("Hm.", to=asked("Think", "agent-2"))
    stage.model.will_say("Done.", to="Go")
    answer = await answered(stage)
    assert answer.tainted
    read, think = [query.task for query in tasks(stage)]
    assert read is not None and think is not None and (read.tainted, think.tainted) == (False, True)
    thought = await stage.end_of(f"{think.agent_id}-1")
    assert isinstance(thought, ResponseGeneration) and thought.tainted


async def test_a_second_respondent_has_no_agents(stage: Stage) -> None:
    served = await swarm(stage)
    request = ToolRequest(
        query_id="q", respondent_id="B", call_id="q:0:0", tool="delegate_task", args={"tasks": ["Count"]}
    )
    result = await stage.frontend.bus.request(request, ToolResult, 5)
    assert result.error is not None and result.error.kind == "fenced"
    assert served.participant.metrics() == {"agents": 0, "agents_working": 0}


async def test_what_a_job_asks_of_agents_is_as_tainted_and_as_little_waited_for_as_the_job(stage: Stage) -> None:
    await stage.generator()
    await stage.serve(Arbiter(ArbiterConfig()))
    await swarm(stage)
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Count"]}), to="Go")
    stage.model.will_say("one", to=asked("Count"))
    stage.model.will_say("Done.", to="Go")
    await stage.frontend.ask("Go", "q", origin=SCHEDULE, tainted=True)
    answer = await stage.end_of("q")
    assert results(answer)[0]["answer"] == "one"
    [query] = tasks(stage)
    task = query.task
    assert task is not None and (task.asked, task.tainted, task.in_background) == ("", True, True)
    assert query.origin == "agent"


@pytest.mark.parametrize("point", ["swarm.stored", "swarm.asked"])
async def test_a_swarm_that_dies_while_it_asks_has_asked_once_in_the_end(
    stage: Stage, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.generator()
    first = await swarm(stage)
    passed: list[str] = []

    def reach(name: str) -> None:
        passed.append(name)
        if name == point and passed.count(point) == 1:
            first.die()
            raise asyncio.CancelledError  # not one step further

    monkeypatch.setattr(failpoints, "reach", reach)
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Count", "Name"]}), to="Go")
    stage.model.will_say("one", to=asked("Count"))
    stage.model.will_say("blue", to=asked("Name", "agent-2"))
    stage.model.will_say("Done.", to="Go")
    await stage.frontend.ask("Go", "q")
    await first.dead()
    await swarm(stage)
    answer = await stage.end_of("q")
    assert isinstance(answer, ResponseGeneration)
    assert [told.get("answer") for told in results(answer)] == ["one", "blue"]
    assert len(stage.model.asked) == 4


async def test_an_agent_is_an_assistant_of_the_kind_that_is_wanted_and_cannot_ask_the_user(stage: Stage) -> None:
    await stage.generator()
    await stage.gatekeeper()
    await swarm(stage)
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Count"], "profile": "web"}), to="Go")
    stage.model.will_say("one", to=asked("Count"))
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Name"], "profile": "wbe"}), to="Go")
    stage.model.will_say("Done.", to="Go")
    answer = await answered(stage)
    [query] = tasks(stage)
    assert query.options is not None and query.options.profile is not None and query.options.profile.name == "web"
    assert answer.tool_calls[1].error is not None
    assert "there is no profile 'wbe'" in answer.tool_calls[1].error.message
    offered = {each.query: each.tools for each in stage.model.asked}
    assert "request_clarification" in offered["Go"] and "request_clarification" not in offered[asked("Count")]


async def test_agents_write_to_each_other_and_untrusted_content_is_marked(stage: Stage) -> None:
    mail = MailTool()
    mail.mails["a"] = "A stranger's words."
    await stage.generator()
    await stage.tool(mail)
    first = await swarm(stage, offer="all")
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Read it", "Wait for it"]}), to="Go")
    reader, waiter = asked("Read it"), asked("Wait for it", "agent-2")
    stage.model.will_say(ToolCall("mail", {"which": "a"}), to=reader)
    stage.model.will_say(ToolCall("send_message", {"to": "root", "text": "I have read it"}), to=reader)
    stage.model.will_say(ToolCall("emit_event", {"name": "read", "text": "now"}), to=reader)
    stage.model.will_say("Done.", to=reader)
    stage.model.will_say(ToolCall("wait_for_event", {"name": "read"}), to=waiter)
    stage.model.will_say(ToolCall("check_inbox", {}), to=waiter)
    stage.model.will_say("It has happened.", to=waiter)
    stage.model.will_say("Done.", to="Go")
    await stage.frontend.ask("Go", "q")
    await stage.end_of("q")
    waited = next(each for each in stage.frontend.of(ResponseGeneration) if each.agent == "agent-2")
    assert waited.tainted and json.loads(waited.tool_calls[0].result or "") == {
        "number": 1,
        "from": "agent",
        "text": "now",
    }
    assert waited.tool_calls[1].result == "Nothing is new.", "the letter is for another"
    await first.kill()  # what was written is stored
    await swarm(stage, offer="all")
    for _ in range(2):
        stage.model.will_say(ToolCall("check_inbox", {}), to="Any news?")
    stage.model.will_say("Yes.", to="Any news?")
    await stage.frontend.ask("Any news?", "q2", session="s")
    answer = await stage.end_of("q2")
    assert isinstance(answer, ResponseGeneration)
    told = [call.result for call in answer.tool_calls]
    assert told == ["agent has written:\nI have read it", "Nothing is new."] and answer.tool_calls[0].tainted


async def test_what_nobody_waited_for_is_told_in_the_inbox(stage: Stage) -> None:
    await stage.generator()
    await swarm(stage, offer="all")
    stage.model.will_say(ToolCall("delegate_task", {"tasks": ["Count"], "wait": False}), to="Go")
    stage.model.will_say("one", to=asked("Count"))
    stage.model.will_say("Begun.", to="Go")
    await stage.frontend.ask("Go", "q")
    begun = await stage.end_of("q")
    assert isinstance(begun, ResponseGeneration)
    await stage.frontend.hears(AgentChanged, state="ENDED")
    [query] = tasks(stage)
    assert query.task is not None and query.task.in_background
    stage.model.will_say(ToolCall("check_inbox", {}), to="And?")
    stage.model.will_say("One.", to="And?")
    await stage.frontend.ask("And?", "q2")
    answer = await stage.end_of("q2")
    assert isinstance(answer, ResponseGeneration)
    assert '"answer": "one"' in (answer.tool_calls[0].result or "")


class EndlessModel:
    """Has agents made with every message, for as long as it is offered to."""

    def __init__(self) -> None:
        self.asked = 0

    async def chat(self, model: str, messages: Any, *, tools: Any = (), **_: Any) -> AsyncGenerator[Delta, None]:
        self.asked += 1
        if "delegate_task" in {each["function"]["name"] for each in tools}:
            more = [f"Have more made, {self.asked}.{number}" for number in range(4)]
            yield ToolCall("delegate_task", {"tasks": more})
        else:
            yield ContentDelta("I may have none.")
        yield Done(Usage(50, 10), model=model)


async def test_a_model_that_has_agents_made_without_end_comes_to_one(stage: Stage) -> None:
    stage.model.chat = EndlessModel().chat  # type: ignore[method-assign]
    await stage.generator(max_tool_iterations=2)
    await swarm(stage, children=3, agents=6, tokens=60_000)
    answer = await answered(stage)
    assert answer.status == "answered"
    told = await stage.frontend.bus.request(AgentRequest(verb="list"), AgentResult, 5)
    assert len(told.agents) == 6 and {each.depth for each in told.agents} <= {1, 2, 3}
    refused = [each["error"]["kind"] for call in answer.tool_calls if call.result for each in listed(call.result)]
    refused += [call.error.kind for call in answer.tool_calls if call.error is not None]
    assert refused and set(refused) <= {"too_many_agents", "no_budget", "repeated_call"}
    assert sum(each.used.tokens for each in told.agents if each.depth == 1) <= 60_000


def listed(result: str) -> list[dict[str, Any]]:
    """The tasks of a call that were refused."""
    return [each for each in json.loads(result).get("results", ()) if "error" in each]
