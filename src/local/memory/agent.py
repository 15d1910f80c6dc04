"""The memory agent: stores every exchange, has it classified, stores ratings and grades, and answers requests."""

from __future__ import annotations

import asyncio
import logging
import math
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace, new_id
from local.bus.message import ErrorInfo, Message
from local.bus.messages import QueryReceived, ResponseGeneration, SessionDeleted
from local.core import failpoints
from local.core.config import Settings
from local.core.errors import (
    ConfigError,
    JournalFull,
    LocalError,
    ModelError,
    NotConfirmed,
    NotOnRecord,
    PublishTimeout,
    RecordNotRedacted,
    RequestTimeout,
    StoreFailed,
)
from local.critic.messages import CritiqueResult, PairwiseResult, UserFeedback
from local.journal.client import redact_on_record
from local.journal.messages import JournalRedact
from local.memory.classifier import Classifier, stated_at_once
from local.memory.classifier_test import ClassifierFitness
from local.memory.embeddings import Embedder, MiniLmEmbedder, ServedEmbedder
from local.memory.messages import (
    OWNER,
    EngramRecord,
    EntryRecord,
    MemoryAnnotated,
    MemoryDeleted,
    MemoryIngested,
    MemoryRecalled,
    MemoryRequest,
    MemoryResult,
    OutcomeRecord,
    UserFacts,
    engram_id,
)
from local.memory.record import Deletion, EditOutcome, HandEdit
from local.memory.records import (
    SHORT,
    answer_rating,
    change_records,
    cursor_of,
    deleted,
    dreamt_notes,
    engram_record,
    exchange_of,
    fact_records,
    notes_of,
    page,
    place_of,
    recalled,
    scores,
)
from local.memory.service import Condition, EngramService, MemoryStatus, examine
from local.memory.store import AnswerRating, Ingested
from local.models.arbiter import QuietPeriod
from local.models.chat import ChatModel
from local.models.leases import Leases
from local.models.router import connect
from local.reflection.messages import DreamMade
from local.runtime.participant import Kind, Participant, Resources, on

# Deletion of engrams: from the store, then from the journal; then every participant is notified.

log = logging.getLogger(__name__)

JOURNAL_SECONDS = 10.0
RETRY_SECONDS = 2.0
NOT_NOW = (RequestTimeout, RecordNotRedacted, NotConfirmed, PublishTimeout, JournalFull, StoreFailed)
_NAMESPACE = uuid.UUID("b5f0c1de-9f3a-4a55-8a07-6a8a3b1f2f64")


class Deletions:
    """The unfinished deletions: an engram deleted from the store stays on a list there until the journal has redacted
    it and every participant was notified, whichever process dies in between.

    `problem` is why that is not possible now; empty if nothing is left to do.
    """

    publishes = (MemoryDeleted, JournalRedact)

    def __init__(self, bus: Bus, engrams: EngramService) -> None:
        self._bus, self._engrams = bus, engrams
        self._news, self._one_at_a_time = asyncio.Event(), asyncio.Lock()
        self.problem = ""

    async def delete(self, user_id: str, engram_id: str) -> EngramRecord:
        """Delete an exchange everywhere and return its record; call it again after a failure.

        Raises `NotOnRecord`, `StoreFailed`, and `RecordNotRedacted` if the rest has to wait for the journal.
        """
        try:
            record = engram_record(await self._engrams.get(user_id, engram_id))
            await self._engrams.delete(user_id, engram_id)
        except NotOnRecord:
            begun = {each.engram_id: each for each in await self._engrams.deletions() if each.user_id == user_id}
            if engram_id not in begun:
                raise
            record = deleted(begun[engram_id])
        try:
            await self.finish()
        except NOT_NOW as error:
            self._news.set()
            text = f"it is deleted from the memory; from the journal as soon as that is possible: {error}"
            raise RecordNotRedacted(text) from None
        return record

    async def delete_session(self, session_id: str) -> None:
        """Delete all exchanges of a session from the store; the rest is done in the background."""
        await self._engrams.delete_session(session_id)
        self._news.set()

    async def run(self) -> None:
        """Finish the deletions of this process and earlier ones, until cancelled."""
        told = ""
        while True:
            self._news.clear()
            seconds = None
            try:
                await self.finish()
            except NOT_NOW as error:
                if str(error) != told:
                    log.warning("a deletion waits: %s", error)
                told, seconds = str(error), RETRY_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()

    async def finish(self) -> None:
        """Finish every deletion. Raises one of `NOT_NOW`."""
        async with self._one_at_a_time:
            try:
                for deletion in await self._engrams.deletions():
                    await self._finish(deletion)
                self.problem = ""
            except LocalError as error:
                self.problem = str(error)
                raise

    async def _finish(self, deletion: Deletion) -> None:
        if not deletion.redacted:
            what = JournalRedact(query_id=deletion.query_id, mentioned=deletion.engram_id)
            await redact_on_record(self._bus, what, JOURNAL_SECONDS)
            # From here on nothing is redacted any more: that would take the message below, which names the engram,
            # from those who have not got it yet.
            await self._engrams.note_redacted(deletion.engram_id)
        message = MemoryDeleted(
            engram_id=deletion.engram_id, query_id=deletion.query_id, respondent_id=deletion.respondent_id
        )
        envelope_id = uuid.uuid5(_NAMESPACE, deletion.engram_id).hex
        trace = Trace(new_id(), None, None, deletion.user_id)  # not the query's: its record is closed
        await self._bus.publish(message, trace, envelope_id=envelope_id, seconds=JOURNAL_SECONDS)
        await self._engrams.finish_deletion(deletion.engram_id)


# The choice of the embedding model: the model server's own if it has one, else the bundled one.


class EmbeddingChoice:
    """The choice of the embedding model: the server's own if it has one, else the bundled one. It is made once for a
    process, because vectors of two models cannot be compared.

    A server that does not answer is waited for if its model has made the stored vectors, which would otherwise be made
    again twice. `problem` reports the wait.
    """

    def __init__(self, model: ChatModel, name: str, leases: Leases, *, is_served: bool, chats: bool = False) -> None:
        """`is_served` is False where the server's vectors mean nothing; `chats`: the model is the one that answers."""
        self._model, self._name, self._leases, self._is_served = model, name, leases, is_served
        self._chats = chats
        self._chosen: Embedder | None = None
        self.problem = ""

    async def run(self, engrams: EngramService) -> None:
        """Choose, and have the memory use it."""
        while True:
            try:
                self._chosen = await self._choose(engrams)
                engrams.use(self._chosen)
                self.problem = ""
                return
            except ModelError as error:
                if str(error) != self.problem:
                    log.warning("words alone are searched until the embedding model answers: %s", error)
                self.problem = str(error)
                await asyncio.sleep(RETRY_SECONDS)

    async def embed(self, texts: Sequence[str]) -> tuple[str, tuple[tuple[float, ...], ...]]:
        """The name of the chosen model and its vectors of these texts, each of length 1. Raises `ModelError`."""
        if self._chosen is None:
            raise ModelError(self.problem or "the embedding model is not chosen yet; try again", kind="unavailable")
        return self._chosen.name, tuple(map(tuple, (await self._chosen.embed_documents(texts)).tolist()))

    async def _choose(self, engrams: EngramService) -> Embedder:
        if not self._is_served:
            return MiniLmEmbedder()
        try:
            if self._chats:  # which is loaded anyway; most such servers refuse at once, so no question waits for it
                await ServedEmbedder.connect(self._model.embed, self._name)
            return await ServedEmbedder.connect(self._model.embed, self._name, in_background=self._in_background)
        except ModelError as error:
            if error.kind != "model_missing" and await engrams.embedded_by() == self._name:
                raise
            log.info("memories are embedded by the bundled model: %s", error)
            return MiniLmEmbedder()

    async def _in_background(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        return await self._leases.in_background(model, "embedding", partial(self._model.embed, model, texts))


# Answers requests of others to the memory.

CATCH_UP_SECONDS = 0.5
AT_ONCE = (
    "embed",
    "kinds",
    "facts",
    "confirm_fact",
    "drop_fact",
)  # facts are made of exchanges later, by a model
BEHIND = (
    f"the latest exchanges may be missing: the memory has not caught up with the journal within {CATCH_UP_SECONDS} s"
)
MOST_UNCONFIRMED = 50  # shown at once
SHOWN_CHARS = 300  # of each text of an outcome: several of them travel within a frame


class MemoryRequestHandler:
    """Answers requests to the memory, each on behalf of one user, who sees nothing of other users. `told(user_id)` is
    called when a user's lines in prompts may have changed; `caught_up(seconds)` waits for answers that are recorded but
    not stored yet, so that an answer a client has seen is found here, too.
    """

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
        """Return the requested content, or an error that states why there is none."""
        work = {
            "search": self._search,
            "list": self._list,
            "get": self._get,
            "delete": self._delete,
            "pin": self._pin,
            "unpin": self._unpin,
            "facts": self._facts,
            "confirm_fact": self._settle_fact,
            "drop_fact": self._settle_fact,
            "write_fact": self._write_fact,
            "repeated": self._repeated,
            "export": self._export,
            "embed": self._embed,
            "kinds": self._kinds,
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
        found = await self._engrams.search(
            user_id, request.query, limit=request.limit, not_session=request.not_session, not_since=request.not_since
        )
        hits = page([recalled(hit) for hit in found.hits])
        return MemoryResult(verb=request.verb, hits=hits, nearest=scores(found.nearest), degraded=found.degraded)

    async def _list(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        before, before_id = math.inf if request.before is None else request.before, ""
        if request.cursor:
            before, before_id = place_of(request.cursor)
        limit = request.limit + 1  # one to see if it ends
        engrams = await self._engrams.recent(
            user_id, limit=limit, before=before, before_id=before_id, only=request.only
        )
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
        """A session belongs to one user: those who may delete it may know this."""
        if request.engram_id:
            repeated_in = await self._engrams.repeated_in(user_id, request.engram_id)
        else:
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
        told = await self._engrams.context_lines(user_id)
        stated = await (self._engrams.fact_history if request.history else self._engrams.facts)(user_id)
        latest_first = sorted(stated, key=lambda fact: -fact.stated_at)
        facts = sorted(page(fact_records(latest_first)), key=lambda fact: (fact.slot, fact.stated_at))
        unconfirmed = page(fact_records(await self._engrams.unconfirmed_facts(user_id)))[:MOST_UNCONFIRMED]
        return MemoryResult(
            verb=request.verb, facts=tuple(facts), unconfirmed=unconfirmed, lines=told.lines, pinned=told.pinned,
            left_out=told.left_out,
        )  # fmt: skip

    async def _settle_fact(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        settle = self._engrams.confirm_fact if request.verb == "confirm_fact" else self._engrams.drop_fact
        settled = await settle(user_id, request.fact_id or 0)
        await self._told(user_id)
        return MemoryResult(verb=request.verb, facts=fact_records([settled]))

    async def _write_fact(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        (edit,) = (HandEdit(**each.model_dump()) for each in request.edits)
        outcome = await self._engrams.write_fact(user_id, request.fact_id, edit, new_id(), time.time())
        await self._told(user_id)
        return MemoryResult(verb=request.verb, outcomes=(_shown(outcome),))

    async def _notes(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        notes = await self._engrams.notes(user_id, history=bool(request.history))
        return MemoryResult(verb=request.verb, engrams=page([engram_record(note, SHORT) for note in notes]))

    async def _restore(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        await self._engrams.restore_note(user_id, request.engram_id)
        return MemoryResult(
            verb=request.verb, engrams=(engram_record(await self._engrams.get(user_id, request.engram_id)),)
        )

    async def _entries(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        start = int(request.cursor or 0)
        kept = (await self._engrams.entries(user_id))[start:]
        shown = page([EntryRecord.model_validate(asdict(entry)) for entry in kept])
        cursor = str(start + len(shown)) if len(shown) < len(kept) else ""
        return MemoryResult(verb=request.verb, entries=shown, cursor=cursor)

    async def _edit(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        edits = [HandEdit(**edit.model_dump()) for edit in request.edits]
        if request.applies:
            outcomes = await self._engrams.apply_edits(user_id, edits, new_id(), time.time())
            await self._told(user_id)
        else:
            outcomes = await self._engrams.compare_edits(user_id, edits)
        return MemoryResult(verb=request.verb, outcomes=tuple(map(_shown, outcomes)))

    async def _kinds(self, request: MemoryRequest, user_id: str) -> MemoryResult:
        return MemoryResult(verb=request.verb, kinds=await self._engrams.kinds_of(request.query))

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


CONSUMER = "memory"
SESSIONS_AT_ONCE = 32
REQUESTS_AT_ONCE = 8
ASKED_AT_ONCE = 1024  # queries
MANY_ASKED, MANY_SECONDS = 10, 1.0  # so many questions in so many seconds; of more only the words are compared
UNASKED_SECONDS, LONGEST_UNASKED_SECONDS = 2.0, 20.0  # without a question, before new exchanges are embedded
CONTEXT_TOKENS = 32_000  # if the size of the window is unknown
Annotation = Literal["score", "sentiment", "winner", "pinned", "restored"]
_ANNOTATING: dict[str, Annotation] = {"pin": "pinned", "unpin": "pinned", "restore": "restored"}  # by verb
LOOK_SECONDS = 1.0  # between two looks at how the store is, while it changes
_MEMORY_NAMESPACE = uuid.UUID("0c6d2d5c-8f0f-4f1b-9d4e-1f8f6d6f3a0b")


class MemoryConfig(Settings):
    """The settings in `memory.yaml`; the comments there explain each key."""

    classify: bool = True
    model: str | None = None
    num_ctx: int | None = Field(None, ge=512)
    timeout_seconds: float = Field(120, gt=0)
    embedding_model: str = "nomic-embed-text"


class MemoryAgent(Participant):
    """The participant that owns the engrams: it stores every exchange, has it classified, notes judgements of it, and
    answers requests. A message that is delivered twice changes nothing."""

    name = "memory"
    kind = Kind.AGENT
    linger_ms = 200
    Config = MemoryConfig
    publishes = (MemoryIngested, MemoryAnnotated, UserFacts, Classifier, Deletions, Leases)

    def __init__(
        self,
        config: MemoryConfig,
        model: ChatModel,
        model_name: str,
        engrams: EngramService,
        embedding: EmbeddingChoice,
        leases: Leases | None = None,
        signs_as: str | None = None,
        fitness: ClassifierFitness | None = None,
    ) -> None:
        super().__init__(config)
        self._fitness = fitness
        self._settings, self._model, self._model_name = config, model, model_name
        self._signs_as = signs_as or model_name  # its name for people
        self._engrams, self._embedding, self._leases = engrams, embedding, leases or Leases()
        self._quiet, self._unasked = QuietPeriod(), QuietPeriod(UNASKED_SECONDS, LONGEST_UNASKED_SECONDS)
        self._asked_at: deque[float] = deque(maxlen=MANY_ASKED)  # when the latest questions came
        self._status: MemoryStatus | None = None
        self._told: dict[str, tuple[str, ...]] = {}  # the lines of each user that were last announced
        self._telling = asyncio.Lock()
        self._is_announced = asyncio.Event()

    @classmethod
    def build(cls, config: MemoryConfig, resources: Resources) -> Self:
        """With the models of the roles fast and embed. Raises `ConfigError`."""
        routing = resources.routing
        if routing is None:
            raise ConfigError("the memory needs a model server, and none is known here")
        model = connect(routing, timeout_seconds=config.timeout_seconds, limit="timeout_seconds in memory.yaml")
        leases = Leases(routing.locate)
        is_served = resources.model_backend != "stand_in"
        embed = routing.first("embed", config.embedding_model)
        chats = embed == routing.first("chat", resources.chat_model)
        embedding = EmbeddingChoice(model, embed, leases, is_served=is_served, chats=chats)
        name = routing.first("fast", config.model or routing.first("chat", resources.chat_model))
        config = config.model_copy(update={"num_ctx": config.num_ctx or resources.chat_num_ctx})
        # It goes by any model's name, but users shall know it.
        signs_as = None if is_served else "stand-in"
        engrams = EngramService(resources.data_dir / "engrams")
        fitness = None  # the stand-in follows rules and needs no test
        if is_served:
            window = config.num_ctx or CONTEXT_TOKENS
            fitness = ClassifierFitness(
                model, name, window, leases, resources.data_dir, lambda model: routing.locate(model)[1]
            )
        return cls(config, model, name, engrams, embedding, leases, signs_as, fitness)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the store; choose the embedding model, classify and finish deletions in the background."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._model.close)
            self._engrams.embed_when(self._unasked.begins)
            await stack.enter_async_context(self._engrams)
            await stack.enter_async_context(self._leases.are_open(self.bus))
            self._deletions = Deletions(self.bus, self._engrams)
            self._requests = MemoryRequestHandler(
                self._engrams, self._embedding, self._deletions, self._publish_facts, self.caught_up
            )
            self._classifier = Classifier(
                self.bus, self._engrams, self._model, self._model_name, self._settings.num_ctx or CONTEXT_TOKENS,
                self._leases, self._publish_facts, self._quiet.begins, signs_as=self._signs_as,
                fitness=self._fitness,
            )  # fmt: skip
            works = {
                "choice of the embedding model": self._search_by_meaning(),
                "deletions": self._deletions.run(),
                "figures": self._look(),
            }
            if self._settings.classify:
                works["classification"] = self._classifier.run()
            tasks = [asyncio.create_task(work, name=name) for name, work in works.items()]
            stack.push_async_callback(_end, tasks)
            for task in tasks:
                task.add_done_callback(_log_end)
            yield

    async def announce(self) -> None:
        """Publish which users have facts, for participants that missed a change."""
        try:
            for user_id in await self._engrams.users_with_context():
                self._told.pop(user_id, None)
                await self._publish_facts(user_id)
        finally:
            self._is_announced.set()

    @on(QueryReceived, concurrency=ASKED_AT_ONCE)
    async def recall(self, asked: QueryReceived, envelope: Envelope) -> MemoryRecalled | None:
        """Look for exchanges that fit a question while the journal stores it, because the turn may begin then. While
        many ask, only words are compared: embedding their questions would delay the turns of all.
        """
        self._unasked.disturbed()
        if asked.incognito or asked.task is not None or not asked.speaks_for_user or not asked.query.strip():
            return None
        now = time.monotonic()
        self._asked_at.append(now)
        do_many_ask = len(self._asked_at) == MANY_ASKED and now - self._asked_at[0] < MANY_SECONDS
        found = await self._engrams.recall(
            envelope.user_id or OWNER, asked.query, not_session=envelope.session_id or asked.session_id,
            seconds=0.0 if do_many_ask else None,
        )  # fmt: skip
        return MemoryRecalled(query_id=asked.query_id, hits=page(list(map(recalled, found.hits))))

    @on(ResponseGeneration, durable=CONSUMER, concurrency=SESSIONS_AT_ONCE)
    async def ingest(self, response: ResponseGeneration, envelope: Envelope) -> None:
        """An answer: it is stored at once, and looked at later."""
        for note in notes_of(response, envelope, time.time()):
            await self._engrams.keep_note(note)
        exchange = exchange_of(response, envelope, time.time())
        if exchange is None:
            return
        findings = await stated_at_once(exchange, self._engrams) if self._settings.classify else ()
        ingested = await self._engrams.ingest(exchange, findings)
        if not ingested.is_stored:
            return
        failpoints.reach("memory.stored")
        self._quiet.disturbed()
        self._unasked.disturbed()
        self._classifier.wake()
        if findings:  # the next question may need them before a model has looked at the exchange
            await self._publish_facts(exchange.user_id)
        told = MemoryIngested(
            engram_id=exchange.engram_id, query_id=exchange.query_id, respondent_id=exchange.respondent_id
        )
        await self._publish(told, exchange.engram_id, envelope)
        failpoints.reach("memory.told")
        if ingested is Ingested.RATED:
            await self._settle_early_rating(exchange.query_id, exchange.respondent_id, envelope)

    @on(DreamMade, durable=CONSUMER, concurrency=SESSIONS_AT_ONCE)
    async def dream(self, made: DreamMade, envelope: Envelope) -> None:
        """Store the notes of a dream."""
        for note in dreamt_notes(made, envelope):
            await self._engrams.keep_note(note)

    @on(CritiqueResult, durable=CONSUMER, concurrency=SESSIONS_AT_ONCE)
    async def grade(self, result: CritiqueResult, envelope: Envelope) -> None:
        """Store a critic's grade; without a grade the engram stays as it is."""
        score = result.score if result.expected is None else result.expected
        if score is not None and await self._engrams.grade(result.query_id, result.respondent_id, score):
            await self._publish_annotation(result.query_id, result.respondent_id, "score", score, envelope)

    @on(PairwiseResult, durable=CONSUMER, concurrency=SESSIONS_AT_ONCE)
    async def compare(self, result: PairwiseResult, envelope: Envelope) -> None:
        """Which of two answers a critic holds for the better one."""
        if result.winner is None:
            return
        for respondent_id in ("A", "B"):
            if await self._engrams.compare(result.query_id, respondent_id, result.winner):
                await self._publish_annotation(result.query_id, respondent_id, "winner", result.winner, envelope)

    @on(UserFeedback, durable=CONSUMER, concurrency=SESSIONS_AT_ONCE)
    async def rate(self, feedback: UserFeedback, envelope: Envelope) -> None:
        """A user's rating; the latest one counts."""
        rating = answer_rating(feedback, envelope)
        if await self._engrams.rate(rating):
            await self._publish_rating(rating, envelope)

    @on(SessionDeleted, durable=CONSUMER, concurrency=SESSIONS_AT_ONCE)
    async def forget(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """Delete everything of a deleted session."""
        await self._deletions.delete_session(deleted.deleted_session_id)
        for user_id in list(self._told):
            await self._publish_facts(user_id)

    @on(MemoryRequest, concurrency=REQUESTS_AT_ONCE)
    async def answer(self, request: MemoryRequest, envelope: Envelope) -> MemoryResult:
        """Answer a request to the memory."""
        result = await self._requests.answer(request, envelope.user_id or OWNER)
        if what := _ANNOTATING.get(request.verb):
            for engram in result.engrams:
                cause = envelope._replace(correlation_id=engram.query_id, session_id=engram.session_id)
                value = float(engram.pinned or what == "restored")
                await self._publish_annotation(engram.query_id, engram.respondent_id, what, value, cause)
        return result

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """Return the error reply for a request that failed; for a recall that did, that nothing was found."""
        if isinstance(message, QueryReceived):
            return MemoryRecalled(query_id=message.query_id)
        if not isinstance(message, MemoryRequest):
            return None
        info = ErrorInfo.of(error)
        return MemoryResult(verb=message.verb, error=info)

    def metrics(self) -> dict[str, int]:
        """Return the numbers of engrams to embed, to classify and to delete elsewhere, and of unreadable replies."""
        status = self._status
        if status is None:
            return {}
        return {
            "embeddings_pending": status.pending,
            "classifications_pending": status.unclassified,
            "classifications_unparsed": status.unparsed,
            "deletions_pending": status.deletions,
        }

    def details(self) -> dict[str, str]:
        """Return the names of the models, the state of the index, and their problems."""
        tested = None if self._fitness is None else self._fitness.known
        told = {
            "classifier": self._signs_as if self._settings.classify else "off",
            "classifier_self_test": tested.in_words() if tested else "",
            "model_problem": self._classifier.problem,
            "embedding_problem": self._embedding.problem,
            "deletion_problem": self._deletions.problem,
        }
        if self._status is not None:
            status = self._status
            told |= {"embedding_model": status.model, "index": status.index, "index_problem": status.trouble}
        return {name: text for name, text in told.items() if text}

    async def _search_by_meaning(self) -> None:
        await self._is_announced.wait()  # loading costs a second of CPU time: other participants start first
        await self._embedding.run(self._engrams)

    async def _look(self) -> None:
        while True:
            with suppress(StoreFailed):  # the code that works there reports it
                async for status in self._engrams.changes_of_status():
                    self._status = status
                    await asyncio.sleep(LOOK_SECONDS)
            await asyncio.sleep(LOOK_SECONDS)

    async def _settle_early_rating(self, query_id: str, respondent_id: str, cause: Envelope) -> None:
        rating = await self._engrams.early_rating(query_id, respondent_id)
        if rating is not None:
            await self._publish_rating(rating, cause)
            await self._engrams.settle_rating(query_id, respondent_id)

    async def _publish_rating(self, rating: AnswerRating, cause: Envelope) -> None:
        await self._publish_annotation(rating.query_id, rating.respondent_id, "sentiment", rating.sentiment, cause)

    async def _publish_annotation(
        self, query_id: str, respondent_id: str, what: Annotation, value: float | str | None, cause: Envelope
    ) -> None:
        key = engram_id(query_id, respondent_id)
        message = MemoryAnnotated(
            engram_id=key, query_id=query_id, respondent_id=respondent_id, what=what, value=value
        )  # fmt: skip
        await self._publish(message, f"{key}/{what}", cause)

    async def _publish(self, message: MemoryIngested | MemoryAnnotated, key: str, cause: Envelope) -> None:
        """Publish a message that follows from another, under an id that is the same when that is delivered again."""
        envelope_id = uuid.uuid5(_MEMORY_NAMESPACE, f"{cause.id}/{key}").hex
        await self.bus.publish(message, cause.trace(), envelope_id=envelope_id)

    async def _publish_facts(self, user_id: str) -> None:
        """Publish that a user's lines in prompts have changed, if they have."""
        async with self._telling:
            lines = (await self._engrams.context_lines(user_id)).lines
            if lines != self._told.get(user_id, ()):
                self._told[user_id] = lines
                self.bus.post(UserFacts(of_user=user_id), Trace(new_id(), None, None, user_id))


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _log_end(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("%s: ended with %s: %s", task.get_name(), type(error).__name__, error)


# The state of a memory from outside, with or without its process: for the doctor.

__all__ = ["DIRECTORY", "Condition", "examine", "try_bundled_model"]

DIRECTORY = "engrams"  # in the data directory


async def try_bundled_model(directory: Path | None = None) -> str:
    """Embed something with the bundled model, or the one in a directory; returns its name. Raises `ModelError`."""
    embedder = MiniLmEmbedder(directory)
    await embedder.embed_queries(["Does it work?"])
    return embedder.name
