"""Whole sessions on record: listed, searched, paged, named and branched."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import BadCursor, NotOnRecord, SessionExists, TurnStillOpen
from local.generator.history import MIGRATIONS, ConversationService, NewTurn, Refusal, TurnPlace, TurnStatus, end_of
from local.generator.sessions import BranchPoint, Labels, NewBranch, SessionFilter, SessionRecord, copy_id


@pytest.fixture
async def conversation(tmp_path: Path) -> AsyncIterator[ConversationService]:
    async with ConversationService(tmp_path / "c.db") as service:
        yield service


@pytest.fixture
def sessions(conversation: ConversationService) -> SessionRecord:
    return SessionRecord(conversation, "A")


def question(query_id: str, session_id: str = "s", text: str = "?", user_id: str | None = None) -> NewTurn:
    body = json.dumps({"query_id": query_id, "query": text, "session_id": session_id})
    return NewTurn(query_id, session_id, user_id, f"envelope of {query_id}", text, body)


async def say(service: ConversationService, asked: NewTurn, answer: str = "!", thinking: str = "", **also: Any) -> None:
    await service.accept(asked)
    outcome = json.dumps({"query_id": asked.query_id, "session_id": asked.session_id, "thinking": thinking, **also})
    await service.finish(asked.query_id, TurnStatus.ANSWERED, answer, "response.generation", outcome)
    await service.published(asked.query_id)


async def listed(sessions: SessionRecord, query: str = "", **wanted: Any) -> list[str]:
    found, _ = await sessions.listing(SessionFilter(query=query, **wanted))
    return [session["session_id"] for session in found]


async def queries(
    sessions: SessionRecord, place: TurnPlace, limit: int, session_id: str = "s"
) -> tuple[list[str], bool]:
    page = await sessions.page(session_id, place, limit)
    return [turn.query_id for turn in page.turns], page.has_more


async def test_pages_go_back_turn_by_turn_whatever_is_asked_meanwhile(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    for number in range(5):
        await say(conversation, question(f"q{number}"))
    assert await queries(sessions, TurnPlace(), 2) == (["q4", "q3"], True)
    await say(conversation, question("new"))
    assert await queries(sessions, TurnPlace("before", "q3"), 2) == (["q2", "q1"], True)
    assert await queries(sessions, TurnPlace("before", "q1"), 2) == (["q0"], False)
    assert await queries(sessions, TurnPlace("after", "q3"), 1) == (["q4"], True)
    assert await queries(sessions, TurnPlace("at", "q3"), 1) == (["q3"], False)
    assert (await sessions.page("s", TurnPlace(), 1)).head.total == 6


async def test_a_page_of_nowhere_is_not_on_record(conversation: ConversationService, sessions: SessionRecord) -> None:
    await say(conversation, question("q"))
    await say(conversation, question("other", "t"))
    with pytest.raises(NotOnRecord, match="no session nowhere"):
        await sessions.page("nowhere", TurnPlace(), 1)
    with pytest.raises(NotOnRecord, match="no query other in session s"):
        await sessions.page("s", TurnPlace("before", "other"), 1)


async def test_the_listing_is_in_pages_with_the_pinned_sessions_first(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    for name in ("a", "b", "c", "d"):
        await say(conversation, question(f"q of {name}", name))
    await sessions.keep_labels("b", Labels(None, pinned=True, changed_at=1.0))
    seen, cursor = [], ""
    for _ in range(4):
        page, following = await sessions.listing(SessionFilter(), cursor, 1)
        seen += [session["session_id"] for session in page]
        cursor = following or ""
    assert (seen, cursor) == (["b", "d", "c", "a"], "")
    assert await listed(sessions, among=["a", "c"]) == ["c", "a"]
    with pytest.raises(BadCursor, match="'page 2' is not a cursor"):
        await sessions.listing(SessionFilter(), "page 2")


async def test_a_search_finds_words_of_titles_questions_and_answers_whatever_their_case(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    await say(conversation, question("q1", "a", "Which COFFEE?"), "Grüße aus Köln")
    await say(conversation, question("q2", "b", "100 % of it_all"), "tea", thinking="coffee in thought")
    await sessions.keep_labels("b", Labels("Straße nach Ägypten", changed_at=1.0))
    assert await listed(sessions, "coffee") == ["a"]
    assert await listed(sessions, "KÖLN coffee") == ["a"]
    assert await listed(sessions, "coffee tea") == []
    assert await listed(sessions, "ägypten") == ["b"]
    assert await listed(sessions, "100 % t_a") == ["b"]
    assert await listed(sessions, "1_0") == []
    assert await listed(sessions, "kXln") == []
    (found,), _ = await sessions.listing(SessionFilter(query="köln"))
    assert found["match"] == {"query_id": "q1", "excerpt": "Grüße aus Köln"}
    (titled,), _ = await sessions.listing(SessionFilter(query="straße"))
    assert titled["match"] is None


async def test_a_text_is_found_in_each_question_thought_and_answer_of_one_session(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    await say(conversation, question("q1", text="Where is Ümläut?"), "ümläut is " + "far " * 50, "seek ÜMLÄUT")
    await say(conversation, question("q2", text="nothing"), "at all")
    await say(conversation, question("q3", "t", "Ümläut elsewhere"))
    hits = await sessions.find("s", "ümläut")
    assert [(hit.query_id, hit.where) for hit in hits] == [("q1", "query"), ("q1", "thinking"), ("q1", "answer")]
    assert hits[2].excerpt.startswith("ümläut is far") and hits[2].excerpt.endswith(" …")


async def test_the_latest_labels_count_and_none_are_kept_of_a_session_that_is_gone(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    await say(conversation, question("q", text="First"))
    await sessions.keep_labels("s", Labels("Later", changed_at=2.0))
    await sessions.keep_labels("s", Labels("Earlier", pinned=True, changed_at=1.0))
    assert await sessions.labels("s") == Labels("Later", False, 2.0)
    await conversation.delete_session("s")
    await sessions.keep_labels("s", Labels("Again", changed_at=3.0))
    await say(conversation, question("q", text="First"))
    assert (await sessions.labels("s"), await listed(sessions, "Later")) == (Labels(), [])


async def test_a_branch_begins_with_copies_of_the_turns_before_a_query(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    for number in range(3):
        await say(conversation, question(f"q{number}", text=f"Q{number}"), f"A{number}")
    await conversation.write(end_of("q0", "A", tainted=True, written=()))
    await conversation.keep_summary("s", 1, "what was said")
    point = await sessions.branch_point("s", "q2")
    assert point == BranchPoint("s", "q2", None, False)
    for _ in range(2):
        await sessions.branch(NewBranch("b", point, 100.0))
    copies = await conversation.session("b")
    assert [(turn.query_id, turn.copy_of, turn.answer) for turn in copies] == [
        (copy_id("b", "q0"), "q0", "A0"),
        (copy_id("b", "q1"), "q1", "A1"),
    ]
    body, outcome = json.loads(copies[0].body), json.loads(copies[0].outcome or "")
    assert (body["query_id"], body["session_id"]) == (copies[0].query_id, "b")
    assert (outcome["query_id"], outcome["session_id"]) == (copies[0].query_id, "b")
    new, _ = await conversation.accept(question("new", "b"))
    assert new.beginning is not None
    assert (new.beginning.summary, new.beginning.tainted) == ("what was said", True)
    assert [message["content"] for message in new.beginning.history] == ["Q1", "A1"]
    assert await conversation.unfinished() == [replace(new, beginning=None)]


async def test_a_branch_before_the_first_query_is_an_empty_session_of_the_same_user(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    await say(conversation, question("q", user_id="ann"))
    await sessions.branch(NewBranch("b", await sessions.branch_point("s", "q"), 100.0))
    assert (await sessions.head("b"))[:] == ("b", "ann", False, 0)
    assert await listed(sessions, user_id="ann") == ["s", "b"]
    refused, _ = await conversation.accept(question("theirs", "b", user_id="bob"))
    taken, _ = await conversation.accept(question("hers", "b", user_id="ann"))
    assert (refused.refused, taken.refused) == (Refusal.USER, None)


async def test_a_branch_waits_for_the_turns_that_it_would_copy(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    await conversation.accept(question("open"))
    await conversation.accept(question("next"))
    assert (await sessions.branch_point("s", "open")).before == "open"
    with pytest.raises(TurnStillOpen, match="query open of session s is open"):
        await sessions.branch_point("s", "next")
    with pytest.raises(NotOnRecord):
        await sessions.branch_point("s", "nowhere")


async def test_the_id_of_another_session_is_taken(conversation: ConversationService, sessions: SessionRecord) -> None:
    for name in ("s", "t"):
        await say(conversation, question(f"q of {name}", name))
    point = await sessions.branch_point("s", "q of s")
    assert await sessions.require_new("b", point)
    await sessions.branch(NewBranch("b", point, 1.0))
    assert not await sessions.require_new("b", point)
    for taken in ("s", "t"):
        with pytest.raises(SessionExists):
            await sessions.require_new(taken, point)
    with pytest.raises(SessionExists):
        await sessions.require_new("b", point._replace(before="another"))


async def test_a_branch_left_at_a_copied_turn_leaves_the_session_that_this_was_copied_from(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    for number in range(3):
        await say(conversation, question(f"q{number}"))
    await sessions.branch(NewBranch("b", await sessions.branch_point("s", "q2"), 1.0))
    await say(conversation, question("own", "b"))
    point = await sessions.branch_point("b", copy_id("b", "q1"))
    assert point[:2] == ("s", "q1")
    await sessions.branch(NewBranch("c", point, 2.0))
    await sessions.branch(NewBranch("d", await sessions.branch_point("b", "own"), 3.0))
    family = [
        {"session_id": "b", "branched_from": "s", "before": "q2", "version_of": None, "first": "own"},
        {"session_id": "c", "branched_from": "s", "before": "q1", "version_of": None, "first": None},
        {"session_id": "d", "branched_from": "b", "before": "own", "version_of": None, "first": None},
    ]
    assert [await sessions.family(name) for name in ("s", "b", "c", "d")] == [family] * 4
    assert await sessions.copied_to("s") == ["b", "c", "d"]
    assert await sessions.copied_to("b") == []


async def test_copies_stay_when_their_session_goes_and_go_with_one_exchange(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    for number in range(3):
        await say(conversation, question(f"q{number}"))
    await sessions.branch(NewBranch("b", await sessions.branch_point("s", "q2"), 1.0))
    assert await conversation.forget("q0") == 2
    assert [turn.copy_of for turn in await conversation.session("b")] == ["q1"]
    assert await conversation.delete_session("s") == 2
    assert await conversation.forget("q1") == 0
    assert [turn.copy_of for turn in await conversation.session("b")] == ["q1"]
    assert await conversation.delete_session("b") == 1
    assert await listed(sessions) == []
    with pytest.raises(NotOnRecord):
        await sessions.head("b")


async def test_an_incognito_session_that_is_empty_ends_in_time_too(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    await say(conversation, replace(question("q"), incognito=True))
    await sessions.branch(NewBranch("b", await sessions.branch_point("s", "q"), 100.0))
    assert await conversation.incognito_sessions(200.0) == ["b"]
    assert sorted(await conversation.incognito_sessions()) == ["b", "s"]


async def test_a_record_of_an_earlier_version_is_brought_along(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with sqlite3.connect(path) as old:
        for number, script in enumerate(MIGRATIONS[:8], 1):
            old.executescript(f"{script}; PRAGMA user_version={number}")
        old.execute(
            "INSERT INTO turns (query_id, respondent_id, session_id, envelope_id, query, body, in_history, status,"
            " tools, answer, outcome_subject, outcome, published, created_at, finished_at)"
            " VALUES ('q', 'A', 's', 'e', 'Old?', '{}', 1, 'answered', '[]', 'Yes.', 'response.generation', '{}', 1, 5,"
            " 6)"
        )
    old.close()
    async with ConversationService(path) as conversation:
        sessions = SessionRecord(conversation, "A")
        await say(conversation, question("new"))
        assert await queries(sessions, TurnPlace(), 9) == (["new", "q"], False)
        await sessions.branch(NewBranch("b", await sessions.branch_point("s", "new"), 7.0))
        await sessions.keep_labels("s", Labels("Old one", pinned=True, changed_at=1.0))
        assert [turn.answer for turn in await conversation.session("b")] == ["Yes."]
        assert await listed(sessions, "old") == ["s", "b"]


async def test_a_session_and_its_branch_keep_the_model_that_was_chosen_until_then(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    for query_id, model in (("q0", None), ("q1", "small"), ("q2", None), ("q3", "large")):
        await say(conversation, replace(question(query_id), model=model))
    assert (await conversation.forget("q1"), (await sessions.listing(SessionFilter()))[0][0]["model"]) == (1, "large")
    point = await sessions.branch_point("s", "q3")
    await sessions.branch(NewBranch("branch", point, 1.0))
    models = {each["session_id"]: each["model"] for each in (await sessions.listing(SessionFilter()))[0]}
    assert models == {"s": "large", "branch": "small"}
    stored, _ = await conversation.accept(question("q4", "branch"))
    assert stored.model == "small" and stored.beginning is not None and stored.beginning.model == "small"


async def test_the_versions_of_a_conversation_are_one_row_with_the_labels_of_all(
    conversation: ConversationService, sessions: SessionRecord
) -> None:
    for number in range(2):
        await say(conversation, question(f"q{number}", text=f"Q{number}"))
    await sessions.keep_labels("s", Labels("Mine", True, 1.0, '{"top_p":0.5}'))
    await sessions.branch(NewBranch("v", await sessions.branch_point("s", "q1"), time.time(), "s"))
    await sessions.branch(NewBranch("own", await sessions.branch_point("s", "", "q0"), time.time(), ""))
    assert await listed(sessions) == ["v", "own"]
    (version, own), _ = await sessions.listing(SessionFilter())
    assert (version["conversation"], version["title"], version["pinned"]) == ("s", "Mine", True)
    assert (own["conversation"], own["title"], own["pinned"], own["settings"]) == ("own", "Q0", False, {"top_p": 0.5})
    await say(conversation, question("again"))
    assert await listed(sessions) == ["s", "own"], "the version that was last used"
    assert await listed(sessions, "Q1") == ["s"] and await listed(sessions, among=["v"]) == ["v"]
    assert await sessions.versions_of("v") == await sessions.versions_of("s") == ["s", "v"]
    await conversation.delete_session("s")
    assert await listed(sessions) == ["v", "own"] and await sessions.versions_of("v") == ["v"]


async def test_a_branch_goes_on_behind_a_turn(conversation: ConversationService, sessions: SessionRecord) -> None:
    for number in range(2):
        await say(conversation, question(f"q{number}"))
    point = await sessions.branch_point("s", "", "q1")
    await say(conversation, question("later"))
    for _ in range(2):
        await sessions.branch(NewBranch("b", point, 1.0, ""))
    assert [turn.copy_of for turn in await conversation.session("b")] == ["q0", "q1"]
    assert not await sessions.require_new("b", point)
    await conversation.accept(question("open"))
    with pytest.raises(TurnStillOpen):
        await sessions.branch_point("s", "", "open")
