"""Sessions are named, pinned and branched: on record, in the store, and in what the model is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.bus.envelope import Trace
from local.bus.messages import (
    ConversationRequest,
    ConversationResult,
    QueryReceived,
    ResponseGeneration,
    SessionBranched,
    SessionChanged,
    SessionDeleted,
)
from local.generator.session_changes import SessionChanges
from local.generator.sessions import copy_id
from local.memory.messages import MemoryDeleted

Stage = Any  # of conftest.py
FilesWith = Callable[..., list[str]]  # of conftest.py
SECRET = "Mau is my cat"


async def ask(stage: Stage, text: str, query_id: str, answer: str, session_id: str = "s", **fields: Any) -> None:
    stage.model.will_say(answer)
    message = QueryReceived(query_id=query_id, query=text, **fields)
    await stage.door.bus.publish(message, Trace(query_id, None, session_id))
    await stage.door.hears(ResponseGeneration, query_id=query_id)


async def told(stage: Stage, verb: str, key: str = "s", **fields: Any) -> Any:
    request = ConversationRequest.model_validate({"verb": verb, "key": key, **fields})
    result: ConversationResult = await stage.door.bus.request(request, ConversationResult, 15)
    return result.value if result.error is None else result.error


async def branch(stage: Stage, before: str = "q2", branch_id: str = "b") -> Any:
    return await told(stage, "branch", before=before, branch_id=branch_id)


async def answers(stage: Stage, session_id: str) -> list[str]:
    return [turn["answer"] for turn in (await told(stage, "turns", session_id, order="after"))["turns"]]


async def test_the_model_is_told_in_a_branch_what_was_said_before_it_and_not_what_came_after(stage: Stage) -> None:
    await stage.generator()
    for number in (1, 2, 3):
        await ask(stage, f"Question {number}", f"q{number}", f"Answer {number}")
    assert (await branch(stage))["branched_from"] == {"session_id": "s", "query_id": "q2"}
    await ask(stage, "Question 2, edited", "edited", "Another answer", "b")
    said = [message["content"] for message in stage.model.asked[-1].messages if message["role"] != "system"]
    assert said == ["Question 1", "Answer 1", "Question 2, edited"]
    assert await answers(stage, "b") == ["Answer 1", "Another answer"]
    assert await answers(stage, "s") == ["Answer 1", "Answer 2", "Answer 3"]


async def test_a_title_and_a_pin_are_on_record_before_they_are_told(stage: Stage) -> None:
    await stage.generator()
    await ask(stage, "Hi", "q1", "Hello")
    line = await told(stage, "change", labels={"title": "Greetings"})
    assert (line["title"], line["renamed"], line["pinned"]) == ("Greetings", True, False)
    line = await told(stage, "change", labels={"pinned": True})
    assert (line["title"], line["pinned"]) == ("Greetings", True)
    assert [(each.title, each.pinned) for each in stage.door.of(SessionChanged)] == [
        ("Greetings", False), ("Greetings", True),
    ]  # fmt: skip
    line = await told(stage, "change", labels={"title": None})
    assert (line["title"], line["renamed"]) == ("Hi", False)
    assert (await told(stage, "change", "nowhere", labels={"pinned": True})).kind == "not_found"
    assert (await told(stage, "change", labels={"pinned": True}, of_user="eve")).kind == "not_found"


async def test_what_is_on_record_and_was_not_stored_any_more_is_stored_by_the_next_process(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = await stage.generator()
    for number in (1, 2):
        await ask(stage, f"Question {number}", f"q{number}", f"Answer {number}")
    await generator.end()
    for message, session_id in (
        (SessionChanged(session_id="s", title="Kept", changed_at=1.0), "s"),
        (SessionBranched(session_id="b", branched_from="s", before="q2", branched_at=2.0), "b"),
    ):
        await stage.door.bus.publish(message, Trace(f"change of {session_id}", None, session_id))
    stored = asyncio.Event()
    branched = SessionChanges.branched

    async def tell(changes: SessionChanges, *args: Any) -> None:
        await branched(changes, *args)
        stored.set()

    monkeypatch.setattr(SessionChanges, "branched", tell)
    await stage.generator()
    await asyncio.wait_for(stored.wait(), 20)
    assert await answers(stage, "b") == ["Answer 1"]
    titles = {each["session_id"]: each["title"] for each in (await told(stage, "sessions", ""))["sessions"]}
    assert titles["s"] == "Kept"


async def test_a_deleted_session_names_the_branches_that_keep_its_turns_and_with_them_the_last_word_goes(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    await stage.generator()
    await ask(stage, SECRET, "q1", f"Noted: {SECRET}")
    await ask(stage, "And now?", "q2", "Nothing.")
    await told(stage, "change", labels={"title": f"About: {SECRET}"})
    await branch(stage)
    deleted = await told(stage, "delete")
    assert (deleted["deleted_turns"], deleted["copied_to"]) == (2, ["b"])
    assert await answers(stage, "b") == [f"Noted: {SECRET}"]
    deleted = await told(stage, "delete", "b")
    assert (deleted["deleted_turns"], deleted["copied_to"]) == (1, [])
    assert files_with(tmp_path, SECRET) == []


async def test_the_memory_learns_nothing_of_copies_and_its_deletion_of_one_exchange_takes_them_along(
    stage: Stage, tmp_path: Path
) -> None:
    await stage.generator()
    await ask(stage, SECRET, "q1", f"Noted: {SECRET}")
    await ask(stage, "And now?", "q2", "Nothing.")
    await branch(stage)
    assert len(stage.door.of(ResponseGeneration)) == 2  # from which alone a memory learns
    gone = MemoryDeleted(engram_id="e" * 32, query_id="q1")
    await stage.door.bus.publish(gone, Trace("deletion"))
    while await answers(stage, "b"):
        pass
    assert await answers(stage, "s") == ["Nothing."]


async def test_the_memory_s_word_on_a_session_that_is_being_deleted_leaves_its_copies(stage: Stage) -> None:
    await stage.generator()
    await ask(stage, SECRET, "q1", f"Noted: {SECRET}")
    await ask(stage, "And now?", "q2", "Nothing.")
    await branch(stage)

    async def forget(envelope: Any) -> None:
        await stage.door.bus.publish(MemoryDeleted(engram_id="e" * 32, query_id="q1"), Trace("deletion"))

    telling: list[asyncio.Task[None]] = []
    stage.door.bus.subscribe(
        SessionDeleted.subject, lambda envelope: telling.append(asyncio.create_task(forget(envelope)))
    )
    await stage.door.bus.ready()
    await told(stage, "delete")
    await asyncio.gather(*telling)
    number = (await stage.on_record("deletion", MemoryDeleted))[-1].number
    await stage.door.until(lambda: number in stage.acknowledged())
    assert await answers(stage, "b") == [f"Noted: {SECRET}"]


async def test_the_branch_of_an_incognito_session_is_one(stage: Stage) -> None:
    await stage.generator()
    for number in (1, 2):
        await ask(stage, f"Question {number}", f"q{number}", "Hush", incognito=True)
    assert (await branch(stage))["incognito"] is True
    (line,) = (await told(stage, "sessions", "", among=("b",)))["sessions"]
    assert line["incognito"] is True


async def test_the_second_respondent_goes_on_from_its_own_answers(stage: Stage) -> None:
    await stage.generator()
    await stage.second_respondent()
    for number in (1, 2):
        stage.model_b.will_say(f"B {number}")
        await ask(stage, f"Question {number}", f"q{number}", f"A {number}")
        await stage.door.hears(ResponseGeneration, query_id=f"q{number}", respondent_id="B")
    await branch(stage)
    stage.model_b.will_say("B edited")
    await ask(stage, "Edited", "edited", "A edited", "b")
    await stage.door.hears(ResponseGeneration, query_id="edited", respondent_id="B")
    said = [message["content"] for message in stage.model_b.asked[-1].messages if message["role"] != "system"]
    assert said == ["Question 1", "B 1", "Edited"]


async def test_the_same_branch_again_is_the_same_and_another_one_of_that_id_a_conflict(stage: Stage) -> None:
    await stage.generator()
    for number in (1, 2, 3):
        await ask(stage, f"Question {number}", f"q{number}", f"Answer {number}")
    first, again = await branch(stage), await branch(stage)
    assert first == again
    assert len(stage.door.of(SessionBranched)) == 1
    assert (await branch(stage, "q3")).kind == "conflict"
    assert (await branch(stage, "q3", "s")).kind == "conflict"
    turns = (await told(stage, "turns", "b"))["turns"]
    assert [turn["query_id"] for turn in turns] == [copy_id("b", "q1")]
