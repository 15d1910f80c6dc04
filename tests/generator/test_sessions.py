"""Sessions are shown, named, pinned and branched: on record, in the store, and in what the model is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from local.bus.bus import Bus
from local.bus.envelope import Trace
from local.bus.messages import (
    AnswerOptions,
    ContextGauge,
    ConversationRequest,
    ConversationResult,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    SessionBranched,
    SessionChanged,
    SessionDeleted,
    SessionSettings,
    UsageInfo,
)
from local.bus.zeromq import MemoryHub
from local.core.owner_texts import SourcedText
from local.generator.agent import ConversationRequestHandler
from local.generator.history import ConversationService, NewTurn, TurnStatus
from local.generator.prompt import PromptInputs, as_json, compose
from local.generator.session_changes import SessionChanges
from local.generator.sessions import SessionRecord, copy_id
from local.memory.messages import MemoryDeleted

Stage = Any  # of conftest.py
FilesWith = Callable[..., list[str]]  # of conftest.py
SECRET = "Mau is my cat"


async def ask(stage: Stage, text: str, query_id: str, answer: str, session_id: str = "s", **fields: Any) -> None:
    stage.model.will_say(answer)
    message = QueryReceived(query_id=query_id, query=text, **fields)
    await stage.frontend.bus.publish(message, Trace(query_id, None, session_id))
    await stage.frontend.hears(ResponseGeneration, query_id=query_id)


async def told(stage: Stage, verb: str, key: str = "s", **fields: Any) -> Any:
    request = ConversationRequest.model_validate({"verb": verb, "key": key, **fields})
    result: ConversationResult = await stage.frontend.bus.request(request, ConversationResult, 15)
    return result.value if result.error is None else result.error


async def test_the_size_of_what_a_user_has_said_grows_with_it(stage: Stage) -> None:
    await stage.generator()
    await ask(stage, "x" * 5000, "q1", "y" * 3000)
    other = (await told(stage, "size", "ann"))["bytes"]
    stage.model.will_say("y" * 3000)
    await stage.frontend.ask("x" * 5000, "q2", session="t")  # of the user "user"
    await stage.frontend.hears(ResponseGeneration, query_id="q2")
    assert other == 0 and 13_000 <= (await told(stage, "size", "user"))["bytes"] < 20_000


async def branch(stage: Stage, before: str = "q2", branch_id: str = "b") -> Any:
    return await told(stage, "branch", before=before, branch_id=branch_id)


async def answers(stage: Stage, session_id: str) -> list[str]:
    return [turn["answer"] for turn in (await told(stage, "turns", session_id, order="after"))["turns"]]


async def test_the_model_is_told_in_a_branch_what_was_said_before_it_and_not_what_came_after(stage: Stage) -> None:
    await stage.generator()
    for number in (1, 2, 3):
        await ask(stage, f"Question {number}", f"q{number}", f"Answer {number}")
    first, again = await branch(stage), await branch(stage)
    assert first == again and first["branched_from"] == {"session_id": "s", "query_id": "q2"}
    assert len(stage.frontend.of(SessionBranched)) == 1
    for taken in ("b", "s"):
        assert (await branch(stage, "q3", taken)).kind == "conflict"
    await ask(stage, "Question 2, edited", "edited", "Another answer", "b")
    said = [message["content"] for message in stage.model.asked[-1].messages if message["role"] != "system"]
    assert said == ["Question 1", "Answer 1", "Question 2, edited"]
    assert await answers(stage, "b") == ["Answer 1", "Another answer"]
    assert await answers(stage, "s") == ["Answer 1", "Answer 2", "Answer 3"]
    assert [turn["query_id"] for turn in (await told(stage, "turns", "b"))["turns"]] == ["edited", copy_id("b", "q1")]


async def test_a_title_and_a_pin_are_on_record_before_they_are_told(stage: Stage) -> None:
    await stage.generator()
    await ask(stage, "Hi", "q1", "Hello")
    line = await told(stage, "change", labels={"title": "Greetings"})
    assert (line["title"], line["renamed"], line["pinned"]) == ("Greetings", True, False)
    line = await told(stage, "change", labels={"pinned": True})
    assert (line["title"], line["pinned"]) == ("Greetings", True)
    assert [(each.title, each.pinned) for each in stage.frontend.of(SessionChanged)] == [
        ("Greetings", False), ("Greetings", True),
    ]  # fmt: skip
    line = await told(stage, "change", labels={"title": None})
    assert (line["title"], line["renamed"]) == ("Hi", False)
    assert (await told(stage, "change", "nowhere", labels={"pinned": True})).kind == "not_found"
    assert (await told(stage, "change", labels={"pinned": True}, of_user="eve")).kind == "not_found"


async def test_the_settings_of_a_conversation_reach_the_model_and_survive_a_restart(stage: Stage) -> None:
    generator = await stage.generator()
    chosen = SessionSettings(temperature=0.1, top_p=0.4, max_tokens=7, instructions="Answer in Latin.")
    await ask(stage, "Hi", "q1", "Salve", options=AnswerOptions(settings=chosen))
    await generator.end()
    await stage.generator()
    await ask(stage, "Hi again", "q2", "Salve iterum", options=AnswerOptions(temperature=0.9))
    for asked in stage.model.asked[-2:]:
        options = {name: asked.options[name] for name in ("temperature", "top_p", "num_predict")}
        assert options == {"temperature": 0.1, "top_p": 0.4, "num_predict": 7}
        assert "Answer in Latin." in asked.messages[0]["content"]
    shown = await told(stage, "session")
    assert shown["settings"]["instructions"] == "Answer in Latin." in shown["messages"][0]["content"]
    await told(stage, "change", labels={"settings": None})
    await ask(stage, "And now?", "q3", "Hello")
    assert "Latin" not in stage.model.asked[-1].messages[0]["content"]
    assert stage.model.asked[-1].options["num_predict"] > 7


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
        await stage.frontend.bus.publish(message, Trace(f"change of {session_id}", None, session_id))
    stored = asyncio.Event()
    branched = SessionChanges.branched

    async def tell(changes: SessionChanges, *args: Any) -> None:
        await branched(changes, *args)
        stored.set()

    monkeypatch.setattr(SessionChanges, "branched", tell)
    await stage.generator()
    await asyncio.wait_for(stored.wait(), 90)
    assert await answers(stage, "b") == ["Answer 1"]
    titles = {each["session_id"]: each["title"] for each in (await told(stage, "sessions", ""))["sessions"]}
    assert titles["s"] == "Kept"


async def test_a_deleted_session_names_the_branches_that_keep_its_turns_and_with_them_the_last_word_goes(
    stage: Stage, tmp_path: Path, files_with: FilesWith
) -> None:
    await stage.generator()
    await ask(stage, SECRET, "q1", f"Noted: {SECRET}", incognito=True)
    await ask(stage, "And now?", "q2", "Nothing.", incognito=True)
    await told(stage, "change", labels={"title": f"About: {SECRET}"})
    assert (await branch(stage))["incognito"] is True
    deleted = await told(stage, "delete")
    assert (deleted["deleted_turns"], deleted["copied_to"]) == (2, ["b"])
    assert await answers(stage, "b") == [f"Noted: {SECRET}"]
    deleted = await told(stage, "delete", "b")
    assert (deleted["deleted_turns"], deleted["copied_to"]) == (1, [])
    assert files_with(tmp_path, SECRET) == []


async def test_the_memory_s_deletion_of_an_exchange_takes_its_copies_unless_it_is_for_a_session_that_is_deleted(
    stage: Stage,
) -> None:
    await stage.generator()
    for session in ("s", "t"):
        await ask(stage, SECRET, f"{session}1", f"Noted: {SECRET}", session)
        await ask(stage, "And now?", f"{session}2", "Nothing.", session)
        await told(stage, "branch", session, before=f"{session}2", branch_id=f"b of {session}")
    assert len(stage.frontend.of(ResponseGeneration)) == 4  # from which alone a memory learns
    await stage.frontend.bus.publish(MemoryDeleted(engram_id="e" * 32, query_id="s1"), Trace("one exchange"))
    while await answers(stage, "b of s"):
        pass
    assert await answers(stage, "s") == ["Nothing."]
    forgetting: list[asyncio.Task[object]] = []
    gone = MemoryDeleted(engram_id="f" * 32, query_id="t1")
    stage.frontend.bus.subscribe(
        SessionDeleted.subject,
        lambda _: forgetting.append(asyncio.create_task(stage.frontend.bus.publish(gone, Trace("session")))),
    )
    await stage.frontend.bus.ready()
    await told(stage, "delete", "t")
    await asyncio.gather(*forgetting)
    number = (await stage.on_record("session", MemoryDeleted))[-1].number
    await stage.frontend.until(lambda: number in stage.acknowledged())
    assert await answers(stage, "b of t") == [f"Noted: {SECRET}"]


# Questions about the record, without a bus between.


async def ended(record: ConversationService, query_id: str, answer: str, used: int | None = None) -> None:
    gauge = None if used is None else ContextGauge(used=used, limit=4096, parts={"history": used})
    usage = UsageInfo(context=gauge)
    response = ResponseGeneration(query_id=query_id, status="answered", query="?", answer=answer, usage=usage)
    outcome = response.encode().decode()
    await record.finish(query_id, TurnStatus.ANSWERED, answer, response.subject, outcome)


def inputs(today: date) -> PromptInputs:
    return PromptInputs(SourcedText("generator.yaml", "Be brief."), today)


async def test_sessions_queries_and_the_prompt_are_shown_and_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    async with ConversationService(tmp_path / "c.db") as record, Bus("generator", MemoryHub().transport()) as bus:
        for number in (1, 2):
            await record.accept(NewTurn(f"q{number}", "s1", "user", "e", f"Question {number}", "{}"))
            await ended(record, f"q{number}", f"Answer {number}")
        await record.accept(NewTurn("q3", "s2", None, "e", "Still open", "{}"))

        async def delete(session_id: str) -> tuple[int, int]:
            return await record.delete_session(session_id), 7

        sessions = SessionRecord(record, "A")
        handler = ConversationRequestHandler(
            record,
            sessions,
            SessionChanges(bus, sessions),
            lambda history, today, user_id, settings: compose(inputs(today), history),
            delete,
            lambda today, user_id, options: as_json("gemma", inputs(today)),
        )

        async def value(verb: Any, key: str = "") -> dict[str, Any]:
            result = await handler.answer(ConversationRequest(verb=verb, key=key))
            assert result.error is None and result.value is not None
            return result.value

        prompt = await value("prompt")
        assert [section["name"] for section in prompt["sections"]] == ["role", "date"]
        assert prompt["tokens"] == sum(section["tokens"] for section in prompt["sections"]) > 0
        listed = (await value("sessions"))["sessions"]
        assert {session["session_id"]: session["turns"] for session in listed} == {"s1": 2, "s2": 1}
        session = await value("session", "s1")
        assert session["messages"][0]["content"].startswith("Be brief.") and session["context"] is None
        said = [message["content"] for message in session["messages"][1:]]
        assert said == ["Question 1", "Answer 1", "Question 2", "Answer 2"]
        assert [(turn["query_id"], turn["status"]) for turn in session["turns"]] == [
            ("q1", "answered"), ("q2", "answered"),
        ]  # fmt: skip
        closed, still_open = await value("query", "q1"), await value("query", "q3")
        assert (closed["outcome_subject"], closed["outcome"]["answer"]) == ("response.generation", "Answer 1")
        assert (still_open["status"], still_open["outcome"]) == ("open", None)
        await record.accept(NewTurn("q4", "s2", None, "e", "?", "{}"))
        await ended(record, "q4", "!", 200)
        await record.accept(NewTurn("q5", "s2", None, "e", "?", "{}"))
        failure = QueryFailed.model_validate({"query_id": "q5", "error": {"kind": "busy", "message": "Wait."}})
        await record.finish("q5", TurnStatus.FAILED, None, failure.subject, failure.encode().decode())
        gauge = (await value("session", "s2"))["context"]  # of the last prompt that there was
        assert gauge == {"used": 200, "limit": 4096, "parts": {"history": 200}}
        assert await value("delete", "s1") == {
            "session_id": "s1", "deleted_turns": 2, "redacted_messages": 7, "copied_to": [],
        }  # fmt: skip
        for verb, key in (("session", "s1"), ("query", "q9")):
            error = (await handler.answer(ConversationRequest.model_validate({"verb": verb, "key": key}))).error
            assert error is not None and error.kind == "not_found" and key in error.message


async def test_an_imported_conversation_goes_on_with_its_history_as_untrusted_content(
    stage: Stage, files_with: FilesWith
) -> None:
    served = await stage.generator()
    exchanges = [{"query": SECRET, "answer": "Noted.", "asked_at": 5.0}, {"query": "And?", "answer": ""}]
    fields = {"source": "ChatGPT", "origin_id": "c-1", "title": "Cats", "exchanges": exchanges}
    assert (await told(stage, "import", "i", **fields))["is_new"]
    assert not (await told(stage, "import", "i", **fields))["is_new"]
    assert (await told(stage, "import", "i", of_user="bob", **fields)).kind == "conflict"
    await ask(stage, "What is Mau?", "q1", "A cat.", "i")
    asked = [message["content"] for message in stage.model.asked[-1].messages[-3:]]
    assert asked == [SECRET, "Noted.", "What is Mau?"]
    assert (await stage.frontend.hears(ResponseGeneration, query_id="q1")).tainted
    assert (await told(stage, "session", "i"))["imported_from"] == "ChatGPT"
    await told(stage, "delete", "i")
    await served.stop()
    await stage.no_journal()
    assert files_with(stage.database.parent, SECRET) == []
