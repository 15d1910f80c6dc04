"""Queries on record: their outcomes, judgements, activity and cost, read from the journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from local.bus.bus import Bus
from local.bus.envelope import Envelope, decode, session_of
from local.bus.message import MAIN_RESPONDENT, Message
from local.bus.messages import (
    BusDead,
    ContextProvided,
    ConversationRequest,
    ConversationResult,
    ModelUsed,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
)
from local.bus.vocabulary import SCHEDULE
from local.core.errors import MalformedFrame, RecordUnreadable
from local.cron.messages import CronRun
from local.journal.client import entries_on_record, read_on_record
from local.journal.messages import JournalEntry, JournalRead
from local.memory.messages import MemoryClassified, MemoryIngested
from local.queries.errors import QueryDeleted, QueryRefused
from local.queries.view import JUDGEMENTS, Judgement, Judgements, QueryTrace, QueryView, kind_of, message_summary
from local.swarm.messages import AgentChanged

# The audit: who did what, with whose approval: one recorded message as a line.

# Subjects, exact or a family, and their names in the audit.
KINDS: Final[Mapping[str, str]] = {
    "query.received": "query",
    "tool.request.": "call",
    "approval.decision": "approval",
    "effect.undone": "undo",
    "cron.job.changed": "job",
    "cron.run": "run",
    "goal.changed": "goal",
    "session.deleted": "deletion",
    "memory.deleted": "deletion",
}
SHOWN = 300  # characters of a text


def subjects_of(kinds: frozenset[str]) -> tuple[str, ...]:
    """Return the subjects of these kinds of activity; without kinds those of all."""
    return tuple(subject for subject, kind in KINDS.items() if not kinds or kind in kinds)


def activity_of(envelope: Envelope, payload: Mapping[str, Any] | None, at: float) -> dict[str, Any]:
    """The line; `payload` is None where it was removed. `by` is the actor: for an approved call its decision has it,
    under the same call_id."""
    kind = next(kind for subject, kind in KINDS.items() if envelope.subject.startswith(subject))
    line = {
        "at": at, "kind": kind, "user_id": envelope.user_id, "session_id": envelope.session_id,
        "query_id": envelope.correlation_id, "by": envelope.sender,
    }  # fmt: skip
    return {**line, **(_TELLING[kind](payload) if payload is not None else {"removed": True})}


def _query(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"what": _cut(payload.get("query")), "origin": payload.get("origin", "user")}


def _call(payload: Mapping[str, Any]) -> dict[str, Any]:
    has_leave = payload.get("grant") is not None
    told = {"call_id": payload.get("call_id"), "what": payload.get("tool"), "args": _short(payload.get("args") or {})}
    return {**told, "leave": has_leave, "tainted": bool(payload.get("tainted"))}


def _approval(payload: Mapping[str, Any]) -> dict[str, Any]:
    told = {"call_id": payload.get("call_id"), "what": payload.get("tool")}
    return {**told, "decision": payload.get("decision"), "by": payload.get("by")}


def _undo(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"what": payload.get("paths"), "call_ids": payload.get("call_ids")}


def _job(payload: Mapping[str, Any]) -> dict[str, Any]:
    job = payload.get("job") or {}
    told = {"what": job.get("name"), "job_id": job.get("job_id"), "state": payload.get("what")}
    return {**told, "schedule": job.get("schedule"), "mode": job.get("mode"), "made_by": job.get("created_by")}


def _run(payload: Mapping[str, Any]) -> dict[str, Any]:
    run = payload.get("run") or {}
    return {"what": payload.get("name"), **{name: run.get(name) for name in ("job_id", "run_id", "state", "detail")}}


def _goal(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"what": _cut(payload.get("text")), **{name: payload.get(name) for name in ("goal_id", "state", "by")}}


def _deletion(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"what": payload.get("deleted_session_id") or payload.get("engram_id")}


def _short(args: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _cut(value) for name, value in args.items()}


def _cut(value: Any) -> Any:
    return f"{value[:SHOWN]} …" if isinstance(value, str) and len(value) > SHOWN else value


_TELLING: Final[Mapping[str, Any]] = {
    "query": _query,
    "call": _call,
    "approval": _approval,
    "undo": _undo,
    "job": _job,
    "run": _run,
    "goal": _goal,
    "deletion": _deletion,
}


# The journal's record of one query: headers, and the readable payloads.

PAGE = 20
MOST = 5_000  # messages of one query; a turn makes some dozens
_ALSO = {kind.subject: kind for kind in (MemoryIngested, MemoryClassified, BusDead)}


class RecordedMessage(NamedTuple):
    """One recorded message with its number in the journal."""

    entry: JournalEntry
    envelope: Envelope

    @classmethod
    def of(cls, entry: JournalEntry) -> RecordedMessage:
        """Return the record of a journal entry."""
        return cls(entry, decode(entry.frame.encode()))

    def as_json(self) -> dict[str, object]:
        """Return the header with number and size in bytes, and a short summary of the payload."""
        envelope = self.envelope
        return {
            **envelope.header(),
            "in_reply_to": envelope.in_reply_to,
            "session_id": envelope.session_id,
            "seq": self.entry.number,
            "size": len(envelope.payload),
            "recorded": True,
            "redacted": self.entry.redacted,
            "summary": message_summary(envelope.subject, envelope.payload),
        }


async def read_recorded(bus: Bus, query_id: str, seconds: float) -> list[RecordedMessage]:
    """Return every recorded message of a query, oldest first, with plausible times. Raises `RequestTimeout` while there
    is no journal, and `RecordUnreadable`.
    """
    found: list[RecordedMessage] = []
    async for entry in entries_on_record(bus, JournalRead(correlation_id=query_id, limit=PAGE), seconds):
        found.append(RecordedMessage.of(entry))
        if len(found) >= MOST:
            break
    return with_plausible_times(found)


def with_plausible_times(recorded: Iterable[RecordedMessage]) -> list[RecordedMessage]:
    """Correct the times of senders on machines with another clock: a message that would have been sent before the one
    that caused it, or after the journal received it, was sent when the journal received it.
    """
    sent: dict[str | None, float] = {}
    found = []
    for entry, envelope in recorded:
        earliest = max(sent.get(envelope.in_reply_to, 0.0), sent.get(envelope.cause_id, 0.0))
        if not earliest <= envelope.sent_at <= entry.committed_at:
            envelope = envelope._replace(sent_at=max(earliest, entry.committed_at))
        sent[envelope.id] = envelope.sent_at
        found.append(RecordedMessage(entry, envelope))
    return found


async def trace_of(bus: Bus, query_id: str, recorded: list[RecordedMessage]) -> QueryTrace:
    """Return the timeline of a query."""
    trace = QueryTrace(query_id)
    for entry, envelope in recorded:
        kind = kind_of(envelope.subject) or _ALSO.get(envelope.subject)
        if entry.redacted:
            trace.receive(None, envelope)
        elif kind is not None:
            trace.receive(await _read(bus, kind, envelope), envelope)
    return trace


async def _read(bus: Bus, kind: type[Message], envelope: Envelope) -> Message | None:
    """Return a message; an unreadable one counts as removed."""
    try:
        return await bus.decode(kind, envelope)
    except MalformedFrame:
        return None


# The agents of a query, from its recorded messages.


def agents_in(recorded: Iterable[RecordedMessage]) -> dict[str, AgentChanged]:
    """Return the latest state of each agent that the query has made, by the query of its task, in order."""
    found: dict[str, AgentChanged] = {}
    for entry, envelope in recorded:
        if envelope.subject != AgentChanged.subject or entry.redacted:
            continue
        try:
            changed = AgentChanged.decode(envelope.payload)
        except MalformedFrame:
            continue
        if changed.task_query_id:
            found[changed.task_query_id] = changed
    return found


Json = dict[str, Any]
Told = list[tuple[Message, Envelope]]

_OUTCOMES: dict[str, type[QueryFailed] | type[ResponseGeneration]] = {
    kind.subject: kind for kind in (QueryFailed, ResponseGeneration)
}
_TOLD = (ContextProvided.subject, *_OUTCOMES)
_JUDGEMENTS = [kind.subject for kind in JUDGEMENTS]


async def read_query(bus: Bus, query_id: str, seconds: float) -> Told:
    """Return the messages of a query, oldest first: its question, its context, and how respondents ended it; empty if
    it is not recorded.

    The journal loses the answers that are based on a deleted memory, and the generator only what they have recalled of
    it, so these are read from the generator. Raises `QueryDeleted`, `RequestTimeout` while one of the two does not
    answer, and `RecordUnreadable`.
    """
    told: Told = []
    removed: Envelope | None = None
    async for envelope, is_redacted in read_on_record(bus, query_id, (QueryReceived.subject, *_TOLD), seconds):
        if not is_redacted:
            told += await _decoded(bus, envelope)
        elif envelope.subject == ContextProvided.subject:
            continue
        elif envelope.subject == QueryReceived.subject:
            raise QueryDeleted(query_id, envelope.user_id)
        else:
            removed = envelope
    if not any(isinstance(message, QueryReceived) for message, _ in told):
        return []
    if removed is not None and not any(map(_is_main_outcome, told)):
        told += await _as_the_generator_has_it(bus, query_id, removed, seconds)
    return told


async def read_judgements(bus: Bus, query_id: str, seconds: float) -> Told:
    """Return the judgements of the answers to a query, oldest first. Raises `RequestTimeout` and `RecordUnreadable`."""
    return [
        each
        async for envelope, is_redacted in read_on_record(bus, query_id, _JUDGEMENTS, seconds)
        if not is_redacted
        for each in await _decoded(bus, envelope)
    ]


async def judgements_of(bus: Bus, query_ids: Sequence[str], seconds: float) -> dict[str, Judgements]:
    """Return the judgements of the answers to at most 100 queries. Raises `RequestTimeout` and `RecordUnreadable`."""
    found = {query_id: Judgements() for query_id in query_ids}
    if not found:
        return found
    async for envelope, is_redacted in read_on_record(bus, list(found), _JUDGEMENTS, seconds):
        for message, _ in () if is_redacted else await _decoded(bus, envelope):
            is_main = getattr(message, "respondent_id", MAIN_RESPONDENT) == MAIN_RESPONDENT
            if isinstance(message, Judgement) and is_main:
                found[envelope.correlation_id].receive(message, envelope.id)
    return found


async def look_up(bus: Bus, verb: str, key: str, seconds: float, **fields: Any) -> Json:
    """The generator's record. Raises `RequestTimeout`, and `QueryRefused` with the generator's reason."""
    request = ConversationRequest.model_validate({"verb": verb, "key": key, **fields})
    result = await bus.request(request, ConversationResult, seconds)
    if result.error is not None:
        raise QueryRefused(result.error.kind, result.error.message)
    return result.value or {}


def view_of(record: Json) -> QueryView:
    """A query as the generator has it in its record."""
    view = QueryView(record["query_id"], record["query"], record["session_id"], user_id=record.get("user_id"))
    outcome = _outcome_in(record)
    if outcome is not None:
        envelope = Envelope(
            outcome.subject, "", "", "", 1, view.query_id, b"", session_id=view.session_id, user_id=view.user_id
        )
        view.receive(outcome, envelope)
    return view


async def _decoded(bus: Bus, envelope: Envelope) -> Told:
    kind = kind_of(envelope.subject)
    try:
        return [] if kind is None else [(await bus.decode(kind, envelope), envelope)]
    except MalformedFrame as error:
        bus.reject(str(error), envelope.payload)
        return []


def _is_main_outcome(told: tuple[Message, Envelope]) -> bool:
    message, _ = told
    return isinstance(message, QueryFailed | ResponseGeneration) and message.respondent_id == MAIN_RESPONDENT


async def _as_the_generator_has_it(bus: Bus, query_id: str, removed: Envelope, seconds: float) -> Told:
    """Return the outcome that was removed from the journal; none if the query is open: the removed one was another
    respondent's.
    """
    try:
        outcome = _outcome_in(await look_up(bus, "query", query_id, seconds))
    except QueryRefused as error:
        if error.kind == "not_found":
            raise QueryDeleted(query_id, removed.user_id) from None
        raise RecordUnreadable(str(error)) from None
    return [] if outcome is None else [(outcome, removed)]


def _outcome_in(record: Json) -> QueryFailed | ResponseGeneration | None:
    outcome = record.get("outcome")
    return None if outcome is None else _OUTCOMES[record["outcome_subject"]].model_validate(outcome)


# The usage of answers and reflection, summed from the record: exact for all that is still there.

MILLION: Final = 1_000_000


class ModelPrice(NamedTuple):
    """The price of a million tokens, of the prompt and of the answer."""

    prompt: float
    completion: float


class UsageKey(NamedTuple):
    """The key of one line of the ledger: day (of this machine's time zone), user, agent, session, model, and server
    where a model has several. `query_id` is that of a job's run; the name of its job may come later.
    """

    day: str
    user_id: str | None
    agent: str
    session: str
    model: str
    query_id: str = ""
    server: str = ""


@dataclass(slots=True)
class UsageSum:
    """A sum of answers, model calls, tokens and seconds of these calls."""

    answers: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def add(self, other: UsageSum) -> None:
        """Count the other one, too."""
        self.answers += other.answers
        self.calls += other.calls
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        self.seconds += other.seconds


Entries = Iterable[tuple[UsageKey, UsageSum]]


class UsageLedger:
    """The usage of models so far, summed by `UsageKey`."""

    def __init__(self) -> None:
        self._sums: dict[UsageKey, UsageSum] = {}
        self._jobs: dict[str, str] = {}  # by the query_id of a run

    def receive(self, envelope: Envelope, payload: Mapping[str, Any], at: float) -> None:
        """Count one recorded message: an answer, the usage of background work, or a run of a job; `at` is in seconds
        since 1970.
        """
        if (used := used_in(envelope, payload, at)) is not None:
            self.add(*used)
        elif (job := job_in(envelope, payload)) is not None:
            self.name_job(*job)

    def add(self, key: UsageKey, used: UsageSum) -> None:
        """Count one more sum."""
        self._sums.setdefault(key, UsageSum()).add(used)

    def name_job(self, query_id: str, job: str) -> None:
        """Set the job of a run."""
        self._jobs[query_id] = job

    def entries(self, user_id: str | None, since: str = "", until: str = "9") -> Iterator[tuple[UsageKey, UsageSum]]:
        """Return the sums of one user, or of all users, between two days."""
        for key, used in self._sums.items():
            if user_id in (None, key.user_id) and since <= key.day <= until:
                yield key, used

    def job_of(self, key: UsageKey) -> str:
        """The job for which something was used; empty if for none."""
        return self._jobs.get(key.query_id, "") if key.query_id else ""

    def rows(self, by: Iterable[str], entries: Entries, prices: Mapping[str, ModelPrice]) -> list[dict[str, Any]]:
        """The sums by some of day, user, agent, session, model, server and job, in order; one row without any."""
        names, found = tuple(by), dict[tuple[str, ...], list[tuple[UsageKey, UsageSum]]]()
        for key, used in entries:
            facts = {**key._asdict(), "user": key.user_id or "", "job": self.job_of(key)}
            found.setdefault(tuple(facts[name] for name in names), []).append((key, used))
        return [{**dict(zip(names, group, strict=True)), **_total(found[group], prices)} for group in sorted(found)]


def _total(entries: Entries, prices: Mapping[str, ModelPrice]) -> dict[str, Any]:
    """Return the sum as JSON; `money` is null if no model has a price; models without one are not included."""
    total, money = UsageSum(), None
    for key, used in entries:
        total.add(used)
        if price := prices.get(key.model):
            cost = used.prompt_tokens * price.prompt + used.completion_tokens * price.completion
            money = (money or 0.0) + cost / MILLION
    return {
        "answers": total.answers, "calls": total.calls, "prompt_tokens": total.prompt_tokens,
        "completion_tokens": total.completion_tokens, "seconds": round(total.seconds, 3),
        "money": None if money is None else round(money, 6),
    }  # fmt: skip


def used_in(envelope: Envelope, payload: Mapping[str, Any], at: float) -> tuple[UsageKey, UsageSum] | None:
    """Return the usage of an answer or of background work; None for any other message. `at` is in seconds
    since 1970.
    """
    if envelope.subject == ResponseGeneration.subject:
        return _key(envelope, payload, at), _used(payload.get("usage") or {})
    if envelope.subject == ModelUsed.subject:
        day = datetime.fromtimestamp(at).date().isoformat()
        purpose, model, server = (str(payload.get(name, "")) for name in ("purpose", "model", "server"))
        key = UsageKey(day, None, purpose, "", model, server=server)
        return key, _beside_answers(payload)
    return None


def job_in(envelope: Envelope, payload: Mapping[str, Any]) -> tuple[str, str] | None:
    """The query_id of a job's run, and the job; None of any message but one about a run."""
    if envelope.subject != CronRun.subject:
        return None
    run = payload.get("run") or {}
    return str(run.get("query_id", "")), f"{payload.get('name', '')} ({run.get('job_id', '')})"


def _key(envelope: Envelope, payload: Mapping[str, Any], at: float) -> UsageKey:
    query_id = str(payload.get("query_id", ""))
    steps = (payload.get("usage") or {}).get("steps") or ()
    return UsageKey(
        datetime.fromtimestamp(at).date().isoformat(),
        envelope.user_id,
        str(payload.get("agent") or envelope.sender),
        session_of(envelope, query_id),
        str(payload.get("model", "")),
        query_id if payload.get("origin") == SCHEDULE else "",
        next((str(step["server"]) for step in reversed(steps) if step.get("server")), ""),
    )


def _used(usage: Mapping[str, Any]) -> UsageSum:
    steps = usage.get("steps") or ()
    return UsageSum(
        answers=1,
        calls=len(steps),
        prompt_tokens=int(usage.get("prompt_tokens", 0)),
        completion_tokens=int(usage.get("completion_tokens", 0)),
        seconds=sum(max(0.0, float(step["ended"]) - float(step["started"])) for step in steps),
    )


def _beside_answers(used: Mapping[str, Any]) -> UsageSum:
    return UsageSum(
        calls=int(used.get("calls", 1)),
        prompt_tokens=int(used.get("prompt_tokens", 0)),
        completion_tokens=int(used.get("completion_tokens", 0)),
        seconds=float(used.get("seconds", 0.0)),
    )
