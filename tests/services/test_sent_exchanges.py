"""How the model was sent an exchange is stored with its turn, and goes when something in it is deleted."""

from __future__ import annotations

from pathlib import Path

from local.generator.history import ConversationService, NewTurn, TurnStatus
from local.generator.sessions import BranchPoint, NewBranch, SessionRecord

SENT = '{"said": [], "messages": [], "sources": ["engram:%s"]}'


async def asked(conversation: ConversationService, query_id: str, sent: str | None) -> None:
    query = NewTurn(query_id, "s", None, f"e-{query_id}", f"Question {query_id}", "{}")
    await conversation.accept(query)
    await conversation.finish(query_id, TurnStatus.ANSWERED, "Yes.", "response.generation", "{}", sent=sent)


async def sent(conversation: ConversationService, session: str = "s") -> tuple[str | None, ...]:
    query = NewTurn("next", session, None, "e-next", "And now?", "{}")
    past = conversation.foresee(query)
    assert past is not None
    return past.sent


async def test_it_is_before_the_turns_that_come_after_it_and_in_branches(tmp_path: Path) -> None:
    async with ConversationService(tmp_path / "c.db") as conversation:
        await asked(conversation, "q1", SENT % "a")
        await asked(conversation, "q2", None)  # as of turns from before it was stored
        assert await sent(conversation) == (SENT % "a", None)
        point = BranchPoint("s", "q2", None, False)
        await SessionRecord(conversation, "A").branch(NewBranch("branch", point, 1.0))
        assert await sent(conversation, "branch") == (SENT % "a",)


async def test_it_goes_with_an_engram_that_it_tells_of_and_the_exchange_stays(tmp_path: Path) -> None:
    async with ConversationService(tmp_path / "c.db") as conversation:
        for query_id, engram in (("q1", "a"), ("q2", "b"), ("q3", "?")):  # of the last nobody knows the engram
            await asked(conversation, query_id, SENT % engram)
        assert await conversation.forget_recalled("a") == 2
        assert await sent(conversation) == (None, SENT % "b", None)
        assert len(await conversation.history("s")) == 6
