"""What is deleted is gone everywhere, whatever dies or is away in between, and everybody is told once."""

from __future__ import annotations

from typing import Any

import pytest

from local.bus.envelope import Trace, new_id
from local.bus.messages import ResponseGeneration, SessionDeleted, ToolCallRecord
from local.core.errors import NotConfirmed
from local.memory import agent as deletions
from local.memory.messages import MemoryDeleted, MemoryIngested, engram_id

ENGRAM = engram_id("q", "A")


async def stored(remembering: Any) -> None:
    for respondent_id in "AB":
        await remembering.answered("q", "I like zebras", respondent_id=respondent_id)
    await remembering.frontend.hears(MemoryIngested, 2)


async def test_an_exchange_is_deleted_with_its_record_and_everybody_is_told(remembering: Any) -> None:
    await remembering.serve()
    await stored(remembering)
    result = await remembering.ask("delete", engram_id=ENGRAM)
    assert (result.error, result.engrams[0].query_id) == (None, "q")
    await remembering.frontend.hears(MemoryDeleted, 2)
    said = {(each.engram_id, each.respondent_id) for each in remembering.frontend.of(MemoryDeleted)}
    assert said == {(ENGRAM, "A"), (engram_id("q", "B"), "B")}
    for envelope in remembering.frontend.envelopes(MemoryDeleted):
        assert (envelope.session_id, envelope.correlation_id == "q") == (None, False)
    assert all(entry.redacted for entry in await remembering.stage.on_record("q", ResponseGeneration))
    assert (await remembering.ask("search", query="zebras")).hits == ()
    error = (await remembering.ask("delete", engram_id=ENGRAM)).error
    assert error is not None
    assert error.kind == "not_found"
    await remembering.answered("q", "I like zebras")  # whoever brings it again
    await remembering.answered("other", "I like tea")
    await remembering.frontend.hears(MemoryIngested, query_id="other")
    assert [each.query_id for each in (await remembering.ask("list")).engrams] == ["other"]


async def test_a_deletion_names_the_engrams_of_answers_that_had_recalled_it(remembering: Any) -> None:
    await remembering.serve()
    await stored(remembering)
    recalled = ToolCallRecord(
        call_id="c", tool="search_memory", args={}, result="zebras", sources=(f"engram:{ENGRAM}",)
    )
    for query_id, respondent_id, calls in (("asked", "A", [recalled]), ("other", "A", []), ("other", "B", [recalled])):
        said = {"respondent_id": respondent_id, "tool_calls": calls}
        await remembering.answered(query_id, "What do I like?", "Zebras.", session=query_id, **said)
    await remembering.frontend.hears(MemoryIngested, 5)
    asked, other = engram_id("asked", "A"), engram_id("other", "A")
    assert (await remembering.ask("get", engram_id=asked)).engrams[0].recalled == (ENGRAM,)
    (theirs,) = {one.session_id for one in (await remembering.ask("get", engram_id=ENGRAM)).engrams}
    assert (await remembering.ask("repeated", of_session=theirs)).repeated_in == (asked, other)
    assert (await remembering.ask("repeated", of_session="asked")).repeated_in == ()
    assert (await remembering.ask("delete", engram_id=ENGRAM)).repeated_in == (asked, other)
    assert (await remembering.ask("delete", engram_id=asked)).repeated_in == ()


async def test_without_a_journal_the_rest_waits_and_the_asker_is_told(
    remembering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions, "JOURNAL_SECONDS", 0.05)
    served = await remembering.serve()
    await stored(remembering)
    await remembering.stage.no_journal()
    for _ in range(2):  # asked for again, although the engram itself has gone
        error = (await remembering.ask("delete", engram_id=ENGRAM)).error
        assert error is not None
        assert error.kind == "unavailable"
        assert "it is deleted from the memory; from the journal as soon as that is possible" in error.message
    assert (await remembering.ask("list")).engrams == ()
    assert "journal did not answer" in served.participant.details()["deletion_problem"]
    monkeypatch.setattr(deletions, "JOURNAL_SECONDS", 10.0)
    await remembering.stage.journal()
    assert (await remembering.ask("delete", engram_id=ENGRAM)).error is None
    await remembering.frontend.hears(MemoryDeleted, 2)
    assert "deletion_problem" not in served.participant.details()


async def test_a_deletion_that_was_begun_is_finished_by_the_next_process(
    remembering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one has emptied the record, and dies before it has told anybody."""
    first = await remembering.serve()
    await stored(remembering)
    publish = first.bus.publish

    async def fails(message: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(message, MemoryDeleted):
            raise NotConfirmed(message.subject, 1.0)
        return await publish(message, *arguments, **options)

    monkeypatch.setattr(first.bus, "publish", fails)
    error = (await remembering.ask("delete", engram_id=ENGRAM)).error
    assert error is not None
    assert remembering.frontend.of(MemoryDeleted) == []
    await first.kill()
    await remembering.serve()
    await remembering.frontend.hears(MemoryDeleted, engram_id=ENGRAM)
    await remembering.frontend.hears(MemoryDeleted, engram_id=engram_id("q", "B"))


async def test_a_deleted_session_takes_everybodys_engrams_with_it(remembering: Any, until: Any) -> None:
    served = await remembering.serve()
    await stored(remembering)
    await remembering.answered("q2", "I like tea", user="ann")
    await remembering.answered("other", "I like coffee", session="t")
    await remembering.frontend.hears(MemoryIngested, 4)
    deleted = SessionDeleted(deleted_session_id="s")
    await remembering.publish(deleted, Trace(new_id(), None, None, None))
    await remembering.frontend.hears(MemoryDeleted, 3)
    assert {each.query_id for each in remembering.frontend.of(MemoryDeleted)} == {"q", "q2"}
    assert [each.query_id for each in (await remembering.ask("list")).engrams] == ["other"]
    assert (await remembering.ask("list", user="ann")).engrams == ()
    await until(lambda: served.participant.metrics().get("deletions_pending") == 0)
