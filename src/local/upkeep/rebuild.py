"""Respondents' records, the memory and the ratings, made again from the journal as far as that reaches.

What users have deleted has no payload there, and does not come back. Summaries of conversations are not on record, and
made again when they are needed; facts are looked for again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from local.agents.answering.outcomes import asked_of
from local.agents.answering.session_changes import labels_in, new_branch
from local.agents.remembering.records import answer_rating, dreamt_notes, exchange_of, notes_of
from local.agents.reward import rating_of
from local.errors import LocalError, StoreFailed
from local.protocol.dream_messages import DreamMade
from local.protocol.envelope import session_of
from local.protocol.judgement_messages import CritiqueResult, PairwiseResult, RewardEvent, UserFeedback
from local.protocol.memory_messages import OWNER, MemoryAnnotated
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import (
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    SessionBranched,
    SessionChanged,
    SessionDeleted,
)
from local.services.conversation import Asked, ConversationService, TurnStatus
from local.services.engrams.service import EngramService
from local.services.ratings import RatingStore
from local.services.running_reward import RunningReward
from local.services.session_branch import branch
from local.services.session_labels import keep_labels
from local.services.taint_record import end_of
from local.services.turn_record import refusal_of
from local.upkeep.missing import STORES
from local.upkeep.recorded import Recorded, recorded

log = logging.getLogger(__name__)

SLICE = 200


class _Turn(NamedTuple):
    asked: Asked
    asked_at: float
    end: ResponseGeneration | QueryFailed
    ended_at: float


_Happened = _Turn | Recorded  # the end of a query, or what was said of a session


async def _conversation(data_dir: Path, path: Path, respondent_id: str = MAIN_RESPONDENT) -> int:
    """Every query that has an end, in the order of the ends, with what was said of sessions in between, and the rewards
    of the answers; queries without an end are delivered by the journal."""
    happened, number = _happened(data_dir, respondent_id), 0
    async with ConversationService(path, respondent_id) as conversation:
        while found := list(islice(happened, SLICE)):
            await conversation.write(partial(_put_all, found, respondent_id))
            number += sum(isinstance(each, _Turn) for each in found)
        rewards = RunningReward(conversation, respondent_id)
        for each in recorded(data_dir, RewardEvent):
            event = each.message
            if isinstance(event, RewardEvent) and event.respondent_id == respondent_id:
                await rewards.note(event.query_id, event.reward, event.rated_at)
    return number


def _happened(data_dir: Path, respondent_id: str) -> Iterator[_Happened]:
    open_queries: dict[str, Recorded] = {}
    for each in recorded(data_dir, QueryReceived, ResponseGeneration, QueryFailed, SessionChanged, SessionBranched):
        match each.message:
            case SessionChanged() | SessionBranched():
                yield each
            case QueryReceived() as query:
                open_queries.setdefault(query.query_id, each)
            case ResponseGeneration() | QueryFailed() as end if end.respondent_id == respondent_id:
                asked = open_queries.pop(end.query_id, None)
                if asked is not None:
                    yield _turn(asked, end, each.committed_at)


def _turn(asked: Recorded, end: ResponseGeneration | QueryFailed, ended_at: float) -> _Turn:
    assert isinstance(asked.message, QueryReceived)
    return _Turn(asked_of(asked.message, asked.envelope, ()), asked.committed_at, end, ended_at)


def _put_all(happened: Sequence[_Happened], respondent_id: str, db: sqlite3.Connection) -> None:
    for each in happened:
        if isinstance(each, _Turn):
            _put_turn(db, each)
        elif isinstance(each.message, SessionBranched):
            branch(db, respondent_id, new_branch(each.message, each.envelope.user_id))
        elif isinstance(each.message, SessionChanged):
            keep_labels(db, respondent_id, each.message.session_id, labels_in(each.message))


def _put_turn(db: sqlite3.Connection, turn: _Turn) -> None:
    asked, end = turn.asked, turn.end
    db.execute(
        "INSERT OR IGNORE INTO turns (query_id, respondent_id, session_id, user_id, envelope_id, query, body,"
        " in_history, status, tools, answer, outcome_subject, outcome, published, created_at, finished_at, incognito,"
        " refused) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?)",
        (asked.query_id, end.respondent_id, asked.session_id, asked.user_id, asked.envelope_id, asked.query, asked.body,
         asked.in_history, _status(end), json.dumps(asked.tools), getattr(end, "answer", None), end.subject,
         end.encode().decode(), turn.asked_at, turn.ended_at, asked.incognito,
         refusal_of(db, end.respondent_id, asked)),
    )  # fmt: skip
    if isinstance(end, ResponseGeneration):
        texts = () if end.in_history else (end.answer,)
        tainted = end.brings_taint or bool(json.loads(asked.body).get("attachments"))
        end_of(end.query_id, end.respondent_id, tainted=tainted, written=texts)(db)


def _status(end: ResponseGeneration | QueryFailed) -> TurnStatus:
    if isinstance(end, ResponseGeneration):
        return TurnStatus(end.status)
    return TurnStatus.CANCELLED if end.error.kind == "cancelled" else TurnStatus.FAILED


async def _engrams(data_dir: Path, path: Path) -> int:
    """Every answer, then what was said of it, pins included."""
    number = 0
    async with EngramService(path.parent) as engrams:
        said = (ResponseGeneration, CritiqueResult, PairwiseResult, UserFeedback, MemoryAnnotated, SessionDeleted)
        for each in recorded(data_dir, *said, DreamMade):
            number += await _remember(engrams, each)
    return number


async def _remember(engrams: EngramService, each: Recorded) -> int:
    """Store one message; returns how many exchanges that were."""
    match each.message:
        case ResponseGeneration() as response:
            for note in notes_of(response, each.envelope, each.committed_at):
                await engrams.notes.keep(note)
            exchange = exchange_of(response, each.envelope, each.committed_at)
            if exchange is not None:
                await engrams.ingest(exchange)
                return 1
        case DreamMade() as made:
            for note in dreamt_notes(made, each.envelope):
                await engrams.notes.keep(note)
        case CritiqueResult() as result:
            score = result.score if result.expected is None else result.expected
            if score is not None:
                await engrams.grade(result.query_id, result.respondent_id, score)
        case PairwiseResult(winner=str(winner)) as result:
            for respondent_id in ("A", "B"):
                await engrams.compare(result.query_id, respondent_id, winner)
        case UserFeedback() as feedback:
            await engrams.ratings.rate(answer_rating(feedback, each.envelope))
        case MemoryAnnotated(what="pinned") as pinned:
            with suppress(LocalError):  # of an answer that was deleted, or is too old to be on record
                pin = engrams.pin if pinned.value else engrams.unpin
                await pin(each.envelope.user_id or OWNER, pinned.engram_id)
        case MemoryAnnotated(what="restored") as restored:
            with suppress(LocalError):
                await engrams.notes.restore(each.envelope.user_id or OWNER, restored.engram_id)
        case SessionDeleted() as deleted:
            await engrams.delete_session(deleted.deleted_session_id)
    return 0


async def _ratings(data_dir: Path, path: Path) -> int:
    """Every rating and every score. Rewards are due again, and told under the ids that the journal knows."""
    number = 0
    async with RatingStore(path) as ratings:
        for each in recorded(data_dir, UserFeedback, CritiqueResult):
            match each.message:
                case UserFeedback() as feedback:
                    await ratings.rate(rating_of(feedback, each.envelope))
                    number += 1
                case CritiqueResult() as critique:
                    session_id = session_of(each.envelope, critique.query_id)
                    await ratings.grade(critique.query_id, critique.respondent_id, session_id, critique.score)
    return number


Make = Callable[[Path, Path], Awaitable[int]]
MAKE: Mapping[str, Make] = {
    "conversation": _conversation,
    "engrams": _engrams,
    "conversation_b": partial(_conversation, respondent_id="B"),
    "ratings": _ratings,
}
NOT_ON_RECORD: Mapping[str, str] = {
    "conversation": "summaries of long conversations are made again when they are needed, and branches of deleted ones"
    " begin with what was asked in them",
    "engrams": "facts are looked for again, and pins from before this version are not on record",
    "conversation_b": "summaries of long conversations are made again when they are needed",
    "ratings": "nothing else was there",
}


def rebuild(data_dir: Path, name: str) -> int:
    """Make a store of `STORES` anew from the journal; returns how many exchanges are in it. What there was is moved
    aside. Nothing may run on the data directory. Raises `NotOnRecord` without a journal, `StoreFailed`."""
    path = data_dir / STORES[name].path
    try:
        _move_aside(path)
    except OSError as error:
        raise StoreFailed(f"{path} cannot be moved aside: {error.strerror}") from None
    return asyncio.run(_made(name, data_dir))


def rebuild_missing(data_dir: Path, names: Iterable[str]) -> str:
    """Make anew those that the journal has something for; says what was done, or could not be, and nothing where there
    was nothing to do."""
    said = []
    for name in [name for name in names if has_any(data_dir, name)]:
        path = data_dir / STORES[name].path
        log.warning("%s is missing or empty, but the journal has answers: it is made anew from them", path)
        try:
            number = asyncio.run(_made(name, data_dir))
        except LocalError as error:
            log.error("%s could not be made anew: %s", path, error)
            said.append(f"{name} is missing and could not be made anew: {error}")
            continue
        log.warning("%s has %d %s again; %s", path, number, counted(name), NOT_ON_RECORD[name])
        said.append(f"{name} was missing and was made anew from the journal, with {number} {counted(name)}")
    return "; ".join(said)


async def _made(name: str, data_dir: Path) -> int:
    return await MAKE[name](data_dir, data_dir / STORES[name].path)


def counted(name: str) -> str:
    """What the number of a store counts."""
    return "ratings" if name == "ratings" else "exchanges"


def has_any(data_dir: Path, name: str) -> bool:
    """Whether the journal has something for a store."""
    kinds = (UserFeedback, CritiqueResult) if name == "ratings" else (ResponseGeneration,)
    try:
        with closing(recorded(data_dir, *kinds)) as found:
            return any(_is_for(name, each.message) for each in found)
    except LocalError:
        return False  # the journal's own start says what is wrong with it


def _is_for(name: str, message: object) -> bool:
    if not isinstance(message, ResponseGeneration):
        return True
    is_of_whom = name != "conversation_b" or message.respondent_id != MAIN_RESPONDENT
    return is_of_whom and not message.incognito and message.in_history


def _move_aside(path: Path) -> None:
    names = (f"{path.name}.before-rebuild-{number}" for number in count(1))
    aside = next(name for name in names if not path.with_name(name).exists())
    for suffix in ("", "-wal", "-shm"):
        file = path.with_name(path.name + suffix)
        if file.exists():
            file.replace(path.with_name(aside + suffix))
