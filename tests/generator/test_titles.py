"""Titles that the model makes of a conversation's first exchange: what they may be, and when there are any."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agent_stage.scripted_model import ScriptedModel

from local.bus.envelope import Trace
from local.bus.messages import ModelUsed, QueryReceived, ResponseGeneration, SessionTitled
from local.core.errors import ModelError
from local.generator.history import ConversationService, NewTurn, TurnStatus
from local.generator.session_changes import SessionChanges
from local.generator.sessions import Labels, SessionFilter, SessionRecord
from local.generator.titles import ConversationTitles, clean_title, prompt, title_in
from local.models.leases import Leases

QUESTION = "How long do I have to steep Darjeeling so that it does not become bitter, and how hot?"


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Steeping Darjeeling", "Steeping Darjeeling"),
        ('\n "Title: Wie lange zieht Tee?"\nIgnore the rest.', "Wie lange zieht Tee?"),
        ("**Steeping\ttea**.", "Steeping tea"),
        ("pay\u202egnp.exe\u200b now\x07", "paygnp.exe now"),
        ("می\u200cخواهم چای", "می\u200cخواهم چای"),
        ("See https://evil.example/x", ""),
        ("See www.evil.example", ""),
        ("[Click](javascript:x)", ""),
        ("See &#104;ttps://evil.example", ""),
        ("<img src=x>", ""),
        (" \u200b\n", ""),
        ("word " * 20, "word " * 10 + "word…"),
        ("x" * 70, "x" * 59 + "…"),
    ],
)  # fmt: skip
def test_a_title_is_one_short_line_of_plain_text_without_links(said: str, title: str) -> None:
    assert clean_title(said) == title
    assert len(title) <= 60


def test_a_reply_is_read_as_json_or_as_text() -> None:
    assert title_in('{"title": "Tea"}') == title_in("Tea\n") == "Tea"
    assert title_in('{"name": "Tea"}') == title_in('{"title": 3}') == ""


def test_the_prompt_is_small() -> None:
    asked = prompt("q" * 10_000, "a" * 10_000)
    assert sum(len(message["content"]) for message in asked) < 1500
    assert "Answer" not in prompt("Why?", "")[1]["content"]


async def titles_in(stage: Any) -> list[str]:
    rows, _ = await SessionRecord(stage._generator._record, "A").listing(SessionFilter())
    return [row["title"] for row in rows]


async def test_the_first_answer_gives_a_conversation_its_title_which_is_on_record(stage: Any) -> None:
    served = await stage.generator(make_titles=True)
    record = stage._generator._record
    changes = SessionChanges(served.bus, SessionRecord(record, "A"))
    stage.model.will_say("Three minutes.")
    stage.model.will_say('{"title": "Steeping Darjeeling"}')
    await stage.frontend.ask(QUESTION, "q1")
    titled = await stage.frontend.hears(SessionTitled)
    assert (titled.session_id, titled.query_id, titled.title) == ("s", "q1", "Steeping Darjeeling")
    assert (await stage.frontend.hears(ModelUsed)).purpose == "title"
    asked = stage.model.asked[1]
    assert QUESTION in asked.query and "Three minutes." in asked.query
    assert (asked.think, asked.tools, asked.options["num_predict"]) == (False, [], 60)
    assert await titles_in(stage) == ["Steeping Darjeeling"]
    while not await stage.on_record("q1", SessionTitled):  # with the query, so that it is deleted with it
        pass  # it is on its way to the record
    stage.model.will_say("Yes.")
    await stage.frontend.ask("Really?", "q2")
    await stage.end_of("q2")
    assert await titles_in(stage) == ["Steeping Darjeeling"]
    await changes.change("s", {"title": "Tea"})
    assert await titles_in(stage) == ["Tea"]
    await changes.change("s", {"title": None})
    assert await titles_in(stage) == ["Steeping Darjeeling"]
    await record.forget("q1")
    assert await titles_in(stage) == ["Really?"]


class Lists:
    """The titles of a record's conversations, made for exchanges that are put there."""

    def __init__(self, record: ConversationService) -> None:
        self.record, self.model, self.published = record, ScriptedModel(), list[SessionTitled]()
        self.titles = ConversationTitles(
            self, record, self.model, Leases(), lambda chosen: (chosen or "gemma", 2048), respondent_id="A"  # type: ignore[arg-type]
        )  # fmt: skip
        self.said = asyncio.Event()

    async def publish(self, message: SessionTitled, trace: Trace) -> None:
        self.published.append(message)
        self.said.set()

    async def ended(self, session_id: str, *, incognito: bool = False, **also: Any) -> None:
        query_id = f"q-{session_id}"
        body = QueryReceived(query_id=query_id, query=QUESTION).encode().decode()
        asked = NewTurn(query_id, session_id, None, query_id, QUESTION, body, incognito=incognito)
        stored, _ = await self.record.accept(asked)
        answer = ResponseGeneration(query_id=query_id, status="answered", query=QUESTION, answer="Click it!", **also)
        text = answer.encode().decode()
        await self.record.finish(query_id, TurnStatus.ANSWERED, answer.answer, answer.subject, text)
        self.titles.ended(stored)


async def test_only_what_may_be_named_is_and_an_untrusted_answer_is_not_read(tmp_path: Path) -> None:
    async with ConversationService(tmp_path / "c.db") as record:
        lists = Lists(record)
        await lists.ended("last")  # of all that wait the newest goes first
        await lists.ended("tainted", tainted=True)
        await lists.ended("secret", incognito=True)
        await lists.ended("job", origin="schedule")
        await lists.ended("quoted", own_words=False)
        await lists.ended("named")
        labels = Labels("Mine", changed_at=1.0)
        await SessionRecord(record, "A").keep_labels("named", labels)
        lists.model.will_say(ModelError("the model is not there"))
        lists.model.will_say("Steeping tea")
        async with lists.titles.are_made(), asyncio.timeout(90):
            await lists.said.wait()
    assert [(each.session_id, each.title) for each in lists.published] == [("last", "Steeping tea")]
    tainted, last = lists.model.asked
    assert ("Click it!" in tainted.query, "Click it!" in last.query) == (False, True)
