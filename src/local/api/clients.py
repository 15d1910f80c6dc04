"""What every door uses to talk to the system: ask, follow, cancel, look up, rate, delete."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeVar

import anyio
from pydantic_core import from_json

from local.bus.bus import Bus
from local.bus.envelope import Trace, new_id
from local.bus.message import MAIN_RESPONDENT, MAX_ARGUMENTS_DEPTH, ErrorInfo, Message, is_deeper
from local.bus.messages import (
    ChildStatus,
    ControlVerb,
    ConversationRequest,
    ParticipantRequest,
    ParticipantResult,
    QueryCancel,
    QueryFailed,
    ResponseGeneration,
    ToolResult,
    ToolSchema,
)
from local.bus.vocabulary import Category
from local.core.errors import LocalError, MalformedFrame, RecordUnreadable, RequestTimeout
from local.critic.messages import UserFeedback
from local.cron.messages import CronRequest, CronResult, CronVerb
from local.files.messages import ChangeRequest, ChangeResult, ChangeVerb
from local.journal.client import entries_on_record
from local.journal.messages import JournalRead
from local.mcp.messages import ClientToolRequest, ClientToolResult, ClientToolVerb
from local.memory.messages import (
    OWNER,
    EditRecord,
    EngramRecord,
    EntryRecord,
    MemoryRequest,
    MemoryResult,
    MemoryVerb,
    OutcomeRecord,
)
from local.models.messages import ModelRequest, ModelResult, ModelVerb
from local.permissions.messages import PermissionRequest, PermissionResult, PermissionVerb
from local.queries.asker import Asker
from local.queries.errors import AnswerNotOnRecord, QueryRefused
from local.queries.record import (
    RecordedMessage,
    judgements_of,
    look_up,
    read_judgements,
    read_query,
    read_recorded,
    trace_of,
)
from local.queries.view import Judgements, QueryTrace, QueryView
from local.reflection.messages import (
    GoalRecord,
    GoalRequest,
    GoalResult,
    GoalVerb,
    RoutineName,
    RoutineRecord,
    RoutineRequest,
    RoutineResult,
    RoutineVerb,
)
from local.skills.messages import SkillRequest, SkillResult
from local.swarm.messages import AgentRequest, AgentResult, AgentVerb

# One participant as a door sees it: asked over the bus, and perhaps not there.

M = TypeVar("M", bound=Message)

UNSEEN_SECONDS = 1.5  # for one that is there all the same: its first status beat may be on its way
_MISSING = ("unknown_participant", "model_missing")


class ParticipantAway(LocalError):
    """Nobody takes part who would answer."""

    kind = "unavailable"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} does not answer: it takes part if `{name}` is among the `participants` in system.yaml; if it is,"
            " it comes back, so ask again"
        )


class ParticipantRefused(LocalError):
    """What was asked for was not done; `kind` and text are those of whoever was asked."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.kind = "not_found" if error.kind in _MISSING else error.kind


class ParticipantClient:
    """Asks the participant of the name `participant`. `expects(name)` says whether one is ready, or will be.

    Every request raises `ParticipantAway`, `ParticipantRefused`, and `RequestTimeout` of one that is expected and does
    not answer within `answer_seconds`.
    """

    participant: ClassVar[str]
    answer_seconds: ClassVar[float] = 10.0

    def __init__(self, bus: Bus, expects: Callable[[str], bool]) -> None:
        self._bus, self._expects = bus, expects

    @property
    def is_expected(self) -> bool:
        """Whether the participant is ready, or will be."""
        return self._expects(self.participant)

    async def _request(self, request: Message, reply: type[M], user_id: str | None = None) -> M:
        """The answer, which has a field `error`."""
        seconds = self.answer_seconds if self.is_expected else UNSEEN_SECONDS
        try:
            result = await self._bus.request(request, reply, seconds, Trace(new_id(), user_id=user_id))
        except RequestTimeout:
            if self.is_expected:
                raise
            raise ParticipantAway(self.participant) from None
        return accepted(result)


def accepted(result: M) -> M:
    """An answer that has a field `error`. Raises `ParticipantRefused` if that says why there is none."""
    error: ErrorInfo | None = getattr(result, "error", None)
    if error is not None:
        raise ParticipantRefused(error)
    return result


# Agents as a door sees them: which there are and what they do, and one stopped.


class Agents(ParticipantClient):
    """Asks the swarm."""

    participant = "swarm"
    publishes = (AgentRequest,)

    async def ask(self, verb: AgentVerb, of_user: str | None, **fields: Any) -> AgentResult:
        """The answer to an `AgentRequest` with these fields."""
        return await self._request(AgentRequest(verb=verb, of_user=of_user, **fields), AgentResult)


# What tools have changed, as a door sees it.


class Changes(ParticipantClient):
    """Asks whoever changes files."""

    participant = "files"
    answer_seconds = 30.0
    publishes = (ChangeRequest,)

    async def ask(self, verb: ChangeVerb, **fields: Any) -> ChangeResult:
        """The answer to a `ChangeRequest` with these fields."""
        return await self._request(ChangeRequest(verb=verb, **fields), ChangeResult)


# The tools as programs may call them by themselves: those that read in the workspace, and those that the owner
# lists; over the bus.

LIST_SECONDS = 5.0
CALL_SECONDS = 1800.0  # a person may have to answer, and a tool may take its time
READING: Final[frozenset[Category]] = frozenset({"read", "search", "git", "memory"})


class ClientTools(ParticipantClient):
    """Asks the generator, who calls tools. `listed` are the owner's, beside which those of L0 are offered that read in
    the workspace; None: no tool at all. With `asks` a person is asked where a call takes leave."""

    participant = "generator"
    publishes = (ClientToolRequest, QueryCancel)

    def __init__(
        self, bus: Bus, expects: Callable[[str], bool], listed: Collection[str] | None = (), *, asks: bool = False
    ) -> None:
        super().__init__(bus, expects)
        self._listed, self._asks = listed, asks

    async def offered(self) -> Mapping[str, ToolSchema]:
        """The tools that programs may call, by name."""
        if self._listed is None:
            return {}
        found = (await self._ask("list", LIST_SECONDS, Trace(new_id()))).tools
        return {schema.tool: schema for schema in found if self._is_offered(schema)}

    async def call(self, tool: str, args: Mapping[str, Any], query_id: str, client: str) -> ToolResult:
        """How a call ended; cancelled, it has it stopped. The same `query_id` again is the same call."""
        if tool not in await self.offered():
            text = f"programs are not offered a tool {tool[:80]!r} here; `client_tools` in api.yaml lists more of them"
            raise ParticipantRefused(ErrorInfo(kind="not_found", message=text))
        if is_deeper(dict(args), MAX_ARGUMENTS_DEPTH):
            text = f"args: nested deeper than {MAX_ARGUMENTS_DEPTH} levels"
            raise ParticipantRefused(ErrorInfo(kind="invalid", message=text))
        told = {"query_id": query_id, "tool": tool, "args": dict(args), "client": client, "asks": self._asks}
        try:
            answer = await self._ask("call", CALL_SECONDS, Trace(query_id), **told)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self.cancel(query_id)
            raise
        assert answer.result is not None, "there is one or the other"
        return answer.result

    async def cancel(self, query_id: str) -> None:
        """Stop a call, and what it waits for. Raises as `Bus.publish` does."""
        await self._bus.publish(QueryCancel(query_id=query_id), Trace(query_id))

    def _is_offered(self, schema: ToolSchema) -> bool:
        return schema.tool in (self._listed or ()) or (schema.safety == "L0" and schema.category in READING)

    async def _ask(self, verb: ClientToolVerb, seconds: float, trace: Trace, **fields: Any) -> ClientToolResult:
        request = ClientToolRequest(verb=verb, **fields)
        try:
            found = await self._bus.request(
                request, ClientToolResult, seconds if self.is_expected else UNSEEN_SECONDS, trace
            )
        except RequestTimeout:
            raise ParticipantAway(self.participant) from None
        return accepted(found)


# Jobs at set times, as a door sees them.


class CronJobs(ParticipantClient):
    """Asks whoever keeps jobs."""

    participant = "cron"
    publishes = (CronRequest,)

    async def ask(self, verb: CronVerb, of_user: str | None, **fields: Any) -> CronResult:
        """The answer to a `CronRequest` with these fields."""
        return await self._request(CronRequest(verb=verb, of_user=of_user, **fields), CronResult)


# The goals as a door sees them.


class Goals(ParticipantClient):
    """Asks reflection, whose heartbeat keeps them."""

    participant = "reflection"
    publishes = (GoalRequest,)

    async def ask(self, verb: GoalVerb, **fields: Any) -> tuple[GoalRecord, ...]:
        """The goals that a `GoalRequest` with these fields is about."""
        return (await self._request(GoalRequest(verb=verb, **fields), GoalResult)).goals


# The memory as a door sees it.

log = logging.getLogger(__name__)

EXPORT_PAGE = 50
EDITS_AT_ONCE, EDITED_BYTES = 15, 40_000  # of one request: what is larger would lie outside of its frame


class Memories(ParticipantClient):
    """Asks the memory for one user; `ParticipantRefused` is not_found for an engram that is none of the user's."""

    participant = "memory"
    answer_seconds = 20.0  # longer than the memory waits for the journal, so that its reason is heard
    publishes = (MemoryRequest,)

    async def ask(self, verb: MemoryVerb, user_id: str, **fields: Any) -> MemoryResult:
        """The answer to a `MemoryRequest` with these fields."""
        return await self._request(MemoryRequest(verb=verb, **fields), MemoryResult, user_id)

    async def engram(self, verb: MemoryVerb, user_id: str, engram_id: str) -> tuple[EngramRecord, MemoryResult]:
        """An engram after get, pin or unpin, or as it was before delete; and the whole answer."""
        result = await self.ask(verb, user_id, engram_id=engram_id)
        if not result.engrams:
            raise ParticipantRefused(ErrorInfo(kind="not_found", message=f"there is no engram {engram_id}"))
        return result.engrams[0], result

    async def entries(self, user_id: str) -> list[EntryRecord]:
        """The facts and notes of a user that hold, page by page."""
        found, cursor = list[EntryRecord](), ""
        while True:
            page = await self.ask("entries", user_id, cursor=cursor)
            found += page.entries
            cursor = page.cursor
            if not cursor:
                return found

    async def edit(self, user_id: str, edits: list[EditRecord], *, applies: bool) -> tuple[OutcomeRecord, ...]:
        """What becomes of edits of those, asked for in parts that travel within a frame."""
        outcomes = list[OutcomeRecord]()
        for part in _parts(edits):
            outcomes += (await self.ask("edit", user_id, edits=part, applies=applies)).outcomes
        return tuple(outcomes)

    async def repeated_in(self, session_id: str) -> tuple[str, ...] | None:
        """The engrams that had recalled something of a session; None if no memory answers that knows it."""
        if not self.is_expected:
            return None
        try:
            return (await self.ask("repeated", OWNER, of_session=session_id)).repeated_in
        except LocalError as error:
            log.warning("which memories repeat something of session %s is not known: %s", session_id, error)
            return None

    async def export(self, user_id: str) -> AsyncGenerator[str, None]:
        """Everything that is kept of a user, as lines of JSON, page by page."""
        cursor = ""
        while True:
            page = await self.ask("export", user_id, cursor=cursor, limit=EXPORT_PAGE)
            yield "".join(f"{line}\n" for line in page.lines)
            cursor = page.cursor
            if not cursor:
                return


def _parts(edits: list[EditRecord]) -> Iterator[tuple[EditRecord, ...]]:
    part, size = list[EditRecord](), 0
    for edit in edits:
        more = len(edit.text.encode())
        if part and (len(part) == EDITS_AT_ONCE or size + more > EDITED_BYTES):
            yield tuple(part)
            part, size = [], 0
        part.append(edit)
        size += more
    if part:
        yield tuple(part)


# The models as a door sees them.


class Models(ParticipantClient):
    """Asks which models there are, has them pulled and chosen. How a pull goes on is `model.progress` on the bus."""

    participant = "model_keeper"
    answer_seconds = 20.0  # longer than Ollama is waited for
    publishes = (ModelRequest,)

    async def ask(self, verb: ModelVerb, model: str = "") -> ModelResult:
        """The answer to a `ModelRequest`."""
        return await self._request(ModelRequest(verb=verb, model=model), ModelResult)


# Leave as a door sees it: what waits for a decision, and what was allowed for whole conversations.


class Permissions(ParticipantClient):
    """Asks the gatekeeper."""

    participant = "gatekeeper"
    publishes = (PermissionRequest,)

    async def ask(self, verb: PermissionVerb, of_user: str | None, **fields: Any) -> PermissionResult:
        """The answer to a `PermissionRequest` with these fields."""
        return await self._request(PermissionRequest(verb=verb, of_user=of_user, **fields), PermissionResult)


# The routines of reflection as a door sees them.


class Reflections(ParticipantClient):
    """Asks reflection for one of its routines."""

    participant = "reflection"
    publishes = (RoutineRequest,)

    async def ask(self, routine: RoutineName, verb: RoutineVerb) -> RoutineRecord:
        """How the routine is then; of now, `why` says why it is not done, and is empty if it is."""
        return (await self._request(RoutineRequest(verb=verb, routine=routine), RoutineResult)).state


DELETE_SECONDS = 15.0  # longer than the generator waits for the journal, so that its reason is heard


class LoCALSession(Asker):
    """An asker for people: it also shows them their conversations, deletes these, and takes ratings."""

    publishes = (Asker, ConversationRequest, UserFeedback)

    async def look_up(self, verb: str, key: str = "", seconds: float = 5.0, **fields: Any) -> dict[str, Any]:
        """Ask for the generator's record; `fields` are more of a `ConversationRequest`. Raises `RequestTimeout`,
        and `QueryRefused` with the generator's reason."""
        return await look_up(self._bus, verb, key, seconds, **fields)

    async def scores(self, query_ids: Sequence[str], seconds: float = 1.0) -> dict[str, Any]:
        """What was said of the answers to at most 100 queries, by query_id; nothing while the journal is away."""
        try:
            found = await judgements_of(self._bus, query_ids, seconds)
        except (RequestTimeout, RecordUnreadable):
            found = {query_id: Judgements() for query_id in query_ids}
        return {query_id: judgements.as_json() for query_id, judgements in found.items()}

    async def recorded(self, query_id: str) -> tuple[list[RecordedMessage], QueryTrace]:
        """All that is on record of a query, and what its time went into. Raises as `entries`."""
        found = await read_recorded(self._bus, query_id, self._timeouts.last_look)
        return found, await trace_of(self._bus, query_id, found)

    async def entries(self, request: JournalRead) -> AsyncIterator[RecordedMessage]:
        """What is on record that a request asks for. Raises `RequestTimeout`, `RecordUnreadable`."""
        async for entry in entries_on_record(self._bus, request, self._timeouts.last_look):
            yield RecordedMessage.of(entry)

    async def payload(self, message: RecordedMessage) -> Any:
        """The whole payload of a message on record, with its large fields if they are there; None where it was
        removed."""
        if message.entry.redacted:
            return None
        try:
            return from_json(await self._bus.unpack(message.envelope))
        except MalformedFrame:
            return from_json(message.envelope.payload)

    async def respondents(self, query_id: str) -> list[QueryView]:
        """What each respondent makes of a query, the main one first. Raises `RequestTimeout`, `RecordUnreadable`."""
        seconds = self._timeouts.last_look
        told = [*await read_query(self._bus, query_id, seconds), *await read_judgements(self._bus, query_id, seconds)]
        outcomes = [message for message, _ in told if isinstance(message, ResponseGeneration | QueryFailed)]
        names = sorted({MAIN_RESPONDENT, *(outcome.respondent_id for outcome in outcomes)})
        views = [QueryView(query_id, respondent_id=name) for name in names]
        for view in views:
            for message, envelope in told:
                view.receive(message, envelope)
        return views

    async def delete(self, session_id: str, of_user: str | None = None) -> dict[str, Any]:
        """Remove a session for good, here as well; with `of_user` only if it is that user's. Raises as `look_up` does;
        then ask again: it may be half done."""
        deleted = await self.look_up("delete", session_id, DELETE_SECONDS, of_user=of_user)
        self.forget_session(session_id)
        return deleted

    async def rate(
        self, query_id: str, rating: Literal[-1, 1] | None, comment: str = "", respondent_id: str = MAIN_RESPONDENT
    ) -> None:
        """Put a user's word on an answer on record, or with None take it back.

        Raises `QueryRefused` (not_found; conflict where there is no such answer), `AnswerNotOnRecord`, and as
        `read_query` and `Bus.publish`.
        """
        trace = await self._trace_of_answer(query_id, respondent_id)
        feedback = UserFeedback(
            query_id=query_id, respondent_id=respondent_id, rating=rating, comment=comment, rated_at=time.time()
        )
        await self._bus.publish(feedback, trace)

    async def _trace_of_answer(self, query_id: str, respondent_id: str) -> Trace:
        """For what follows from an answer; one that was given here may be on its way to the record yet."""
        live, seconds = self.live(query_id), self._timeouts.last_look
        if live is not None and respondent_id == MAIN_RESPONDENT and respondent_id in live.view.answers:
            return live.view.answers[respondent_id]
        told = await read_query(self._bus, query_id, seconds)
        if not told:
            raise QueryRefused("not_found", f"there is no query {query_id}")
        view = QueryView.of(query_id, told)
        if respondent_id in view.answers:
            return view.answers[respondent_id]
        if respondent_id == MAIN_RESPONDENT and not view.ended and await self._is_answered(query_id):
            raise AnswerNotOnRecord(query_id)
        raise QueryRefused("conflict", f"query {query_id} has no answer of {respondent_id} that could be rated")

    async def _is_answered(self, query_id: str) -> bool:
        """Whether the generator has an answer in its own record, which it keeps before anybody hears of it."""
        try:
            record = await self.look_up("query", query_id, self._timeouts.last_look)
        except QueryRefused:
            return False
        return bool(record.get("status") == "answered")


# The skills as a door sees them.


class Skills(ParticipantClient):
    """Asks whoever holds the skills: the tools for files do."""

    participant = "files"
    answer_seconds = 30.0
    publishes = (SkillRequest,)

    async def ask(self, verb: Literal["list", "show"], name: str = "") -> SkillResult:
        """The answer to a `SkillRequest`."""
        return await self._request(SkillRequest(verb=verb, name=name), SkillResult)


# What a door does to the system itself: participants are started, stopped and restarted, over the bus.

CONTROL_SECONDS = 120.0  # a child gets ten to stop, and five times twenty to start


class SystemControl:
    """Asks the supervisor, which is no participant."""

    publishes = (ParticipantRequest,)

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def participant(self, verb: ControlVerb, name: str) -> ChildStatus | None:
        """Start, stop or restart a participant; returns how it is when that is done. Raises `ParticipantRefused`,
        `RequestTimeout`."""
        request = ParticipantRequest(verb=verb, name=name)
        return accepted(await self._bus.request(request, ParticipantResult, CONTROL_SECONDS)).child
