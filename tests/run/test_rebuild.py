"""Records, memory and ratings are rebuilt from the journal, with all that was said of the answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from local.bus.envelope import Envelope
from local.bus.message import Message
from local.bus.messages import (
    ImportedExchange,
    QueryReceived,
    ResponseGeneration,
    SessionBranched,
    SessionChanged,
    SessionImported,
    SessionSettings,
    SessionTitled,
)
from local.critic.messages import CritiqueResult, RewardEvent, UserFeedback
from local.generator.history import ConversationService
from local.generator.running_reward import RunningReward
from local.generator.sessions import Labels, SessionFilter, SessionRecord
from local.journal.schema import Entry
from local.journal.store import JournalStore
from local.memory.messages import MemoryAnnotated, engram_id
from local.memory.service import EngramService
from local.reward.reward import RatingStore
from local.run.upkeep import missing, rebuild, rebuild_missing

BRANCHED = SessionBranched(session_id="b", branched_from="s1", before="q2", branched_at=7.0)
EVERYBODY = ("generator", "generator_b", "memory", "reward")


def pinned(query_id: str, value: float) -> MemoryAnnotated:
    return MemoryAnnotated(engram_id=engram_id(query_id, "A"), query_id=query_id, what="pinned", value=value)


def answer(query_id: str, text: str, respondent_id: str = "A") -> ResponseGeneration:
    fields = {"query_id": query_id, "respondent_id": respondent_id, "status": "answered", "query": f"{query_id}?"}
    return ResponseGeneration(**fields, answer=text, prompt="brief")


SAID: Sequence[Message] = (
    QueryReceived(query_id="q1", query="q1?"),
    UserFeedback(query_id="q1", rating=1, rated_at=5.0),  # of what was heard live, on record before it
    answer("q1", "One."),
    QueryReceived(query_id="q2", query="q2?"),
    answer("q1", "Uno.", "B"),
    answer("q2", "Two."),
    CritiqueResult(query_id="q1", score=4, expected=3.9, status="graded"),
    RewardEvent(query_id="q1", reward=1.0, rated_at=5.0),
    UserFeedback(query_id="q1", respondent_id="B", rating=-1, rated_at=6.0),
    RewardEvent(query_id="q1", respondent_id="B", reward=-1.0, rated_at=6.0),
    pinned("q1", 1.0),
    pinned("q2", 1.0),
    pinned("q2", 0.0),
    pinned("gone", 1.0),
    BRANCHED,
    SessionChanged(session_id="s1", title="Numbers", pinned=True, settings=SessionSettings(top_p=0.5), changed_at=8.0),
    SessionTitled(session_id="s1", query_id="q1", title="One and two"),
    SessionImported(
        session_id="i", source="ChatGPT", origin_id="c", title="Tea", imported_at=9.0,
        exchanges=(ImportedExchange(query="How long?", answer="Three minutes."),),
    ),
)  # fmt: skip


def entry(number: int, message: Message) -> Entry:
    query_id = str(getattr(message, "query_id", ""))
    subject, user = message.routing_key, "ann"
    envelope = Envelope(
        subject, f"id-{number}", "api", "i", number, query_id, message.encode(), None, None, "s1", user_id=user
    )
    return Entry(subject, envelope.id, "api", "i", number, query_id, "s1", float(number), envelope.encode())


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    async def record() -> None:
        async with JournalStore(tmp_path / "journal.db") as journal:
            await journal.commit([entry(number, message) for number, message in enumerate(SAID, 1)])

    asyncio.run(record())
    return tmp_path


def test_what_was_said_of_answers_comes_back_with_them(data_dir: Path) -> None:
    async def look() -> None:
        for name, respondent_id, texts, mean in (
            ("conversation.db", "A", ["One.", "Two."], 1.0), ("conversation_b.db", "B", ["Uno."], -1.0)
        ):  # fmt: skip
            async with ConversationService(data_dir / name, respondent_id) as conversation:
                turns = [await conversation.turn(f"q{number}") for number in (1, 2)]
                assert [json.loads(turn.outcome)["answer"] for turn in turns if turn and turn.outcome] == texts
                assert await RunningReward(conversation, respondent_id).by_prompt() == [("brief", 1, mean)]
        async with EngramService(data_dir / "engrams") as engrams:
            assert [each.engram_id for each in await engrams.pinned("ann")] == [engram_id("q1", "A")]
            kept = await engrams.get("ann", engram_id("q1", "A"))
            assert (kept.score, kept.sentiment) == (3.9, 1)
        async with RatingStore(data_dir / "reward.db") as ratings:
            assert (await ratings.agreement()).liked == 1
            assert [due.respondent_id for due in await ratings.due()] == ["A", "B"]

    names = missing(data_dir, EVERYBODY)
    assert names == ["conversation", "engrams", "conversation_b", "ratings"]
    said = rebuild_missing(data_dir, names)
    assert "conversation_b was missing and was rebuilt from the journal, with 1 exchanges" in said
    assert "ratings was missing and was rebuilt from the journal, with 2 ratings" in said
    assert missing(data_dir, EVERYBODY) == []
    asyncio.run(look())


def test_names_pins_and_branches_of_sessions_come_back(data_dir: Path) -> None:
    async def look() -> None:
        for name, respondent_id, texts in (("conversation.db", "A", ["One."]), ("conversation_b.db", "B", [])):
            async with ConversationService(data_dir / name, respondent_id) as conversation:
                sessions = SessionRecord(conversation, respondent_id)
                assert [turn.answer for turn in await conversation.session("b")] == texts
                assert (await sessions.head("b")).user_id == "ann"
                assert await sessions.labels("s1") == Labels("Numbers", True, 8.0, '{"top_p":0.5}')
                await sessions.keep_labels("s1", Labels(changed_at=9.0))
                rows, _ = await sessions.listing(SessionFilter(among=["s1", "i"]))
                assert {row["title"] for row in rows} == {"One and two", "Tea"}

    for name in ("conversation", "conversation_b"):
        rebuild(data_dir, name)
    asyncio.run(look())


def test_an_empty_file_is_as_good_as_none(data_dir: Path) -> None:
    engrams = data_dir / "engrams" / "engrams.db"
    engrams.parent.mkdir()
    engrams.touch()
    assert missing(data_dir, ("memory",)) == ["engrams"]
    said = rebuild_missing(data_dir, ["engrams"])
    assert said == "engrams was missing and was rebuilt from the journal, with 3 exchanges"
    assert missing(data_dir, ("memory",)) == []
