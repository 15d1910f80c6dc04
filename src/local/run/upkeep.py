"""`local2 backup`, `restore` and `rebuild`: copying, restoring and rebuilding stored data."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sqlite3
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from local.bus.blobs import BlobStore
from local.bus.envelope import Envelope, decode, session_of
from local.bus.message import MAIN_RESPONDENT, ErrorInfo, Message
from local.bus.messages import (
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    SessionBranched,
    SessionChanged,
    SessionDeleted,
    SessionImported,
    SessionTitled,
    ToolBegins,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
    ToolSchema,
)
from local.core.capability import participants
from local.core.data_dir import RunDirectory
from local.core.database import connect_read_only, naming_damage, store_failure
from local.core.environment import data_dir as find_data_dir
from local.core.errors import BackupRefused, ConfigError, LocalError, StoreFailed
from local.critic.messages import CritiqueResult, PairwiseResult, RewardEvent, UserFeedback
from local.generator.history import (
    QUERY,
    SESSION,
    ConversationService,
    NewTurn,
    TurnStatus,
    chosen_model,
    delete_turns,
    end_of,
    forget_recalled,
    keep_settings,
    refusal_of,
)
from local.generator.imports import put_imported
from local.generator.output import new_turn
from local.generator.running_reward import RunningReward
from local.generator.session_changes import labels_in, new_branch
from local.generator.sessions import branch, keep_labels
from local.generator.steps import ModelStep, PlannedCall, Step, ToolStep, parse_step
from local.generator.titles import keep_title
from local.journal.config import CELL_FILE
from local.journal.schema import FILE_NAME, Filters, create_mark, mark_path, read_state, rows, sync_folder
from local.journal.schema import FILE_NAME as JOURNAL
from local.journal.store import PROGRESS, JournalView, set_progress
from local.memory.messages import OWNER, MemoryAnnotated, MemoryDeleted
from local.reflection.messages import DreamMade
from local.tools.effects import EffectCall, EffectStore, key_of, outcome_unknown, request_digest

if TYPE_CHECKING:
    from local.memory.service import EngramService

# A sound copy of a data directory, also of one that a system runs on, and its way back.

MANIFEST = "backup.json"
LOCK = "lock"
# Held by a process, rebuilt or downloaded again, of one run or machine alone, or the files of a workspace.
LEFT_OUT = (
    *("lock", "owner.lock", "vectors", "logs", "senders", "models", "api_token", "grants", "secrets", "workspace"),
    *("sign_ins.json", CELL_FILE, MANIFEST),
)
_STAYS = (LOCK, "models", "secrets", "workspace")
_PARTS = ("-wal", "-shm", ".mark", ".part", ".new", ".suspect")  # of a database that is copied, or half made


def back_up(data_dir: Path, target: Path, without: Sequence[str] = ()) -> int:
    """Copy a data directory, `without` some of its entries, to a folder, which must not be there; returns how many
    files that were.

    The folder is there once all of it is on the disk. Raises `BackupRefused`, `StoreFailed`, `StoreDamaged`.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupRefused(f"{target} already exists; choose another folder")
    if not (data_dir / JOURNAL).exists():
        raise BackupRefused(f"{data_dir} has no journal: there is nothing to copy")
    if target.resolve().is_relative_to(data_dir.resolve()):
        raise BackupRefused(f"{target} is inside the data directory; choose a folder elsewhere")
    half_made = target.with_name(f"{target.name}.part")
    shutil.rmtree(half_made, ignore_errors=True)
    try:
        half_made.mkdir(parents=True, mode=0o700)
        number, last = _copy_all(data_dir, half_made, without)
        size = sum(path.stat().st_size for path in half_made.rglob("*") if path.is_file())
        about = {"made_at": time.time(), "of": str(data_dir), "files": number, "size": size, "last": last}
        (half_made / MANIFEST).write_text(json.dumps(about))
        half_made.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise store_failure(target, error, what="cannot be written: ") from None
    return number


def backups_folder(data_dir: Path) -> Path:
    """Return the folder of backups made without naming one: beside the data directory."""
    return data_dir.with_name(f"{data_dir.name}-backups")


def made_backups(data_dir: Path) -> list[dict[str, Any]]:
    """The complete backups there, the latest first: folder, made_at, files, and size in bytes if it was noted."""
    found = []
    for manifest in backups_folder(data_dir).glob(f"*/{MANIFEST}"):
        with suppress(OSError, ValueError, KeyError, TypeError):  # being removed, or not ours
            about = json.loads(manifest.read_text())
            rest = {"files": int(about["files"]), "size": about.get("size")}
            found.append({"folder": str(manifest.parent), "made_at": float(about["made_at"]), **rest})
    return sorted(found, key=lambda each: -each["made_at"])


def restore(source: Path, data_dir: Path, *, replace: bool = False) -> Path | None:
    """Restore a backup to a data directory on which no system runs. With `replace` the present content is moved aside;
    returns whereto. Raises `BackupRefused`, `StoreFailed`.
    """
    if not (source / MANIFEST).exists():
        raise BackupRefused(
            f"{source} is not a complete backup: {MANIFEST}, which `local2 backup` writes at the end, is missing"
        )
    present = [path for path in data_dir.iterdir() if path.name not in _STAYS]
    if present and not replace:
        raise BackupRefused(f"{data_dir} is not empty; --force moves its content aside")
    try:
        aside = _move_aside(data_dir, present) if present else None
        for path in _files(source):
            _copy_file(path, data_dir / path.relative_to(source))
        for path in sorted(source.rglob("*.mark")):
            _copy_file(path, data_dir / path.relative_to(source))
    except OSError as error:
        raise store_failure(data_dir, error, what="cannot be restored: ") from None
    return aside


def _copy_all(data_dir: Path, target: Path, without: Sequence[str]) -> tuple[int, int]:
    """Copy; returns the number of files, and that of the last message before the first store was copied."""
    progress, last = _progress(data_dir / JOURNAL)
    files = [path for path in _files(data_dir) if path.relative_to(data_dir).parts[0] not in without]
    databases = sorted((path for path in files if path.suffix == ".db"), key=lambda path: (path.name == JOURNAL, path))
    for path in databases:
        _copy_database(path, target / path.relative_to(data_dir))
    with closing(sqlite3.connect(target / JOURNAL, isolation_level=None)) as db:
        db.execute("BEGIN")
        set_progress(db, progress)
        db.execute("COMMIT")
        create_mark(mark_path(target / JOURNAL), read_state(db))
    others = [path for path in _files(data_dir) if path.suffix != ".db"]
    others = [path for path in others if path.relative_to(data_dir).parts[0] not in without]
    for path in others:
        with suppress(FileNotFoundError):  # deleted meanwhile
            _copy_file(path, target / path.relative_to(data_dir))
    return len(databases) + len(others), last


def _progress(journal: Path) -> tuple[Mapping[str, list[tuple[Any, ...]]], int]:
    """Return the progress of each consumer, and the number of the last message."""
    try:
        with naming_damage(), connect_read_only(journal) as db:
            db.execute("BEGIN")
            return {table: list(rows(db, table)) for table in PROGRESS}, read_state(db).last_number
    except sqlite3.Error as error:
        raise store_failure(journal, error, what="cannot be copied: ") from None


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files to copy."""
    for path in sorted(folder.iterdir()):
        if path.name in LEFT_OUT or path.name.endswith(_PARTS) or ".damaged-" in path.name:
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path


def _copy_database(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with naming_damage(), connect_read_only(source) as db, closing(sqlite3.connect(target)) as copy:
            db.backup(copy)
            copy.execute("PRAGMA journal_mode=WAL")
    except sqlite3.Error as error:
        raise store_failure(source, error, what="cannot be copied: ") from None
    _sync(target)


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.copy2(source, target)
    _sync(target)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
    path.chmod(0o600)


def _move_aside(data_dir: Path, present: list[Path]) -> Path:
    names = (data_dir.with_name(f"{data_dir.name}.before-restore-{number}") for number in count(1))
    aside = next(name for name in names if not name.exists())
    aside.mkdir(mode=0o700)
    for path in present:
        path.replace(aside / path.name)
    return aside


# Which stores are missing, or have nothing in them, beside a journal.


class Rebuildable(NamedTuple):
    """A store that can be rebuilt: its file in the data directory, a table that is empty if the store is, and its
    owner. One that is `often_empty` counts as missing only if its file is.
    """

    path: str
    table: str
    owner: str
    often_empty: bool = False


_OF_ALL: Mapping[str, Rebuildable] = {
    "conversation": Rebuildable("conversation.db", "turns", "generator"),
    "engrams": Rebuildable("engrams/engrams.db", "engrams", "memory"),
    "conversation_b": Rebuildable("conversation_b.db", "turns", "generator_b"),
    "ratings": Rebuildable("reward.db", "answers", "reward", often_empty=True),
}
STORES = {name: store for name, store in _OF_ALL.items() if store.owner in participants()}


def missing(data_dir: Path, owners: Collection[str]) -> list[str]:
    """Return the names in `STORES` of the missing stores of these participants; none if there is no journal."""
    if not (data_dir / JOURNAL).exists():
        return []
    stores = {name: store for name, store in STORES.items() if store.owner in owners}
    return [name for name, store in stores.items() if _is_missing(data_dir / store.path, store)]


def _is_missing(path: Path, store: Rebuildable) -> bool:
    return not path.exists() or (not store.often_empty and _is_empty(path, store.table))


def _is_empty(path: Path, table: str) -> bool:
    try:
        with connect_read_only(path) as db:
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is None:
                return True
            return db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None
    except sqlite3.Error:
        return False  # damaged, or not readable: its owner reports it


# Messages as the journal has them, for stores that are made again from it.


class Recorded(NamedTuple):
    """A recorded message with its envelope and commit time, in seconds since 1970."""

    message: Message
    envelope: Envelope
    committed_at: float


def recorded(
    data_dir: Path, *kinds: type[Message], families: Sequence[type[Message]] = (), **filters: Unpack[Filters]
) -> Generator[Recorded, None, None]:
    """Yield all messages of these kinds, and of `families`, that were not deleted, oldest first. Raises `NotOnRecord`,
    `StoreFailed`.

    Messages with a missing large field are skipped.
    """
    by_subject = {kind.subject: kind for kind in kinds}
    blobs = BlobStore(data_dir / "blobs")
    with JournalView(data_dir / FILE_NAME) as journal:
        filters["subjects"] = [*by_subject, *(each.subject for each in families)]
        for stored in journal.read_all(**filters):
            if stored.redacted:
                continue
            envelope = decode(stored.entry.frame)
            kind = by_subject.get(envelope.subject) or _family(envelope.subject, families)
            try:
                message = kind.decode(blobs.unpack(envelope.payload))
            except LocalError:
                continue
            yield Recorded(message, envelope, stored.committed_at)


def _family(subject: str, families: Sequence[type[Message]]) -> type[Message]:
    return next(kind for kind in families if subject.startswith(kind.subject))


# Respondents' records, the memory and the ratings, made again from the journal as far as that reaches.

log = logging.getLogger(__name__)

SLICE = 200


class _Turn(NamedTuple):
    asked: NewTurn
    asked_at: float
    end: ResponseGeneration | QueryFailed
    ended_at: float


_Happened = _Turn | Recorded  # the end of a query, or a change of a session


async def _conversation(data_dir: Path, path: Path, respondent_id: str = MAIN_RESPONDENT, after: int = 0) -> int:
    """Rebuild every query that ended after that message, in the order of the ends, with the changes of sessions in
    between, and the rewards of the answers; the journal delivers open queries.
    """
    happened, number = _happened(data_dir, respondent_id, after), 0
    async with ConversationService(path, respondent_id) as conversation:
        while found := list(islice(happened, SLICE)):
            await conversation.write(partial(_put_all, found, respondent_id))
            number += sum(isinstance(each, _Turn) for each in found)
        rewards = RunningReward(conversation, respondent_id)
        for each in recorded(data_dir, RewardEvent, after=after):
            event = each.message
            if isinstance(event, RewardEvent) and event.respondent_id == respondent_id:
                await rewards.note(event.query_id, event.reward, event.rated_at)
    return number


def _happened(data_dir: Path, respondent_id: str, after: int) -> Iterator[_Happened]:
    open_queries: dict[str, Recorded] = {}
    of_sessions = (SessionChanged, SessionTitled, SessionBranched, SessionImported, SessionDeleted, MemoryDeleted)
    for each in recorded(data_dir, QueryReceived, ResponseGeneration, QueryFailed, *of_sessions, after=after):
        match each.message:
            case QueryReceived() as query:
                open_queries.setdefault(query.query_id, each)
            case ResponseGeneration() | QueryFailed() as end if end.respondent_id == respondent_id:
                asked = open_queries.pop(end.query_id, None)
                if asked is None and after:
                    asked = next(recorded(data_dir, QueryReceived, correlation_id=end.query_id, before=after + 1), None)
                if asked is not None:
                    yield _turn(asked, end, each.committed_at)
            case ResponseGeneration() | QueryFailed():
                pass  # another respondent's
            case _:
                yield each


def _turn(asked: Recorded, end: ResponseGeneration | QueryFailed, ended_at: float) -> _Turn:
    assert isinstance(asked.message, QueryReceived)
    return _Turn(new_turn(asked.message, asked.envelope, ()), asked.committed_at, end, ended_at)


def _put_all(happened: Sequence[_Happened], respondent_id: str, db: sqlite3.Connection) -> None:
    for each in happened:
        if isinstance(each, _Turn):
            _put_turn(db, each)
        elif isinstance(each.message, SessionBranched):
            branch(db, respondent_id, new_branch(each.message, each.envelope.user_id))
        elif isinstance(each.message, SessionChanged):
            keep_labels(db, respondent_id, each.message.session_id, labels_in(each.message))
        elif isinstance(each.message, SessionImported):
            put_imported(db, respondent_id, each.message, each.envelope.user_id)
        elif isinstance(each.message, SessionTitled):
            titled = each.message
            keep_title(db, respondent_id, titled.query_id, titled.session_id, titled.title)
        elif isinstance(each.message, SessionDeleted):
            delete_turns(db, respondent_id, SESSION, each.message.deleted_session_id)
        elif isinstance(each.message, MemoryDeleted):
            delete_turns(db, respondent_id, QUERY, each.message.query_id)
            forget_recalled(db, respondent_id, each.message.engram_id)


def _put_turn(db: sqlite3.Connection, turn: _Turn) -> None:
    asked, end = turn.asked, turn.end
    db.execute(
        "INSERT OR IGNORE INTO turns (query_id, respondent_id, session_id, user_id, envelope_id, query, body,"
        " in_history, status, tools, answer, outcome_subject, outcome, published, created_at, finished_at, incognito,"
        " refused, model) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?)",
        (asked.query_id, end.respondent_id, asked.session_id, asked.user_id, asked.envelope_id, asked.query, asked.body,
         asked.in_history, _status(end), json.dumps(asked.tools), getattr(end, "answer", None), end.subject,
         end.encode().decode(), turn.asked_at, turn.ended_at, asked.incognito,
         refusal := refusal_of(db, end.respondent_id, asked),
         asked.model or chosen_model(db, end.respondent_id, asked.session_id)),
    )  # fmt: skip
    db.execute(  # it was on record, and open
        "UPDATE turns SET status = ?, answer = ?, outcome_subject = ?, outcome = ?, published = 1, finished_at = ?"
        " WHERE query_id = ? AND respondent_id = ? AND published = 0",
        (_status(end), getattr(end, "answer", None), end.subject, end.encode().decode(), turn.ended_at,
         *(key := (asked.query_id, end.respondent_id))),
    )  # fmt: skip
    for table in ("steps", "results", "cancels"):
        db.execute(f"DELETE FROM {table} WHERE query_id = ? AND respondent_id = ?", key)
    if refusal is None:
        keep_settings(db, end.respondent_id, asked, turn.asked_at)
    if isinstance(end, ResponseGeneration):
        texts = () if end.in_history else (end.answer,)
        tainted = end.brings_taint or bool(json.loads(asked.body).get("attachments"))
        end_of(end.query_id, end.respondent_id, tainted=tainted, written=texts)(db)


def _status(end: ResponseGeneration | QueryFailed) -> TurnStatus:
    if isinstance(end, ResponseGeneration):
        return TurnStatus(end.status)
    return TurnStatus.CANCELLED if end.error.kind == "cancelled" else TurnStatus.FAILED


async def _engrams(data_dir: Path, path: Path) -> int:
    """Yield every answer, then its ratings, grades and pins."""
    from local.memory.service import EngramService

    number = 0
    async with EngramService(path.parent) as engrams:
        said = (ResponseGeneration, CritiqueResult, PairwiseResult, UserFeedback, MemoryAnnotated, SessionDeleted)
        for each in recorded(data_dir, *said, DreamMade):
            number += await _remember(engrams, each)
    return number


async def _remember(engrams: EngramService, each: Recorded) -> int:
    """Store one message; returns how many exchanges that were."""
    from local.memory.records import answer_rating, dreamt_notes, exchange_of, notes_of

    match each.message:
        case ResponseGeneration() as response:
            for note in notes_of(response, each.envelope, each.committed_at):
                await engrams.keep_note(note)
            exchange = exchange_of(response, each.envelope, each.committed_at)
            if exchange is not None:
                await engrams.ingest(exchange)
                return 1
        case DreamMade() as made:
            for note in dreamt_notes(made, each.envelope):
                await engrams.keep_note(note)
        case CritiqueResult() as result:
            score = result.score if result.expected is None else result.expected
            if score is not None:
                await engrams.grade(result.query_id, result.respondent_id, score)
        case PairwiseResult(winner=str(winner)) as result:
            for respondent_id in ("A", "B"):
                await engrams.compare(result.query_id, respondent_id, winner)
        case UserFeedback() as feedback:
            await engrams.rate(answer_rating(feedback, each.envelope))
        case MemoryAnnotated(what="pinned") as pinned:
            with suppress(LocalError):  # of an answer that was deleted, or is too old to be on record
                pin = engrams.pin if pinned.value else engrams.unpin
                await pin(each.envelope.user_id or OWNER, pinned.engram_id)
        case MemoryAnnotated(what="restored") as restored:
            with suppress(LocalError):
                await engrams.restore_note(each.envelope.user_id or OWNER, restored.engram_id)
        case SessionDeleted() as deleted:
            await engrams.delete_session(deleted.deleted_session_id)
    return 0


async def _ratings(data_dir: Path, path: Path) -> int:
    """Yield every rating and every score. Rewards are due again, and published under the ids that the journal knows."""
    from local.reward.reward import RatingStore, rating_of

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


async def _effects(data_dir: Path, after: int) -> None:
    """Put the calls that began after that message on the record of each tool's effects: with their result, or as
    interrupted."""
    begun: dict[str, list[Recorded]] = {}
    results: dict[str, str] = {}
    for each in recorded(data_dir, ToolBegins, families=(ToolResult,), after=after):
        match each.message:
            case ToolBegins() as call:
                begun.setdefault(call.tool, []).append(each)
            case ToolResult() as result:
                results[key_of(result)] = result.encode().decode()
    for tool, calls in begun.items():
        async with EffectStore(data_dir / "effects" / f"{tool}.db") as store:
            for message, envelope, _ in calls:
                assert isinstance(message, ToolBegins)
                key = key_of(message)
                session_id = session_of(envelope, message.query_id)
                await store.begin(EffectCall(key, request_digest(message), message.query_id, session_id))
                if key in results:
                    await store.end(key, results[key])


async def _open_turns(data_dir: Path, path: Path, respondent_id: str, after: int) -> None:
    """Give open turns the calls that they have made after that message, up to the last one that changes something: a
    turn that began again could ask for the same effect in another call. Calls of the last round are made again, and
    answered from the record of effects.
    """
    rounds: defaultdict[str, dict[int, dict[str, ToolRequest | ToolBegins]]] = defaultdict(lambda: defaultdict(dict))
    last: dict[str, int] = {}
    results: dict[str, ToolResult] = {}
    for each in recorded(data_dir, ToolBegins, families=(ToolRequest, ToolResult), after=after):
        match each.message:
            case ToolResult() as result if result.respondent_id == respondent_id:
                results[result.call_id] = result
            case ToolRequest() | ToolBegins() as call if call.respondent_id == respondent_id:
                step, _, index = call.call_id.removeprefix(f"{call.query_id}:").partition(":")
                if step.isdecimal() and index.isdecimal():  # others are of no turn
                    rounds[call.query_id][int(step)][call.call_id] = call
                    if isinstance(call, ToolBegins):
                        last[call.query_id] = int(step)
    if not last:
        return
    schemas = (each.message for each in recorded(data_dir, ToolSchema))
    trusted = {schema.tool for schema in schemas if isinstance(schema, ToolSchema) and schema.trusted}
    async with ConversationService(path, respondent_id) as conversation:
        for query_id, until in last.items():
            asked = next(recorded(data_dir, QueryReceived, correlation_id=query_id), None)
            if asked is None or not isinstance(asked.message, QueryReceived):
                continue
            turn, _ = await conversation.accept(new_turn(asked.message, asked.envelope, ()))
            if turn.status is not TurnStatus.OPEN:
                continue
            known = [parse_step(body) for body in await conversation.steps(query_id)]
            steps = list[Step](known)
            for number, calls in sorted(rounds[query_id].items()):
                if not any(_makes(step, calls) for step in steps):
                    planned = (
                        PlannedCall(call_id=call_id, tool=call.tool, args=call.args)
                        for call_id, call in sorted(calls.items())
                    )
                    steps.append(ModelStep(content="", calls=tuple(planned)))
                if number == until:
                    break
                if isinstance(made := steps[-1], ModelStep) and _makes(made, calls):
                    steps.append(ToolStep(records=tuple(_record(call, results, trusted) for call in made.calls)))
            bodies = [step.model_dump_json() for step in steps[len(known) :]]
            await conversation.add_steps(query_id, len(known), bodies)


def _makes(step: Step, call_ids: Collection[str]) -> bool:
    return isinstance(step, ModelStep) and {call.call_id for call in step.calls}.issuperset(call_ids)


def _record(call: PlannedCall, results: Mapping[str, ToolResult], trusted: Collection[str]) -> ToolCallRecord:
    whole = {"call_id": call.call_id, "tool": call.tool, "args": call.args}
    result = results.get(call.call_id)
    if result is None:
        return ToolCallRecord(
            **whole, tainted=True, error=ErrorInfo.of(outcome_unknown(f"{call.tool} was interrupted"))
        )
    shared = ToolCallRecord.model_fields.keys() & result.model_fields_set
    is_tainted = result.tainted or call.tool not in trusted
    return ToolCallRecord.model_validate(
        {name: getattr(result, name) for name in shared} | whole | {"tainted": is_tainted}
    )


async def _approvals(data_dir: Path, after: int) -> None:
    """Put what people were asked after that message, and what they decided, on the gatekeeper's record: it asks a
    question once."""
    from local.permissions.messages import ApprovalDecision, ApprovalRequest
    from local.permissions.store import ApprovalQueue, ApprovalStore, NotWaiting
    from local.permissions.store import key_of as key_of_call

    async with ApprovalStore(data_dir / "approvals.db") as store:
        questions = ApprovalQueue(store)
        await questions.load()
        for each in recorded(data_dir, ApprovalRequest, ApprovalDecision, after=after):
            with suppress(NotWaiting):  # it is on record, or was deleted
                match each.message:
                    case ApprovalRequest() as request:
                        await questions.ask(request, each.envelope.user_id)
                    case ApprovalDecision(decision=decision, by=by, answer=answer, decided_at=at, mode=mode) as decided:
                        key = key_of_call(decided.call_id, decided.respondent_id)
                        await questions.decide(key, decision, by, answer, at, mode)
                        await questions.mark_published(key)


CAUGHT_UP = ("generator", "generator_b")  # consumers whose stores have everything after `catch_up`


async def catch_up(data_dir: Path, owners: Collection[str], after: int) -> None:
    """Bring the stores of these participants up to date whose content decides what is done again: the conversations,
    the records of effects and of approvals. They contain what the messages up to the number `after` say;
    consumers other than `CAUGHT_UP` receive the later ones again.
    """
    if "gatekeeper" in owners:
        await _approvals(data_dir, after)
    for name, respondent_id in {"conversation": MAIN_RESPONDENT, "conversation_b": "B"}.items():
        if name in STORES and STORES[name].owner in owners:
            path = data_dir / STORES[name].path
            await _conversation(data_dir, path, respondent_id, after)
            await _open_turns(data_dir, path, respondent_id, after)
    await _effects(data_dir, after)


Make = Callable[[Path, Path], Awaitable[int]]
MAKE: Mapping[str, Make] = {
    "conversation": _conversation,
    "engrams": _engrams,
    "conversation_b": partial(_conversation, respondent_id="B"),
    "ratings": _ratings,
}
NOT_ON_RECORD: Mapping[str, str] = {
    "conversation": "summaries of long conversations are made again when they are needed, and branches of deleted ones"
    " begin with their own first question",
    "engrams": "facts are extracted again, and pins from before this version are not recorded",
    "conversation_b": "summaries of long conversations are made again when they are needed",
    "ratings": "there was nothing else",
}


def rebuild(data_dir: Path, name: str) -> int:
    """Rebuild a store of `STORES` from the journal; returns how many exchanges are in it. The former file is moved
    aside. No system may run on the data directory. Raises `NotOnRecord` without a journal, `StoreFailed`.
    """
    path = data_dir / STORES[name].path
    try:
        _rebuild_move_aside(path)
    except OSError as error:
        raise StoreFailed(f"{path} cannot be moved aside: {error.strerror}") from None
    return asyncio.run(_made(name, data_dir))


def rebuild_missing(data_dir: Path, names: Iterable[str]) -> str:
    """Rebuild the missing stores for which the journal has content; returns what was rebuilt or failed, empty if there
    was nothing to do.
    """
    said = []
    for name in [name for name in names if has_any(data_dir, name)]:
        path = data_dir / STORES[name].path
        log.warning("%s is missing or empty, but the journal has answers: it is rebuilt from them", path)
        try:
            number = asyncio.run(_made(name, data_dir))
        except LocalError as error:
            log.error("%s could not be rebuilt: %s", path, error)
            said.append(f"{name} is missing and could not be rebuilt: {error}")
            continue
        log.warning("%s has %d %s again; %s", path, number, counted(name), NOT_ON_RECORD[name])
        said.append(f"{name} was missing and was rebuilt from the journal, with {number} {counted(name)}")
    return "; ".join(said)


async def _made(name: str, data_dir: Path) -> int:
    return await MAKE[name](data_dir, data_dir / STORES[name].path)


def counted(name: str) -> str:
    """Return the noun that a store's number counts."""
    return "ratings" if name == "ratings" else "exchanges"


def has_any(data_dir: Path, name: str) -> bool:
    """Whether the journal has something for a store."""
    kinds = (UserFeedback, CritiqueResult) if name == "ratings" else (ResponseGeneration,)
    try:
        with closing(recorded(data_dir, *kinds)) as found:
            return any(_is_for(name, each.message) for each in found)
    except LocalError:
        return False  # the journal's own start reports the error


def _is_for(name: str, message: object) -> bool:
    if not isinstance(message, ResponseGeneration):
        return True
    is_of_whom = name != "conversation_b" or message.respondent_id != MAIN_RESPONDENT
    return is_of_whom and not message.incognito and message.in_history


def _rebuild_move_aside(path: Path) -> None:
    names = (f"{path.name}.before-rebuild-{number}" for number in count(1))
    aside = next(name for name in names if not path.with_name(name).exists())
    for suffix in ("", "-wal", "-shm"):
        file = path.with_name(path.name + suffix)
        if file.exists():
            file.replace(path.with_name(aside + suffix))


Say = Callable[[str], object]


def run_backup(folder: Path, data_dir: Path | None, say: Say) -> None:
    """Copy the data directory, whether a system runs on it or not. Raises `LocalError`."""
    source = find_data_dir(data_dir)
    number = back_up(source, folder)
    say(f"{source} was copied to {folder}: {number} files")


def run_restore(folder: Path, data_dir: Path | None, say: Say, *, replace: bool) -> None:
    """Put a backup in the place of the data directory. Raises `LocalError`, `AlreadyRunning` while a system runs."""
    directory = RunDirectory(find_data_dir(data_dir))
    directory.make_data_dir()
    with directory.lock():
        aside = restore(folder, directory.data_dir, replace=replace)
    if aside is not None:
        say(f"the previous data is in {aside} now")
    say(f"{directory.data_dir} was restored to the state of {folder}")


def run_rebuild(what: str, data_dir: Path | None, say: Say) -> None:
    """Rebuild stores from the journal. Raises `LocalError`, `AlreadyRunning` while a system runs."""
    if what not in (*STORES, "all"):
        raise ConfigError(f"{what!r} is not one of {', '.join(STORES)}, all")
    directory = RunDirectory(find_data_dir(data_dir))
    directory.make_data_dir()
    with directory.lock():
        folder = directory.data_dir
        there = [name for name in STORES if (folder / STORES[name].path).exists() or has_any(folder, name)]
        for name in there if what == "all" else [what]:
            number = rebuild(folder, name)
            say(f"{name} has {number} {counted(name)} from the journal; the old file was kept beside it")
            say(f"  not recorded: {NOT_ON_RECORD[name]}")
