"""The agent that remembers: stores every exchange, has it classified, notes what is said of it, and is asked."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Literal, Self

from pydantic import Field

from local import failpoints
from local.agents.leases import Leases
from local.agents.quiet_period import QuietPeriod
from local.agents.remembering.claims import stated_at_once
from local.agents.remembering.classifier import Classifier
from local.agents.remembering.deletions import Deletions
from local.agents.remembering.embedding_choice import EmbeddingChoice
from local.agents.remembering.fitness import ClassifierFitness
from local.agents.remembering.memory_request_handler import MemoryRequestHandler
from local.agents.remembering.records import answer_rating, dreamt_notes, exchange_of, notes_of
from local.config import Settings
from local.errors import ConfigError, StoreFailed
from local.models.backends import connect
from local.models.chat import ChatModel
from local.protocol.dream_messages import DreamMade
from local.protocol.envelope import Envelope, Trace, new_id
from local.protocol.judgement_messages import CritiqueResult, PairwiseResult, UserFeedback
from local.protocol.memory_messages import (
    OWNER,
    MemoryAnnotated,
    MemoryIngested,
    MemoryRequest,
    MemoryResult,
    UserFacts,
)
from local.protocol.messages import ErrorInfo, Message, ResponseGeneration, SessionDeleted
from local.runtime.participant import Kind, Participant, Resources, on
from local.services.engrams.engram import AnswerRating, Ingested, engram_id
from local.services.engrams.service import EngramService
from local.services.engrams.status import MemoryStatus

log = logging.getLogger(__name__)

CONSUMER = "memory"
SESSIONS_AT_ONCE = 32
REQUESTS_AT_ONCE = 8
CONTEXT_TOKENS = 32_000  # where nobody says how large the window is
Annotation = Literal["score", "sentiment", "winner", "pinned", "restored"]
_ANNOTATING: dict[str, Annotation] = {"pin": "pinned", "unpin": "pinned", "restore": "restored"}  # by verb
LOOK_SECONDS = 1.0  # between two looks at how the store is, while it changes
_NAMESPACE = uuid.UUID("0c6d2d5c-8f0f-4f1b-9d4e-1f8f6d6f3a0b")


class MemoryConfig(Settings):
    """`memory.yaml`; the comments there say what each key means."""

    classify: bool = True
    model: str | None = None
    num_ctx: int | None = Field(None, ge=512)
    timeout_seconds: float = Field(120, gt=0)
    embedding_model: str = "nomic-embed-text"


class MemoryAgent(Participant):
    """Owns the engrams. Whatever it is given a second time changes nothing."""

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
        self._quiet = QuietPeriod()
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
        embedding = EmbeddingChoice(model, embed, leases, is_served=is_served)
        name = routing.first("fast", config.model or routing.first("chat", resources.chat_model))
        config = config.model_copy(update={"num_ctx": config.num_ctx or resources.chat_num_ctx})
        # It goes by any model's name, but users shall know it.
        signs_as = None if is_served else "stand-in"
        engrams = EngramService(resources.data_dir / "engrams")
        fitness = None  # the stand-in has its rules, which are no model's
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
            self._engrams.embed_when(self._quiet.begins)
            await stack.enter_async_context(self._engrams)
            await stack.enter_async_context(self._leases.are_open(self.bus))
            self._deletions = Deletions(self.bus, self._engrams)
            self._requests = MemoryRequestHandler(
                self._engrams, self._embedding, self._deletions, self._tell_facts, self.caught_up
            )
            self._classifier = Classifier(
                self.bus, self._engrams, self._model, self._model_name, self._settings.num_ctx or CONTEXT_TOKENS,
                self._leases, self._tell_facts, self._quiet.begins, signs_as=self._signs_as,
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
        """Say which users there are facts of: whoever missed a change hears of it now."""
        try:
            for user_id in await self._engrams.told_users():
                self._told.pop(user_id, None)
                await self._tell_facts(user_id)
        finally:
            self._is_announced.set()

    @on(ResponseGeneration, durable=CONSUMER, concurrency=SESSIONS_AT_ONCE)
    async def ingest(self, response: ResponseGeneration, envelope: Envelope) -> None:
        """An answer: it is stored at once, and looked at later."""
        for note in notes_of(response, envelope, time.time()):
            await self._engrams.notes.keep(note)
        exchange = exchange_of(response, envelope, time.time())
        if exchange is None:
            return
        findings = await stated_at_once(exchange, self._engrams) if self._settings.classify else ()
        ingested = await self._engrams.ingest(exchange, findings)
        if not ingested.is_stored:
            return
        failpoints.reach("memory.stored")
        self._quiet.disturbed()
        self._classifier.wake()
        if findings:  # the next question may need them before a model has looked at the exchange
            await self._tell_facts(exchange.user_id)
        told = MemoryIngested(
            engram_id=exchange.engram_id, query_id=exchange.query_id, respondent_id=exchange.respondent_id
        )
        await self._publish(told, exchange.engram_id, envelope)
        failpoints.reach("memory.told")
        if ingested is Ingested.RATED:
            await self._settle_early_rating(exchange.query_id, exchange.respondent_id, envelope)

    @on(DreamMade, durable=CONSUMER, concurrency=SESSIONS_AT_ONCE)
    async def dream(self, made: DreamMade, envelope: Envelope) -> None:
        """What was seen in a dream is noted."""
        for note in dreamt_notes(made, envelope):
            await self._engrams.notes.keep(note)

    @on(CritiqueResult, durable=CONSUMER, concurrency=SESSIONS_AT_ONCE)
    async def grade(self, result: CritiqueResult, envelope: Envelope) -> None:
        """A critic's grade; one that gave none leaves the engram as it is."""
        score = result.score if result.expected is None else result.expected
        if score is not None and await self._engrams.grade(result.query_id, result.respondent_id, score):
            await self._tell_annotation(result.query_id, result.respondent_id, "score", score, envelope)

    @on(PairwiseResult, durable=CONSUMER, concurrency=SESSIONS_AT_ONCE)
    async def compare(self, result: PairwiseResult, envelope: Envelope) -> None:
        """Which of two answers a critic holds for the better one."""
        if result.winner is None:
            return
        for respondent_id in ("A", "B"):
            if await self._engrams.compare(result.query_id, respondent_id, result.winner):
                await self._tell_annotation(result.query_id, respondent_id, "winner", result.winner, envelope)

    @on(UserFeedback, durable=CONSUMER, concurrency=SESSIONS_AT_ONCE)
    async def rate(self, feedback: UserFeedback, envelope: Envelope) -> None:
        """A user's rating; the latest one counts."""
        rating = answer_rating(feedback, envelope)
        if await self._engrams.ratings.rate(rating):
            await self._tell_rating(rating, envelope)

    @on(SessionDeleted, durable=CONSUMER, concurrency=SESSIONS_AT_ONCE)
    async def forget(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """A session is gone, and with it everything that was said in it."""
        await self._deletions.delete_session(deleted.deleted_session_id)
        for user_id in list(self._told):
            await self._tell_facts(user_id)

    @on(MemoryRequest, concurrency=REQUESTS_AT_ONCE)
    async def answer(self, request: MemoryRequest, envelope: Envelope) -> MemoryResult:
        """Somebody wants something of the memory."""
        result = await self._requests.answer(request, envelope.user_id or OWNER)
        if what := _ANNOTATING.get(request.verb):
            for engram in result.engrams:
                cause = envelope._replace(correlation_id=engram.query_id, session_id=engram.session_id)
                value = float(engram.pinned or what == "restored")
                await self._tell_annotation(engram.query_id, engram.respondent_id, what, value, cause)
        return result

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """What whoever asked is told when the answer could not be made."""
        if not isinstance(message, MemoryRequest):
            return None
        info = ErrorInfo.of(error)
        return MemoryResult(verb=message.verb, error=info)

    def figures(self) -> dict[str, int]:
        """What waits to be embedded, classified and deleted elsewhere, and how many replies could not be read."""
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
        """Which models it uses, how its index is, and what is wrong with any of them."""
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
        await self._is_announced.wait()  # what is loaded now costs a second of a core: the others' start comes first
        await self._embedding.run(self._engrams)

    async def _look(self) -> None:
        while True:
            with suppress(StoreFailed):  # whoever has work to do there says so
                async for status in self._engrams.changes_of_status():
                    self._status = status
                    await asyncio.sleep(LOOK_SECONDS)
            await asyncio.sleep(LOOK_SECONDS)

    async def _settle_early_rating(self, query_id: str, respondent_id: str, cause: Envelope) -> None:
        rating = await self._engrams.ratings.early(query_id, respondent_id)
        if rating is not None:
            await self._tell_rating(rating, cause)
            await self._engrams.ratings.settle(query_id, respondent_id)

    async def _tell_rating(self, rating: AnswerRating, cause: Envelope) -> None:
        await self._tell_annotation(rating.query_id, rating.respondent_id, "sentiment", rating.sentiment, cause)

    async def _tell_annotation(
        self, query_id: str, respondent_id: str, what: Annotation, value: float | str | None, cause: Envelope
    ) -> None:
        key = engram_id(query_id, respondent_id)
        message = MemoryAnnotated(
            engram_id=key, query_id=query_id, respondent_id=respondent_id, what=what, value=value
        )  # fmt: skip
        await self._publish(message, f"{key}/{what}", cause)

    async def _publish(self, message: MemoryIngested | MemoryAnnotated, key: str, cause: Envelope) -> None:
        """Publish what follows from a message, under an id that is the same when it is delivered again."""
        envelope_id = uuid.uuid5(_NAMESPACE, f"{cause.id}/{key}").hex
        await self.bus.publish(message, cause.trace(), envelope_id=envelope_id)

    async def _tell_facts(self, user_id: str) -> None:
        """Say that what a model is told of a user has changed, if it has."""
        async with self._telling:
            lines = (await self._engrams.told_lines(user_id)).lines
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
