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
    ToolBegins,
    ToolRequest,
    ToolResult,
)
from local.critic.messages import CritiqueResult, RewardEvent, UserFeedback
from local.generator.history import ConversationService
from local.generator.output import new_turn
from local.generator.running_reward import RunningReward
from local.generator.sessions import Labels, SessionFilter, SessionRecord
from local.generator.steps import ModelStep, Step, ToolStep, parse_step, result_text
from local.journal.schema import Entry
from local.journal.store import JournalStore
from local.memory.messages import MemoryAnnotated, engram_id
from local.memory.service import EngramService
from local.reward.reward import RatingStore
from local.run.upkeep import catch_up, missing, rebuild, rebuild_missing
from local.tools.effects import NOT_REPEATED, EffectCall, EffectStore, StoredEffect

ENVELOPE = Envelope("query.received", "id-4", "api", "i", 4, "q2", b"{}", session_id="s1", user_id="ann")
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


def test_stores_of_a_snapshot_are_brought_up_to_date(data_dir: Path) -> None:
    """What the record of the respondent and the tools' records of effects lack of the journal is added to them."""

    async def interrupted() -> None:
        async with ConversationService(data_dir / "conversation.db") as conversation:
            await conversation.accept(new_turn(QueryReceived(query_id="q2", query="q2?"), ENVELOPE, ()))
            await conversation.add_steps("q2", 0, ["{}"])
        begun = [ToolBegins(query_id="q2", call_id=f"q2:0:{each}", tool="stamp", args={}) for each in range(2)]
        ended = ToolResult(query_id="q2", call_id="q2:0:0", tool="stamp", result="stamped")
        async with JournalStore(data_dir / "journal.db") as journal:
            await journal.commit([entry(number, message) for number, message in enumerate((*begun, ended), 50)])

    async def look() -> None:
        async with ConversationService(data_dir / "conversation.db") as conversation:
            assert await conversation.turn("q1") is None  # the snapshot is later than that
            turn = await conversation.turn("q2")
            assert turn is not None
            assert (turn.status, turn.answer, turn.published) == ("answered", "Two.", True)
            assert await conversation.steps("q2") == []
        async with EffectStore(data_dir / "effects" / "stamp.db") as effects:
            done, unknown = [await effects.begin(EffectCall(f"A q2:0:{each}", "")) for each in range(2)]
            assert done is not None
            assert json.loads(done.outcome or "")["result"] == "stamped"
            assert unknown == StoredEffect(done.asked, None)

    asyncio.run(interrupted())
    for _ in range(2):  # it may be interrupted, and made again
        asyncio.run(catch_up(data_dir, EVERYBODY, after=5))
    asyncio.run(look())


def test_an_open_turn_knows_the_calls_that_it_has_made(data_dir: Path) -> None:
    """It would ask for the same effect in another call, if it began again."""
    asked = QueryReceived(query_id="q3", query="q3?")
    read = ToolRequest(query_id="q3", call_id="q3:0:0", tool="read", args={"path": "a"})
    stamps = [
        ToolBegins(query_id="q3", call_id=f"q3:{step}:0", tool="stamp", args={"card": step}) for step in (2, 4)
    ]  # fmt: skip
    text = ToolResult(query_id="q3", call_id="q3:0:0", tool="read", result="text")
    unasked = ToolRequest(query_id="q3", call_id="q3:6:0", tool="read", args={"path": "b"})

    async def work() -> list[Step]:
        async with JournalStore(data_dir / "journal.db") as journal:
            said = (asked, read, text, *stamps, unasked)
            await journal.commit([entry(number, message) for number, message in enumerate(said, 50)])
        for _ in range(2):
            await catch_up(data_dir, EVERYBODY, after=len(SAID))
        async with ConversationService(data_dir / "conversation.db") as conversation:
            return [parse_step(body) for body in await conversation.steps("q3")]

    reading, found, stamping, unknown, again = asyncio.run(work())
    assert [step.calls[0].call_id for step in (reading, stamping, again) if isinstance(step, ModelStep)] == [
        "q3:0:0", "q3:2:0", "q3:4:0"
    ]  # fmt: skip
    results = [result_text(step.records[0]) for step in (found, unknown) if isinstance(step, ToolStep)]
    assert results == ["text", f"Error (outcome_unknown): stamp was interrupted: {NOT_REPEATED}"]


def test_an_empty_file_is_as_good_as_none(data_dir: Path) -> None:
    engrams = data_dir / "engrams" / "engrams.db"
    engrams.parent.mkdir()
    engrams.touch()
    assert missing(data_dir, ("memory",)) == ["engrams"]
    said = rebuild_missing(data_dir, ["engrams"])
    assert said == "engrams was missing and was rebuilt from the journal, with 3 exchanges"
    assert missing(data_dir, ("memory",)) == []
