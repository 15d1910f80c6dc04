"""The agent that answers users: every query gets onto its record, and from there to its end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from typing import Any

from local.bus.envelope import Envelope
from local.bus.message import MAIN_RESPONDENT, ErrorInfo, Message
from local.bus.messages import (
    DEFAULT_MODEL,
    AnswerDialog,
    AnswerOptions,
    BusDead,
    ContextGauge,
    ConversationRequest,
    ConversationResult,
    QueryAccepted,
    QueryCancel,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    SessionBranched,
    SessionChanged,
    SessionDeleted,
    SessionImported,
    SessionSettings,
)
from local.bus.vocabulary import BACKGROUND
from local.core import failpoints
from local.core.errors import LocalError, NotOnRecord, SessionExists
from local.critic.messages import RewardEvent
from local.generator.chat_files import LOCAL2
from local.generator.client_calls import ClientCalls
from local.generator.history import ConversationService, StoredTurn, TurnPlace, TurnStatus
from local.generator.output import new_turn, stored_outcome, trace_of
from local.generator.respondent import Respondent, RespondentPolicy
from local.generator.session_changes import (
    IncognitoSessions,
    RecordDeletion,
    SessionChanges,
    labels_in,
    new_branch,
    settings_in,
)
from local.generator.sessions import SessionFilter, SessionRecord
from local.generator.titles import ConversationTitles
from local.generator.turn import SideEffectPolicy, fitting_views
from local.journal.client import messages_on_record
from local.journal.messages import JournalRead, JournalRedact
from local.mcp.messages import ClientToolRequest, ClientToolResult
from local.memory.messages import OWNER, MemoryDeleted
from local.models.chat import Json
from local.queries.asker import JOURNAL
from local.queries.errors import QueryIdTaken
from local.runtime.participant import on

# Answers questions about the generator's record: sessions, one session, its turns, one query; and has them changed.

LATEST = 50  # turns of a whole session that are shown


class ConversationRequestHandler:
    """The answers of a respondent to questions about its record; it also has sessions named, branched and deleted."""

    def __init__(
        self,
        conversation: ConversationService,
        sessions: SessionRecord,
        changes: SessionChanges,
        prelude: Callable[[Sequence[Json], date, str | None, SessionSettings | None], Sequence[Json]],
        delete: Callable[[str], Awaitable[tuple[int, int]]],
        prompt: Callable[[date, str | None, AnswerOptions | None], Json],
    ) -> None:
        """`prelude(history, today, user_id, settings)` returns the messages before a question; `delete(session_id)`
        returns the numbers of turns and of recorded messages that it has emptied; `prompt(today, user_id, options)`
        returns the system prompt by section.
        """
        self._conversation, self._sessions, self._changes = conversation, sessions, changes
        self._prelude, self._delete_session, self._prompt = prelude, delete, prompt
        self._work: dict[str, Callable[[ConversationRequest], Awaitable[Json]]] = {
            "sessions": self._listing,
            "session": self._session,
            "turns": self._turns,
            "find": self._find,
            "change": self._change,
            "branch": self._branch,
            "delete": self._delete,
            "query": self._query,
            "prompt": self._prompt_sections,
            "import": self._import,
            "size": self._size,
        }

    async def answer(self, request: ConversationRequest) -> ConversationResult:
        """Return the requested record, or an error that states why there is none."""
        try:
            if request.of_user is not None and request.verb not in ("prompt", "import"):
                await self._require(request.key, request.of_user)
            return ConversationResult(verb=request.verb, value=await self._work[request.verb](request))
        except LocalError as error:
            return ConversationResult(verb=request.verb, error=ErrorInfo.of(error))

    async def _require(self, session_id: str, user_id: str) -> None:
        if ((await self._sessions.head(session_id)).user_id or OWNER) != user_id:
            raise NotOnRecord(f"there is no session {session_id}")

    async def _listing(self, request: ConversationRequest) -> Json:
        wanted = SessionFilter(
            request.key, OWNER, request.among, request.query, request.folder, request.tag, request.archived
        )
        sessions, cursor = await self._sessions.listing(wanted, request.cursor, request.limit)
        is_first = request.among is None and not request.cursor
        names = await self._sessions.folders_and_tags(wanted) if is_first else {}
        return {"sessions": sessions, "cursor": cursor, **names}

    async def _session(self, request: ConversationRequest) -> Json:
        page = await self._sessions.page(request.key, TurnPlace(), LATEST)
        turns, head = page.turns[::-1], page.head
        history = await self._conversation.history(head.session_id)
        gauge = next(filter(None, map(_gauge, reversed(turns))), None)
        line = await self._line(head.session_id)
        settings = settings_in(await self._sessions.labels(head.session_id))
        return {
            "session_id": head.session_id,
            "user_id": head.user_id,
            "incognito": head.incognito,
            **{name: line.get(name) for name in _OF_LINE},
            "conversation": await self._sessions.conversation_of(head.session_id),
            "versions": await self._sessions.versions_of(head.session_id),
            "branches": await self._sessions.family(head.session_id),
            "messages": self._prelude(history, date.today(), head.user_id, settings),
            "turns": [_summary(turn) for turn in turns],
            "total": head.total,
            "context": gauge and gauge.model_dump(),
        }

    async def _line(self, session_id: str) -> Json:
        """Return a session as a row of the list; None for one whose history a client keeps."""
        sessions, _ = await self._sessions.listing(SessionFilter(among=[session_id]))
        return sessions[0] if sessions else {}

    async def _turns(self, request: ConversationRequest) -> Json:
        place = TurnPlace(request.order, request.at, request.position)
        page = await self._sessions.page(request.key, place, request.limit)
        turns = fitting_views(page.turns, page.contexts)
        more = page.has_more or len(turns) < len(page.turns)
        head = page.head
        return {
            "session_id": head.session_id, "user_id": head.user_id, "incognito": head.incognito, "total": head.total,
            "turns": turns, "more": more,
        }  # fmt: skip

    async def _find(self, request: ConversationRequest) -> Json:
        head = await self._sessions.head(request.key)
        hits = await self._sessions.find(request.key, request.query)
        return {"session_id": head.session_id, "user_id": head.user_id, "hits": [hit._asdict() for hit in hits]}

    async def _change(self, request: ConversationRequest) -> Json:
        await self._changes.change(request.key, request.labels)
        return await self._line(request.key)

    async def _branch(self, request: ConversationRequest) -> Json:
        point = await self._changes.branch(
            request.key, request.before, request.branch_id, through=request.through, is_version=request.is_version
        )
        origin = {"session_id": point.session_id, "query_id": point.query_id}
        conversation = await self._sessions.conversation_of(request.branch_id)
        told = {"session_id": request.branch_id, "branched_from": origin, "incognito": point.incognito}
        return {**told, "conversation": conversation}

    async def _delete(self, request: ConversationRequest) -> Json:
        copied_to = await self._sessions.copied_to(request.key)
        turns, messages = await self._delete_session(request.key)
        deleted = {"session_id": request.key, "deleted_turns": turns, "redacted_messages": messages}
        return {**deleted, "copied_to": copied_to}

    async def _import(self, request: ConversationRequest) -> Json:
        """Store a conversation of a file, unless it is here: imported before, or, of an export of our own, still."""
        user_id = request.of_user
        own = (request.origin_id,) if request.source == LOCAL2 else ()
        for key in (request.key, *own):
            try:
                head = await self._sessions.head(key)
            except NotOnRecord:
                continue
            if (head.user_id or OWNER) == (user_id or OWNER):
                return {"session_id": key, "is_new": False}
            if key == request.key:
                raise SessionExists(key)
        imported = SessionImported(
            session_id=request.key, source=request.source, origin_id=request.origin_id, title=request.title,
            exchanges=request.exchanges, imported_at=time.time(),
        )  # fmt: skip
        await self._changes.bring(imported, user_id)
        return {"session_id": request.key, "is_new": True}

    async def _size(self, request: ConversationRequest) -> Json:
        return {"bytes": await self._sessions.size_of(request.key)}

    async def _query(self, request: ConversationRequest) -> Json:
        turn = await self._conversation.turn(request.key)
        if turn is None:
            raise NotOnRecord(f"there is no query {request.key}")
        outcome = None if turn.outcome is None else json.loads(turn.outcome)
        return {**_summary(turn), "outcome_subject": turn.outcome_subject, "outcome": outcome}

    async def _prompt_sections(self, request: ConversationRequest) -> Json:
        return self._prompt(date.today(), request.of_user, request.options)


_OF_LINE = ("title", "pinned", "folder", "tags", "archived", "branched_from", "model", "settings", "imported_from")


def _gauge(turn: StoredTurn) -> ContextGauge | None:
    """Return how full the window was at the turn's last prompt."""
    outcome = stored_outcome(turn)
    return outcome.usage.context if isinstance(outcome, ResponseGeneration) else None


def _summary(turn: StoredTurn) -> dict[str, Any]:
    return {
        "query_id": turn.query_id,
        "session_id": turn.session_id,
        "user_id": turn.user_id,
        "query": turn.query,
        "status": turn.status,
        "answer": turn.answer,
        "attempt": turn.attempt,
        "created_at": turn.created_at,
        "finished_at": turn.finished_at,
    }


CONSUMER, CANCELS = "generator", "generator_cancels"  # a cancellation does not wait behind the query it is for
QUERIES_AT_ONCE = 1024  # waiting and running
LOOK_UPS_AT_ONCE = 8
CLIENT_CALLS_AT_ONCE = 64  # some of which wait for a person
LANE_WIDTH = 32  # turns of one session; more than may wait, so that excess queries are refused instead of left waiting


class GeneratorAgent(Respondent):
    """The participant that answers users' queries and keeps the record of them."""

    name = "generator"
    publishes = (
        QueryAccepted, QueryReceived, QueryFailed, AnswerDialog, RecordDeletion, SessionChanges, ConversationTitles,
    )  # fmt: skip
    policy = RespondentPolicy(MAIN_RESPONDENT, "conversation.db")
    speaks_as = policy.respondent_id

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Serve as a respondent, and have the journal deliver queries without a published end. Incognito
        sessions end.
        """
        async with super().lifespan():
            seconds = self._settings.tool_timeout_seconds
            self._clients = ClientCalls(self.bus, self._offered, self._gate, seconds)
            self._deletion = RecordDeletion(
                self.bus,
                self._conversation,
                self._outcomes,
                prompts=self._fitter,
                files=self._attachments,
                is_in_prompt=self._turns.is_in_prompt,
            )
            sessions = SessionRecord(self._conversation, self.policy.respondent_id)
            self._changes = SessionChanges(self.bus, sessions)
            self._requests = ConversationRequestHandler(
                self._conversation, sessions, self._changes,
                self._prompts.prelude, self._deletion.delete, self._prompts.shown,
            )  # fmt: skip
            self._titles = ConversationTitles(
                self.bus, self._conversation, self._model, self._leases, self._titling,
                respondent_id=self.policy.respondent_id,
            )  # fmt: skip
            idle_seconds = self._settings.incognito_minutes * 60
            incognito = IncognitoSessions(self._conversation, self._deletion, idle_seconds)
            async with incognito.end_in_time(), self._titles.are_made():
                handing_in = asyncio.create_task(self._outcomes.hand_in_what_is_open(), name="hand in what is open")
                try:
                    yield
                finally:
                    handing_in.cancel()

    @on(QueryReceived)
    async def compute(self, message: QueryReceived, envelope: Envelope) -> None:
        """Compute a turn ahead from the live copy of its query, in memory; nothing of it is published yet."""
        failpoints.reach("generator.heard_live")
        asked = new_turn(message, envelope, self._offered())
        if message.task is None and message.origin not in BACKGROUND and self._may_compute(asked):
            self._speculations.begin(asked)

    @on(QueryReceived, durable=CONSUMER, concurrency=QUERIES_AT_ONCE, lane_width=LANE_WIDTH)
    async def receive(self, message: QueryReceived, envelope: Envelope) -> BusDead | None:
        """A query, until it has ended: answered, refused, known already; it is never ignored."""
        failpoints.reach("generator.delivered")
        asked = new_turn(message, envelope, self._tools.known(time.monotonic()), self.attempts.get(envelope.id, 1))
        stored = self._turns.get(message.query_id) or await self._turns.accept(asked)
        if stored.query != message.query:
            taken = QueryIdTaken(stored.query_id)
            return self._dead(envelope, taken.kind, str(taken))
        if stored.outcome is not None:
            await self._outcomes.publish(stored)
            return None
        failpoints.reach("turn.accepted")
        telling = asyncio.create_task(self._publish_acceptance(stored), name=f"accept {stored.query_id}")
        try:
            await self._turns.run(stored)
            await telling
        finally:
            telling.cancel()
        if self._settings.make_titles:
            self._titles.ended(stored)
        return None

    @on(QueryCancel)
    async def stop(self, message: QueryCancel, envelope: Envelope) -> None:
        """Stop a running turn as soon as its tools do, on the live copy of a `query.cancel`."""
        self._speculations.drop(message.query_id)
        self._turns.stop(message.query_id)

    @on(QueryCancel, durable=CANCELS, concurrency=QUERIES_AT_ONCE)
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> None:
        """End a query early: with its partial answer, or as failed if it has not begun. A program's call is not a
        query: its tool or the gatekeeper ends it.
        """
        if self._clients.knows(message.query_id):
            return
        self._speculations.drop(message.query_id)
        await self._turns.cancel(message.query_id)

    @on(BusDead, durable=CONSUMER)
    async def give_up(self, dead: BusDead, envelope: Envelope) -> None:
        """End a query whose message, or dead letter, the journal no longer delivers because processes died of it."""
        if envelope.sender != JOURNAL or dead.participant != CONSUMER or dead.error.kind != "gave_up":
            return
        stored = await self._conversation.turn(envelope.correlation_id)
        if stored is None:
            await self._outcomes.fail_unstored(envelope.trace(), dead.error)
        else:
            await self._outcomes.end(stored, TurnStatus.FAILED, dead.error.kind, dead.error.message)

    @on(RewardEvent, durable=CONSUMER)
    async def learn_reward(self, event: RewardEvent, envelope: Envelope) -> None:
        """Users have rated an answer, perhaps one of the other respondent's."""
        await self._take_reward(event)

    @on(MemoryDeleted, durable=CONSUMER)
    async def forget(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """Delete an exchange at a user's request."""
        self._speculations.drop_all()
        self._recalls.forget()
        self._leases.forget()
        await self._deletion.forget(deleted)

    @on(SessionChanged, durable=CONSUMER)
    async def learn_labels(self, changed: SessionChanged, envelope: Envelope) -> None:
        """Store a session's name, pin or settings, if the process that published them could not."""
        await self._changes.changed(changed)

    @on(SessionBranched, durable=CONSUMER)
    async def learn_branch(self, branched: SessionBranched, envelope: Envelope) -> None:
        """Make a branch, if the process that published it could not."""
        await self._changes.branched(branched, envelope)

    @on(SessionImported, durable=CONSUMER)
    async def learn_import(self, imported: SessionImported, envelope: Envelope) -> None:
        """A conversation was imported, perhaps by a process that could not store it any more."""
        await self._changes.brought(imported, envelope)

    @on(ConversationRequest, concurrency=LOOK_UPS_AT_ONCE)
    async def look_up(self, request: ConversationRequest, envelope: Envelope) -> ConversationResult:
        """Answer a request to read the record."""
        return await self._requests.answer(request)

    @on(ClientToolRequest, concurrency=CLIENT_CALLS_AT_ONCE)
    async def call_for_client(self, request: ClientToolRequest, envelope: Envelope) -> ClientToolResult:
        """A program wants to know the tools that there are, or have one called."""
        if request.verb == "list":
            return ClientToolResult(verb="list", tools=tuple(self._offered().values()))
        try:
            return ClientToolResult(verb="call", result=await self._clients.make(request, envelope.trace()))
        except LocalError as error:
            return ClientToolResult(verb="call", error=ErrorInfo.of(error))

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """Return the error reply for a query that could not be accepted or a record that could not be read."""
        info = ErrorInfo.of(error)
        if isinstance(message, QueryReceived):
            return QueryFailed(query_id=message.query_id, error=info)
        if isinstance(message, ConversationRequest):
            return ConversationResult(verb=message.verb, error=info)
        if isinstance(message, ClientToolRequest):
            return ClientToolResult(verb=message.verb, error=info)
        return None

    def _titling(self, chosen: str | None) -> tuple[str, int]:
        """The model that makes titles: the fast one if there is one, else the one that answers in the conversation,
        which is in memory."""
        fast = self._settings.fast_model or self._settings.model
        answering = self._default.name if chosen in (None, DEFAULT_MODEL) else chosen
        model = str(answering) if fast == self._settings.model else fast
        return model, self._fitter.of(model).window.limits.window

    async def _publish_acceptance(self, stored: StoredTurn) -> None:
        await self.bus.publish(QueryAccepted(query_id=stored.query_id, attempt=stored.attempt), trace_of(stored))


# The second respondent: answers the queries of the first one again, for comparison, while the model is idle.

CONSUMER_B, DELETIONS = "generator_b", "generator_b_deletions"  # a deletion does not wait behind a turn
ANSWERS_AT_ONCE = 1024
READ_SECONDS = 5.0
OLD_SECONDS = 3600.0  # answers from before this process that are older are not worth a model's time


class SecondRespondent(Respondent):
    """The participant that answers the same queries a second time, with another id and perhaps another model, to
    compare the answers. No user waits for it.

    It answers from its own conversations: the users' questions and its own answers to them.
    """

    name = "generator_b"
    publishes = (JournalRead, JournalRedact)
    settings = "generator"
    linger_ms = 200
    policy = RespondentPolicy(
        "B",
        "conversation_b.db",
        purpose="respondent_b",
        loads_model=False,  # that could push out the one that users wait for
        has_own_model=True,
    )
    speaks_as = policy.respondent_id

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Serve as a respondent, and delete what users delete."""
        async with super().lifespan():
            self._deletion = RecordDeletion(self.bus, self._conversation, self._outcomes, prompts=self._fitter)
            self._sessions = SessionRecord(self._conversation, self.policy.respondent_id)
            yield

    @on(ResponseGeneration, durable=CONSUMER_B, concurrency=ANSWERS_AT_ONCE)
    async def answer_too(self, response: ResponseGeneration, envelope: Envelope) -> None:
        """A first answer, until there is a second one. No other end of a query is worth one."""
        if not _is_to_be_compared(response):
            return
        failpoints.reach("generator_b.delivered")
        query_id = response.query_id
        stored = self._turns.get(query_id) or await self._store(response, envelope)
        if stored is None or stored.outcome is not None:
            if stored is not None:
                await self._outcomes.publish(stored)
            return
        self._side_effects[query_id] = SideEffectPolicy(response.tool_calls)
        try:
            await self._turns.run(stored)
        finally:
            self._side_effects.pop(query_id, None)
        failpoints.reach("generator_b.answered")

    @on(BusDead, durable=CONSUMER_B)
    async def give_up(self, dead: BusDead, envelope: Envelope) -> None:
        """Skip a first answer that the journal no longer delivers because processes died of it."""
        stored = await self._conversation.turn(envelope.correlation_id)
        if (
            stored is not None
            and envelope.sender == JOURNAL
            and dead.participant == CONSUMER_B
            and dead.error.kind == "gave_up"
        ):
            await self._outcomes.end(stored, TurnStatus.FAILED, dead.error.kind, dead.error.message)

    @on(RewardEvent, durable=CONSUMER_B)
    async def learn_reward(self, event: RewardEvent, envelope: Envelope) -> None:
        """Store a user's reward for one of this respondent's answers."""
        await self._take_reward(event)

    @on(SessionChanged, durable=CONSUMER_B)
    async def learn_labels(self, changed: SessionChanged, envelope: Envelope) -> None:
        """The settings of a session are those of both respondents."""
        await self._sessions.keep_labels(changed.session_id, labels_in(changed))

    @on(SessionBranched, durable=CONSUMER_B)
    async def branch(self, branched: SessionBranched, envelope: Envelope) -> None:
        """Begin a branch of a session with the answers of this respondent."""
        await self._sessions.branch(new_branch(branched, envelope.user_id))

    @on(SessionImported, durable=CONSUMER_B)
    async def learn_import(self, imported: SessionImported, envelope: Envelope) -> None:
        """A conversation was imported: it is the history of both respondents."""
        await self._sessions.put_imported(imported, envelope.user_id)

    @on(SessionDeleted, durable=DELETIONS)
    async def forget_session(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """End the running turns of a deleted session, and delete it from this record."""
        self._fitter.drop(deleted.deleted_session_id)
        for stored in await self._conversation.session(deleted.deleted_session_id):
            if stored.outcome is None:
                await self._turns.drop(stored)
        await self._conversation.delete_session(deleted.deleted_session_id)

    @on(MemoryDeleted, durable=DELETIONS)
    async def forget(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """Delete an exchange at a user's request: stop its running turn and remove it from this record."""
        self._recalls.forget()
        stored = await self._conversation.turn(deleted.query_id)
        if stored is not None and stored.outcome is None:
            await self._turns.drop(stored)
        await self._deletion.forget(deleted)

    async def _store(self, response: ResponseGeneration, envelope: Envelope) -> StoredTurn | None:
        """The query on this record, put there now unless it is; None for one that was deleted or is old."""
        known = await self._conversation.turn(response.query_id)
        if known is not None:
            return known if known.outcome is not None else replace(known, attempt=known.attempt + 1)
        if time.time() - envelope.sent_at > OLD_SECONDS:
            return None
        for asked, asked_by in await messages_on_record(self.bus, response.query_id, (QueryReceived,), READ_SECONDS):
            if asked.query == response.query:
                stored, _ = await self._conversation.accept(
                    new_turn(asked, asked_by, self._tools.known(time.monotonic()))
                )
                return stored
        return None


def _is_to_be_compared(response: ResponseGeneration) -> bool:
    is_answer = response.respondent_id == MAIN_RESPONDENT and response.status == "answered"
    return is_answer and response.in_history and not response.incognito and response.origin not in BACKGROUND
