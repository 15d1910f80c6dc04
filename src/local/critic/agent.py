"""The critic: grades answers, and compares those of two respondents."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from enum import StrEnum
from functools import partial
from typing import Any, Final, Literal, Self, TypeGuard, TypeVar

from pydantic import Field

from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace
from local.bus.message import MAIN_RESPONDENT, Message
from local.bus.messages import QueryCancel, ResponseGeneration, ToolResult, ToolSchema, ToolSchemaRequest
from local.core import failpoints
from local.core.config import Settings
from local.core.errors import ConfigError, HandedBack, JournalFull, ModelError, StoreFull
from local.core.self_test_file import BackgroundTest
from local.critic.judge import (
    NUM_CTX,
    PROFILES,
    REASON,
    ComparisonOutcome,
    Figures,
    Judge,
    JudgeChooser,
    JudgingLine,
    ProfileName,
    Successor,
    Verdict,
    case_of,
    comparison,
    critique,
    judgement_id,
    left_out,
    no_comparison,
    not_compared,
    pair_of,
    unfit_comparison,
    unfit_critique,
    used_tools,
)
from local.critic.judge import preference_of as preference
from local.critic.judging import Pair, Profile, Rubric, Rubrics, choose
from local.critic.messages import ComparisonRequest, ComparisonResult, CritiqueResult, PairwiseResult
from local.critic.self_test import JudgeFitness
from local.journal.client import messages_on_record
from local.journal.messages import JournalRead
from local.models.arbiter import LONGEST_SECONDS, QuietPeriod
from local.models.leases import Leases
from local.models.router import connect
from local.models.settings import MADE_FOR_JUDGING
from local.runtime.machine import Machine, Table, TransitionLog
from local.runtime.participant import Kind, Participant, Resources, on

# Grades and compares answers, and publishes the results: once each, whatever dies in between.

AGENT = "CriticAgent"
UNFIT = "judge_unfit"
NOBODY = ""  # the query of a comparison that a model requested
RECORD_SECONDS = 5.0
HOLD_SECONDS = 0.1  # a judge that takes longer is seen at work
_ON_RECORD: tuple[type[ResponseGeneration | CritiqueResult | PairwiseResult], ...] = (
    ResponseGeneration,
    CritiqueResult,
    PairwiseResult,
)


class GradingState(StrEnum):
    """The state of the judgement of one answer."""

    IDLE = "IDLE"
    GRADING = "GRADING"
    COMPARING = "COMPARING"
    PUBLISHING = "PUBLISHING"


class GradingAction(StrEnum):
    """An event in the judgement of one answer."""

    GRADE = "GRADE"
    COMPARE = "COMPARE"
    JUDGED = "JUDGED"
    UNPARSED = "UNPARSED"
    FAIL = "FAIL"
    SKIP = "SKIP"  # too many answers wait
    PUBLISHED = "PUBLISHED"


_JUDGED = {
    GradingAction.JUDGED: GradingState.PUBLISHING,
    GradingAction.UNPARSED: GradingState.PUBLISHING,
    GradingAction.FAIL: GradingState.PUBLISHING,
}

GRADING_TABLE: Final[Table[GradingState, GradingAction]] = {
    GradingState.IDLE: {
        GradingAction.GRADE: GradingState.GRADING,
        GradingAction.COMPARE: GradingState.COMPARING,
        GradingAction.SKIP: GradingState.PUBLISHING,
    },
    GradingState.GRADING: _JUDGED,
    GradingState.COMPARING: _JUDGED,
    GradingState.PUBLISHING: {
        GradingAction.PUBLISHED: GradingState.IDLE,
    },
}


_ENDS = {"graded": GradingAction.JUDGED, "unparsed": GradingAction.UNPARSED, "failed": GradingAction.FAIL}
_ENDS[UNFIT] = GradingAction.FAIL


class Grader:
    """The service that has the judge grade or compare answers, and publishes each result once, whichever process dies
    in between. `figures` count the results: `failed` if the judge could not be asked, `unfit` if its self-test failed
    (`fitness`; without one every judge is fit, and so is one that is not tested yet), `skipped` for answers left out of
    a long queue. `test` is the self-test, which begins with the first judgement. `rubrics_of_tools` are
    the rubrics that tools request, by their names. `bus` is set before the first judgement.
    """

    bus: Bus
    publishes = (CritiqueResult, PairwiseResult, TransitionLog, JournalRead)

    def __init__(self, judge: Judge, rubrics: Rubrics, fitness: JudgeFitness | None = None) -> None:
        self._judge, self._rubrics, self._fitness = judge, rubrics, fitness
        self.figures, self.failed, self.skipped, self.unfit = Figures(), 0, 0, 0
        self.test = BackgroundTest()
        self.rubrics_of_tools: dict[str, str] = {}

    async def grade(self, answer: ResponseGeneration, trace: Trace) -> None:
        """Grade an answer that was not graded before."""
        await self._judge_and_tell(GradingAction.GRADE, answer.respondent_id, self._critique(answer), trace)

    async def grade_unless_on_record(self, answer: ResponseGeneration, trace: Trace) -> None:
        """Grade an answer unless a grade is recorded."""
        graded = judgement_id(CritiqueResult, answer.query_id, answer.respondent_id)
        if graded not in await self._judged(answer.query_id):
            await self.grade(answer, trace)

    async def _judged(self, query_id: str) -> set[str]:
        record = await messages_on_record(self.bus, query_id, (CritiqueResult, PairwiseResult), RECORD_SECONDS)
        return {envelope.id for _, envelope in record}

    async def skip(self, answer: ResponseGeneration, trace: Trace, reason: str, *, compare: bool) -> None:
        """Publish that an answer is not graded, and with `compare` not compared, unless a result was published
        before."""
        told: list[CritiqueResult | PairwiseResult] = [left_out(answer, reason)]
        if compare:
            told.append(not_compared(answer, reason))
        judged = await self._judged(answer.query_id)
        for result in told:
            if judgement_id(type(result), answer.query_id, answer.respondent_id) not in judged:
                machine = self._machine(answer.respondent_id, trace)
                machine.advance(GradingAction.SKIP)
                await self._publish(result, answer.respondent_id, trace, machine)
        self.skipped += 1

    async def compare_with_rival(self, answer: ResponseGeneration, trace: Trace) -> None:
        """Compare the second respondent's answer with the first one's, if there is one, unless that is on record."""
        record = await messages_on_record(self.bus, answer.query_id, _ON_RECORD, RECORD_SECONDS)
        rival = next((message for message, _ in record if _is_rival(message)), None)
        compared = judgement_id(PairwiseResult, answer.query_id, answer.respondent_id)
        if rival is not None and compared not in {envelope.id for _, envelope in record}:
            work = self._preference(rival, answer)
            await self._judge_and_tell(GradingAction.COMPARE, answer.respondent_id, work, trace)

    async def compare_texts(self, request: ComparisonRequest, trace: Trace) -> ComparisonResult:
        """Compare two texts for a model that asks."""
        pair = Pair(request.question, request.answer_a, request.answer_b)
        compare = self._judge.compare_now if request.respondent_id == MAIN_RESPONDENT else self._judge.compare
        machine = self._machine(NOBODY, trace)
        machine.advance(GradingAction.COMPARE)
        tested = None if self._fitness is None else self._fitness.known
        try:
            if tested is not None and not tested.is_fit:
                raise ModelError(f"{self._judge.name} cannot compare: its self-test {tested.in_words()}", kind=UNFIT)
            judge, outcome = await compare(pair, self._rubrics.knowledge)
            self.figures.count_outcome(outcome, pair)
            result = comparison(judge, outcome)
        except ModelError as error:
            self.failed += 1
            result = no_comparison(error.kind, str(error))
        machine.advance(GradingAction.JUDGED if result.error is None else GradingAction.FAIL)
        machine.advance(GradingAction.PUBLISHED)
        return result

    async def _judge_and_tell(
        self,
        begin: GradingAction,
        respondent: str,
        work: Coroutine[Any, Any, CritiqueResult | PairwiseResult],
        trace: Trace,
    ) -> None:
        machine = self._machine(respondent, trace)
        machine.advance(begin)
        result = await work
        machine.advance(_ENDS[result.status])
        failpoints.reach("critic.judged")
        await self._publish(result, respondent, trace, machine)

    async def _publish(
        self,
        result: CritiqueResult | PairwiseResult,
        respondent: str,
        trace: Trace,
        machine: Machine[GradingState, GradingAction],
    ) -> None:
        envelope_id = judgement_id(type(result), result.query_id, respondent)
        try:
            await self.bus.publish(result, trace, envelope_id=envelope_id, seconds=math.inf)
        except JournalFull as error:
            raise StoreFull(f"the judgement is postponed: {error}") from error
        failpoints.reach("critic.told")
        machine.advance(GradingAction.PUBLISHED)

    async def _critique(self, answer: ResponseGeneration) -> CritiqueResult:
        name, rubric = self._rubric(answer)
        end: Verdict | ModelError
        try:
            if (why := await self._why_unfit()) is not None:
                return unfit_critique(answer, name, self._judge.name, why)
            judge, end = await self._judge.grade(case_of(answer), rubric)
            self.figures.count_verdict(end)
        except ModelError as error:
            judge, end = self._judge.name, error
            self.failed += 1
        return critique(answer, name, judge, end)

    async def _preference(self, answer_a: ResponseGeneration, answer_b: ResponseGeneration) -> PairwiseResult:
        name, rubric = self._rubric(answer_a, answer_b)
        pair = pair_of(answer_a, answer_b)
        end: ComparisonOutcome | ModelError
        try:
            if (why := await self._why_unfit()) is not None:
                return unfit_comparison(answer_a, answer_b, name, self._judge.name, why)
            judge, end = await self._judge.compare(pair, rubric)
            self.figures.count_outcome(end, pair)
        except ModelError as error:
            judge, end = self._judge.name, error
            self.failed += 1
        return preference(answer_a, answer_b, name, judge, end)

    async def _why_unfit(self) -> str | None:
        """Why the judge's word does not count; None where it does. Raises `ModelError`."""
        if self._fitness is None:
            return None
        tested = await self._fitness.recorded()
        if tested is None:
            self.test.begin(self._fitness.checked)
        if tested is None or tested.is_fit:
            return None
        self.unfit += 1
        return f"{self._judge.name} does not grade: its self-test {tested.in_words()}"

    def _rubric(self, *answers: ResponseGeneration) -> tuple[str, Rubric]:
        return choose(self._rubrics, used_tools(answers, self.rubrics_of_tools))

    def _machine(self, respondent: str, trace: Trace) -> Machine[GradingState, GradingAction]:
        transitions = TransitionLog(
            lambda transition: self.bus.post(transition, trace),
            AGENT,
            trace.correlation_id,
            respondent,
            hold_seconds=HOLD_SECONDS,
        )
        return Machine(GRADING_TABLE, GradingState.IDLE, transitions.note)


def _is_rival(message: Message) -> TypeGuard[ResponseGeneration]:
    return (
        isinstance(message, ResponseGeneration)
        and message.respondent_id == MAIN_RESPONDENT
        and message.status == "answered"
    )


T = TypeVar("T")
log = logging.getLogger(__name__)

CONSUMER = "critic"
SECOND_RESPONDENT = "B"
ANSWERS_AT_ONCE = 64  # they wait for quiet together, and for the model one by one
COMPARISONS_AT_ONCE = 16  # more than those without a waiting user, which are in the model's queue meanwhile
COMPARISON_SECONDS = 120.0  # a user waits for it
HOUR = 3600.0


class CriticConfig(Settings):
    """The settings in `critic.yaml`, rubrics included; the comments there explain each key."""

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
        """Return the judgements that an answer will get, by their names in frontends."""
        return ", ".join(name for name, is_made in (("critique", self.grade), ("pairwise", self.compare)) if is_made)


class CriticAgent(Participant):
    """The participant that grades every answer from 1 to 5 and decides which of two respondents' answers is better. It
    never delays an answer.
    """

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
        """Build the critic with the model of the role critic, else the answering model. Raises `ConfigError`."""
        routing = resources.routing
        if routing is None:
            raise ConfigError("the critic needs a model server, and none is configured")
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
        # The stand-in counts words, and says so with each grade: a test of knowledge would mean nothing for it.
        fitness = None if is_stand_in else JudgeFitness(judge, resources.data_dir, lambda name: routing.locate(name)[1])
        return cls(config, judge, fitness)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Stand in line for the model, as one who can wait."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._judge.close)
            stack.callback(self._grader.test.stop)
            await stack.enter_async_context(self._judge.leases.are_open(self.bus))
            self._grader.bus = self.bus
            yield

    async def announce(self) -> None:
        """Ask for the tools' schemas: some name the rubric for answers that used them."""
        await self.bus.publish(ToolSchemaRequest())

    def hand_back(self) -> None:
        """Return the open judgements to the next process."""
        for work in list(self._work.values()):
            _cancel(work)

    def metrics(self) -> dict[str, int]:
        """Return the counts of judgements and failures since the start."""
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
        """Return the judge, its judgements (frontends wait for these), its reliability since the start, why its
        grades do not count (`grading_off`), and its present problem.
        """
        shares = {name: f"{share:.0%}" for name, share in self._grader.figures.shares().items() if share is not None}
        told = {"model": self._judge.name, "judges": self._settings.judges, **shares}
        tested = None if self._fitness is None else self._fitness.known
        is_off = tested is not None and not tested.is_fit
        more = {
            "self_test": tested.in_words() if tested else "",
            "grading_off": f"{self._judge.name} failed the self-test of judges" if is_off else "",
            "problem": self._judge.problem,
        }
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
        """Compare two texts for a model during a turn: immediately if it is a user's turn."""
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
        """Cancel the comparison of a turn that no longer waits for it."""
        _cancel(self._work.get(message.query_id, ()))

    @on(ToolSchema)
    async def learn(self, schema: ToolSchema, envelope: Envelope) -> None:
        """Store a tool's rubric, by which answers that used it are graded."""
        if self.may_publish(envelope, ToolResult.subject + schema.tool):
            self._grader.rubrics_of_tools[schema.tool] = schema.rubric

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """Return the error reply to a comparison request."""
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
        """Whether an answer cannot have been judged before: it was delivered after this process got its first
        delivery, and for the first time.

        Earlier processes received nothing from then on.
        """
        if self._serves_since is None:
            self._serves_since = time.time()
        return envelope.sent_at > self._serves_since and envelope.id not in self._begun

    async def _unless_stopped(self, query_id: str, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of the work. Raises `HandedBack` if it is stopped by `hand_back` or `cancel`."""
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
    """Return the configured profile, or the one that fits the model's name; else JSON by a schema."""
    if profile != "auto":
        return profile
    return next((found for word, found in MADE_FOR_JUDGING.items() if word in model.lower()), "generic-json")


def profile_for(profile: Literal["auto"] | ProfileName, model: str) -> Profile:
    """Return the profile of a judging model."""
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
