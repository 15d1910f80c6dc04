"""The agent that reads answers: grades them, and compares those of two respondents."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Literal, Self, TypeVar

from pydantic import Field

from local.agents.grading.fitness import JudgeFitness
from local.agents.grading.grader import Grader
from local.agents.grading.judge import Judge, Successor
from local.agents.grading.judge_chooser import MADE_FOR_JUDGING, NUM_CTX, JudgeChooser
from local.agents.grading.judgements import no_comparison
from local.agents.grading.judging_line import REASON, JudgingLine
from local.agents.leases import Leases
from local.agents.quiet_period import LONGEST_SECONDS, QuietPeriod
from local.config import Settings
from local.errors import ConfigError, HandedBack
from local.models.backends import connect
from local.protocol.envelope import Envelope
from local.protocol.judgement_messages import ComparisonRequest, ComparisonResult
from local.protocol.messages import (
    Message,
    QueryCancel,
    ResponseGeneration,
    ToolResult,
    ToolSchema,
    ToolSchemaRequest,
)
from local.runtime.participant import Kind, Participant, Resources, on
from local.services.judging.profiles import PROFILES, ProfileName
from local.services.judging.prompt import Profile
from local.services.judging.rubric import Rubrics

T = TypeVar("T")
log = logging.getLogger(__name__)

CONSUMER = "critic"
SECOND_RESPONDENT = "B"
ANSWERS_AT_ONCE = 64  # they wait for quiet together, and for the model one by one
COMPARISONS_AT_ONCE = 16  # more than those that nobody waits for, which stay in line for the model meanwhile
COMPARISON_SECONDS = 120.0  # a user waits for it
HOUR = 3600.0


class CriticConfig(Settings):
    """`critic.yaml`, which the rubrics stand in; the comments there say what each key means."""

    model: str | None = None
    profile: Literal["auto"] | ProfileName = "auto"
    num_ctx: int | None = Field(None, ge=2048)
    timeout_seconds: float = Field(120, gt=0)
    grade: bool = True
    compare: bool = True
    grade_within_hours: float = Field(24, gt=0)
    rubrics: Rubrics

    @property
    def judges(self) -> str:
        """What there will be of an answer, by the names that doors have for it."""
        return ", ".join(name for name, is_made in (("critique", self.grade), ("pairwise", self.compare)) if is_made)


class CriticAgent(Participant):
    """Grades every answer from 1 to 5, and says which of two respondents' answers is better. It delays nobody."""

    name = "critic"
    kind = Kind.AGENT
    linger_ms = 200
    Config = CriticConfig
    publishes = (Grader, Leases, ToolSchemaRequest)

    def __init__(self, config: CriticConfig, judge: Judge, fitness: JudgeFitness | None = None) -> None:
        super().__init__(config)
        self._settings, self._judge, self._fitness = config, judge, fitness
        self._grader = Grader(judge, config.rubrics, fitness)
        self._quiet, self._line = QuietPeriod(), JudgingLine(lambda task: judge.is_asked_by(task))
        self._serves_since: float | None = None
        self._begun: set[str] = set()  # answers that are being judged, or that this process was kept from judging
        self._left_alone = 0
        self._work: defaultdict[str, set[asyncio.Task[Any]]] = defaultdict(set)  # by the query that waits for it, or ""

    @classmethod
    def build(cls, config: CriticConfig, resources: Resources) -> Self:
        """With the model of the role critic, else the one that answers. Raises `ConfigError`."""
        routing = resources.routing
        if routing is None:
            raise ConfigError("the critic needs a model server, and none is known here")
        answering = routing.first("chat", resources.chat_model)
        name = routing.first("critic", config.model or answering)
        is_stand_in = resources.model_backend == "stand_in"
        is_named = bool(config.model or routing.config.roles.critic) or is_stand_in
        chooser = None if is_named else JudgeChooser.beside(routing, answering)
        judge = Judge(
            connect(routing, timeout_seconds=config.timeout_seconds, limit="timeout_seconds in critic.yaml"),
            name,
            PROFILES[profile_of(config.profile, name)],
            num_ctx=config.num_ctx or resources.chat_num_ctx,
            leases=Leases(routing.locate),
            # It goes by any model's name, but users shall know it.
            signs_as="stand-in" if is_stand_in else None,
            successor=None if chooser is None else partial(_successor, config, chooser),
        )
        # The stand-in counts words, and says so with each grade: a test of knowledge has nothing to tell of it.
        fitness = None if is_stand_in else JudgeFitness(judge, resources.data_dir, lambda name: routing.locate(name)[1])
        return cls(config, judge, fitness)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Stand in line for the model, as one who can wait."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._judge.close)
            await stack.enter_async_context(self._judge.leases.are_open(self.bus))
            self._grader.bus = self.bus
            yield

    async def announce(self) -> None:
        """Ask who the tools are: some name the rubric for answers that used them."""
        await self.bus.publish(ToolSchemaRequest())

    def hand_back(self) -> None:
        """Leave what is being judged to the next process."""
        for work in list(self._work.values()):
            _cancel(work)

    def figures(self) -> dict[str, int]:
        """What was judged since the start, and what could not be."""
        return {
            "answers_graded": self._grader.figures.graded,
            "answers_compared": self._grader.figures.comparisons,
            "judgements_unparsed": self._grader.figures.unparsed,
            "judgements_failed": self._grader.failed,
            "judgements_without_fit_judge": self._grader.unfit,
            "answers_skipped": self._grader.skipped,
            "old_answers_left_alone": self._left_alone,
        }

    def details(self) -> dict[str, str]:
        """Who judges, what (doors wait for that), how reliably since the start, and what is wrong with it now."""
        shares = {name: f"{share:.0%}" for name, share in self._grader.figures.shares().items() if share is not None}
        told = {"model": self._judge.name, "judges": self._settings.judges, **shares}
        tested = None if self._fitness is None else self._fitness.known
        more = {"self_test": tested.in_words() if tested else "", "problem": self._judge.problem}
        return {**told, **{name: text for name, text in more.items() if text}}

    @on(ResponseGeneration, durable=CONSUMER, concurrency=ANSWERS_AT_ONCE, lane_width=ANSWERS_AT_ONCE)
    async def receive(self, answer: ResponseGeneration, envelope: Envelope) -> None:
        """An answer, until all there is to judge is judged; where nothing is to be left behind, nothing is.

        An old one is left alone: who starts with a long record is not to have all of it judged at once. Of a long line
        the newest are judged.
        """
        if answer.status != "answered" or answer.incognito or answer.agent:
            return
        if time.time() - envelope.sent_at > self._settings.grade_within_hours * HOUR:
            self._left_alone += 1
        else:
            self._quiet.disturbed()
            await self._unless_stopped("", self._judge_or_leave_out(answer, envelope))

    @on(ComparisonRequest, concurrency=COMPARISONS_AT_ONCE)
    async def compare(self, request: ComparisonRequest, envelope: Envelope) -> ComparisonResult:
        """A model in the middle of a turn wants two texts compared: at once if it is a user's turn."""
        try:
            async with asyncio.timeout(COMPARISON_SECONDS):
                return await self._unless_stopped(
                    envelope.correlation_id, self._grader.compare_texts(request, envelope.trace())
                )
        except TimeoutError:
            return no_comparison("timeout", "the critic took too long")
        except HandedBack as error:
            return no_comparison("cancelled", str(error))

    @on(QueryCancel)
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> None:
        """Nobody waits any more for what this turn wanted compared."""
        _cancel(self._work.get(message.query_id, ()))

    @on(ToolSchema)
    async def learn(self, schema: ToolSchema, envelope: Envelope) -> None:
        """A tool says what it is, and by which rubric answers are graded that used it."""
        if self.may_say(envelope, ToolResult.subject + schema.tool):
            self._grader.rubrics_of_tools[schema.tool] = schema.rubric

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """What is told to a model that wanted two texts compared."""
        if isinstance(message, ComparisonRequest):
            return no_comparison(getattr(error, "kind", "internal"), str(error) or type(error).__name__)
        return None

    async def _judge_or_leave_out(self, answer: ResponseGeneration, envelope: Envelope) -> None:
        if not await self._line.judge(envelope.sent_at, self._judge_answer(answer, envelope)):
            compare = self._settings.compare and answer.respondent_id == SECOND_RESPONDENT
            await self._grader.skip(answer, envelope.trace(), REASON, compare=compare)

    async def _judge_answer(self, answer: ResponseGeneration, envelope: Envelope) -> None:
        trace, is_new = envelope.trace(), self._is_new(envelope)
        self._begun.add(envelope.id)
        if time.time() - envelope.sent_at < LONGEST_SECONDS:
            await self._quiet.begins()
        if self._settings.grade:
            await (self._grader.grade if is_new else self._grader.grade_unless_on_record)(answer, trace)
        if self._settings.compare and answer.respondent_id == SECOND_RESPONDENT:
            await self._grader.compare_with_rival(answer, trace)
        self._begun.discard(envelope.id)

    def _is_new(self, envelope: Envelope) -> bool:
        """Whether nobody can have judged an answer: it was given since this process got the first, and not begun in it.

        Whoever served before it was given nothing from then on.
        """
        if self._serves_since is None:
            self._serves_since = time.time()
        return envelope.sent_at > self._serves_since and envelope.id not in self._begun

    async def _unless_stopped(self, query_id: str, work: Coroutine[Any, Any, T]) -> T:
        """What comes of it. Raises `HandedBack` if it is stopped, which `hand_back` and `cancel` do."""
        task = asyncio.create_task(work)
        self._work[query_id].add(task)
        try:
            return await task
        except asyncio.CancelledError:
            waiting = asyncio.current_task()
            if waiting is None or waiting.cancelling():
                raise
            raise HandedBack("the critic was stopped") from None
        finally:
            self._work[query_id].discard(task)
            if not self._work[query_id]:
                del self._work[query_id]


def profile_of(profile: Literal["auto"] | ProfileName, model: str) -> ProfileName:
    """The profile that was chosen, or the one that the model's name tells; else JSON by a schema."""
    if profile != "auto":
        return profile
    return next((found for word, found in MADE_FOR_JUDGING.items() if word in model.lower()), "generic-json")


def profile_for(profile: Literal["auto"] | ProfileName, model: str) -> Profile:
    """How a model is asked that judges."""
    return PROFILES[profile_of(profile, model)]


async def _successor(config: CriticConfig, chooser: JudgeChooser) -> Successor | None:
    choice = await chooser.choose()
    log.info("answers are judged by %s: %s", choice.name or "the model that gives them", choice.why)
    if choice.name is None:
        return None
    return Successor(choice.name, PROFILES[profile_of(config.profile, choice.name)], config.num_ctx or NUM_CTX)


def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in list(tasks):
        task.cancel()
