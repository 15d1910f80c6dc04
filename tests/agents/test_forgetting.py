"""What a user has had deleted from the memory is forgotten by whoever has answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local.bus.messages import (
    ConversationRequest,
    ConversationResult,
    ParticipantStatus,
    QueryAccepted,
    ResponseGeneration,
)
from local.generator.agent import DELETIONS
from local.journal.messages import JournalAck, JournalRedact, JournalRedacted
from local.memory.messages import MemoryDeleted
from local.models.chat import ToolCall
from local.runtime.participant import Settingless
from local.tools.tool import Tool, ToolOutput

Stage = Any  # of conftest.py
FilesWith = Callable[..., list[str]]  # of conftest.py
SECRET = "Mau is my cat"
ENGRAM = "0123456789abcdef" * 2


class RecallTool(Tool):
    """Remember."""

    name = "recall"
    safety = "L0"

    async def run(self) -> ToolOutput:
        return ToolOutput(f"You said: {SECRET}", (f"engram:{ENGRAM}",))


async def answered(stage: Stage, query: str, query_id: str, session: str = "s", answer: str = "Noted.") -> None:
    stage.model.will_say(answer, to=query)
    await stage.door.ask(query, query_id, session=session)
    await stage.end_of(query_id)


async def recall(stage: Stage, query_id: str, *then: Any) -> None:
    await stage.tool(RecallTool(Settingless()))
    stage.model.will_say(ToolCall("recall", {}), to="What is Mau?")
    stage.model.will_say(*then, to="What is Mau?")
    await stage.door.ask("What is Mau?", query_id, session="other")


async def delete(stage: Stage, query_id: str = "q") -> int:
    """Have the memory say that it has deleted an engram; gives how often it was acknowledged before."""
    before = len(stage.acknowledged())
    await stage.door.bus.publish(MemoryDeleted(engram_id=ENGRAM, query_id=query_id))
    return before


async def forgotten(stage: Stage, query_id: str = "q") -> None:
    before = await delete(stage, query_id)
    await stage.door.until(lambda: len(stage.acknowledged()) > before)


async def record(stage: Stage, verb: str, key: str) -> ConversationResult:
    request = ConversationRequest.model_validate({"verb": verb, "key": key})
    result: ConversationResult = await stage.door.bus.request(request, ConversationResult, 10)
    return result


async def test_a_deleted_exchange_leaves_its_session_and_every_other_one_stays(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    await stage.generator()
    await answered(stage, SECRET, "q")
    await answered(stage, "And else?", "q2", answer="Nothing.")
    await forgotten(stage)
    assert files_with(tmp_path, SECRET, name="conversation.db*") == []
    turns = (await record(stage, "session", "s")).value["turns"]
    assert [turn["query_id"] for turn in turns] == ["q2"]
    assert (await record(stage, "query", "q")).error.kind == "not_found"


async def test_what_another_session_has_recalled_of_it_is_gone_from_the_record_and_from_the_journal(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    await stage.generator()
    await recall(stage, "q2", "A cat.")
    await stage.end_of("q2")
    assert files_with(tmp_path, SECRET)
    await forgotten(stage)
    assert files_with(tmp_path, SECRET) == []
    [turn] = (await record(stage, "session", "other")).value["turns"]
    assert turn["answer"] == "A cat."
    outcome = (await record(stage, "query", "q2")).value["outcome"]
    assert outcome["tool_calls"][0]["result"] == "[a memory that was deleted]"


async def test_a_turn_that_has_just_recalled_it_ends_first_and_does_not_bring_it_back(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    may_end = asyncio.Event()
    await stage.generator()
    await recall(stage, "q2", may_end, "A cat.")
    await stage.door.until(lambda: len(stage.model.asked) == 2)
    before = await delete(stage)
    await stage.door.until(lambda: _put_off(stage))
    assert len(stage.acknowledged()) == before
    may_end.set()
    await stage.door.hears(ResponseGeneration, query_id="q2")
    await stage.door.until(lambda: len(stage.acknowledged()) > before + 1)
    assert files_with(tmp_path, SECRET) == []


def _put_off(stage: Stage) -> bool:
    """The generator has said in a status beat that it has put something off."""
    return any(beat.counters.get("put_off") for beat in stage.door.of(ParticipantStatus, name="generator"))


async def test_an_exchange_is_forgotten_when_nothing_runs_in_its_session(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    may_end = asyncio.Event()
    await stage.generator()
    await answered(stage, SECRET, "q")
    stage.model.will_say(may_end, "Still here.", to="Wait")
    await stage.door.ask("Wait", "q2")
    await stage.door.hears(QueryAccepted, query_id="q2")
    before = await delete(stage)
    await stage.door.until(lambda: _put_off(stage))
    may_end.set()
    await stage.door.hears(ResponseGeneration, query_id="q2")
    await stage.door.until(lambda: len(stage.acknowledged()) > before + 1)
    assert files_with(tmp_path, SECRET, name="conversation.db*") == []


async def test_the_second_respondent_forgets_its_answer_to_it_as_well(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    await stage.generator()
    await stage.second_respondent()
    stage.model_b.will_say(f"Oh, {SECRET}")
    await answered(stage, "My cat?", "q")
    await stage.door.hears(ResponseGeneration, query_id="q", respondent_id="B")
    await stage.door.bus.request(JournalRedact(query_id="q"), JournalRedacted, 10)
    assert files_with(tmp_path, SECRET)
    await delete(stage)
    await stage.door.hears(JournalAck, consumer=DELETIONS)
    assert files_with(tmp_path, SECRET) == []
