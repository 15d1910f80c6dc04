"""What agents tell each other."""

from __future__ import annotations

import json

import pytest
from agent_stage.hostile_web import MailTool
from agent_stage.stage import Stage
from agent_stage.swarm_stage import asked, swarm

from local.bus.messages import QueryReceived, ResponseGeneration
from local.models.chat import ToolCall
from local.swarm.messages import AgentChanged

pytestmark = pytest.mark.usefixtures("large_model")  # agents are not on the lists of smaller ones


async def test_agents_write_to_each_other_and_what_strangers_said_is_marked(stage: Stage) -> None:
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
    stage.model.will_say("It has happened.", to=waiter)
    stage.model.will_say("Done.", to="Go")
    await stage.door.ask("Go", "q")
    await stage.end_of("q")
    waited = next(each for each in stage.door.of(ResponseGeneration) if each.agent == "agent-2")
    assert waited.tainted and json.loads(waited.tool_calls[0].result or "") == {
        "number": 1,
        "from": "agent",
        "text": "now",
    }
    await first.kill()  # what was written is on record
    await swarm(stage, offer="all")
    for _ in range(2):
        stage.model.will_say(ToolCall("check_inbox", {}), to="Any news?")
    stage.model.will_say("Yes.", to="Any news?")
    await stage.door.ask("Any news?", "q2", session="s")
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
    await stage.door.ask("Go", "q")
    begun = await stage.end_of("q")
    assert isinstance(begun, ResponseGeneration)
    await stage.door.hears(AgentChanged, state="ENDED")
    [query] = [query for query in stage.door.of(QueryReceived) if query.task is not None]
    assert query.task is not None and query.task.in_background
    stage.model.will_say(ToolCall("check_inbox", {}), to="And?")
    stage.model.will_say("One.", to="And?")
    await stage.door.ask("And?", "q2")
    answer = await stage.end_of("q2")
    assert isinstance(answer, ResponseGeneration)
    assert '"answer": "one"' in (answer.tool_calls[0].result or "")
