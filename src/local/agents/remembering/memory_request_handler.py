"""Answers requests of others to the memory."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from local.agents.remembering.deletions import Deletions
from local.agents.remembering.embedding_choice import EmbeddingChoice
from local.agents.remembering.records import (
    SHORT,
    change_records,
    cursor_of,
    engram_record,
    fact_records,
    page,
    place_of,
    recalled,
    scores,
)
from local.errors import LocalError
from local.protocol.envelope import new_id
from local.protocol.memory_messages import EntryRecord, MemoryRequest, MemoryResult, OutcomeRecord
from local.protocol.messages import ErrorInfo
from local.services.engrams.hand_edits import EditOutcome, HandEdit
from local.services.engrams.service import EngramService

CATCH_UP_SECONDS = 0.5
AT_ONCE = ("embed", "facts", "recall")  # facts are made of exchanges later, by a model; a turn waits for a recall
BEHIND = (
    f"the latest exchanges may be missing: the memory has not caught up with the journal within {CATCH_UP_SECONDS} s"
)
SHOWN_CHARS = 300  # of each text of an outcome: several of them travel within a frame


class MemoryRequestHandler:
    """Everything is asked on behalf of one user, who sees nothing of the others'. `told(user_id)` is called when what
    a model is told of a user may have changed; `caught_up(seconds)` waits for answers that are on record and not yet
    stored, so that whoever has an answer finds it here, too."""

    def __init__(
        self,
        engrams: EngramService,
        embedding: EmbeddingChoice,
        deletions: Deletions,
        told: Callable[[str], Awaitable[None]],
        caught_up: Callable[[float], Awaitable[bool]],
    ) -> None:
        self._engrams, self._embedding, self._deletions, self._told = engrams, embedding, deletions, told
        self._caught_up = caught_up

    async def answer(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        """What was asked for, or an error that says why there is none."""
        work = {
            "search": self._search,
            "recall": self._recall,
            "list": self._list,
            "get": self._get,
            "delete": self._delete,
            "pin": self._pin,
            "unpin": self._unpin,
            "facts": self._facts,
            "repeated": self._repeated,
            "export": self._export,
            "embed": self._embed,
            "notes": self._notes,
            "restore": self._restore,
            "entries": self._entries,
            "edit": self._edit,
        }[request.verb]
        try:
            is_behind = request.verb not in AT_ONCE and not await self._caught_up(CATCH_UP_SECONDS)
            result = await work(request, user_id)
            return result.model_copy(update={"degraded": (*result.degraded, BEHIND)}) if is_behind else result
        except LocalError as error:
            info = ErrorInfo.of(error)
        except ValueError as error:
            info = ErrorInfo(kind="invalid", message=str(error))
        return MemoryResult(verb=request.verb, error=info)

    async def _search(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        found = await self._engrams.search(user_id, request.query, limit=request.limit, not_session=request.not_session)
        hits = page([recalled(hit) for hit in found.hits])
        return MemoryResult(verb=request.verb, hits=hits, nearest=scores(found.nearest), degraded=found.degraded)

    async def _recall(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        found = await self._engrams.recall(user_id, request.query, limit=request.limit, not_session=request.not_session)
        return MemoryResult(verb=request.verb, hits=page(list(map(recalled, found.hits))), degraded=found.degraded)

    async def _list(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        before, before_id = math.inf if request.before is None else request.before, ""
        if request.cursor:
            before, before_id = place_of(request.cursor)
        limit = request.limit + 1  # one to see if it ends
        engrams = await self._engrams.recent(user_id, limit=limit, before=before, before_id=before_id)
        shown = page([engram_record(engram, SHORT) for engram in engrams[: request.limit]])
        if len(shown) == len(engrams):
            return MemoryResult(verb=request.verb, engrams=shown)
        last = shown[-1]
        return MemoryResult(verb=request.verb, engrams=shown, more_before=last.asked_at, cursor=cursor_of(last))

    async def _get(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        engram = await self._engrams.get(user_id, request.engram_id)
        return MemoryResult(
            verb=request.verb,
            engrams=(engram_record(engram),),
            changes=change_records(await self._engrams.changes(user_id, request.engram_id)),
            facts=fact_records(await self._engrams.facts_of(user_id, request.engram_id)),
        )

    async def _delete(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        try:
            record = await self._deletions.delete(user_id, request.engram_id)
        finally:
            await self._told(user_id)
        repeated_in = await self._engrams.repeated_in(user_id, request.engram_id)
        return MemoryResult(verb=request.verb, engrams=(record,), repeated_in=repeated_in)

    async def _repeated(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        """Whoever may delete the session, which is of one user, may know."""
        repeated_in = await self._engrams.session_repeated_in(request.of_session)
        return MemoryResult(verb=request.verb, repeated_in=repeated_in)

    async def _pin(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        await self._engrams.pin(user_id, request.engram_id)
        return await self._pinned(request, user_id)

    async def _unpin(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        await self._engrams.unpin(user_id, request.engram_id)
        return await self._pinned(request, user_id)

    async def _pinned(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        await self._told(user_id)
        return MemoryResult(
            verb=request.verb, engrams=(engram_record(await self._engrams.get(user_id, request.engram_id)),)
        )

    async def _facts(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        told = await self._engrams.told_lines(user_id)
        stated = await (self._engrams.fact_history if request.history else self._engrams.facts)(user_id)
        latest_first = sorted(stated, key=lambda fact: -fact.stated_at)
        facts = sorted(page(fact_records(latest_first)), key=lambda fact: (fact.slot, fact.stated_at))
        return MemoryResult(
            verb=request.verb, facts=tuple(facts), lines=told.lines, pinned=told.pinned, left_out=told.left_out
        )

    async def _notes(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        notes = await self._engrams.notes.current(user_id)
        return MemoryResult(verb=request.verb, engrams=page([engram_record(note, SHORT) for note in notes]))

    async def _restore(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        await self._engrams.notes.restore(user_id, request.engram_id)
        return MemoryResult(
            verb=request.verb, engrams=(engram_record(await self._engrams.get(user_id, request.engram_id)),)
        )

    async def _entries(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        start = int(request.cursor or 0)
        kept = (await self._engrams.by_hand.entries(user_id))[start:]
        shown = page([EntryRecord.model_validate(asdict(entry)) for entry in kept])
        cursor = str(start + len(shown)) if len(shown) < len(kept) else ""
        return MemoryResult(verb=request.verb, entries=shown, cursor=cursor)

    async def _edit(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        edits, book = [HandEdit(**edit.model_dump()) for edit in request.edits], self._engrams.by_hand
        if request.applies:
            outcomes = await book.apply(user_id, edits, new_id(), time.time())
            await self._told(user_id)
        else:
            outcomes = await book.compare(user_id, edits)
        return MemoryResult(verb=request.verb, outcomes=tuple(map(_shown, outcomes)))

    async def _embed(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        """Vectors of texts that are kept nowhere."""
        model, vectors = await self._embedding.embed(request.texts)
        return MemoryResult(verb=request.verb, vectors=vectors, embedded_by=model)

    async def _export(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        lines, cursor = await self._engrams.export(user_id, request.cursor)
        return MemoryResult(verb=request.verb, lines=tuple(lines), cursor=cursor)


def _shown(outcome: EditOutcome) -> OutcomeRecord:
    before, text, why = (
        each if len(each) <= SHOWN_CHARS else f"{each[: SHOWN_CHARS - 1]}…"
        for each in (outcome.before, outcome.text, outcome.why)
    )
    return OutcomeRecord(line=outcome.line, kind=outcome.kind, what=outcome.what, before=before, text=text, why=why)
