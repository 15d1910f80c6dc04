"""The agent that reads every answer: grades it, and compares it with the one of a second respondent."""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self, TypeGuard, TypeVar

from local import failpoints
from local.agents.grading.case_file import case_of, pair_of, used_tools
from local.agents.grading.config import CriticConfig, profile_of
from local.agents.grading.judge import Judge
from local.agents.grading.table import TABLE, Action, State
from local.agents.grading.verdicts import comparison, critique, judgement_id, no_comparison, preference
from local.agents.leases import Leases
from local.errors import ConfigError, HandedBack, JournalFull, ModelError, StoreFull
from local.journal.client.record import messages_on_record
from local.models.backends import connect
from local.protocol.envelope import Envelope, Trace
from local.protocol.judgement_messages import ComparisonRequest, ComparisonResult, CritiqueResult, PairwiseResult
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import (
    AgentTransition,
    Message,
    QueryCancel,
    ResponseGeneration,
    ToolSchema,
    ToolSchemaRequest,
)
from local.runtime.machine import Machine
from local.runtime.participant import Kind, Participant, Resources, on
from local.services.judging.figures import Figures
from local.services.judging.judgement import ComparisonOutcome, Verdict
from local.services.judging.profiles import PROFILES
from local.services.judging.prompt import Pair
from local.services.judging.rubric import Rubric, choose

T = TypeVar("T")

AGENT = "CriticAgent"
CONSUMER = "critic"
SECOND_RESPONDENT = "B"
NOBODY = ""  # about whom a comparison is that a model asked for
ANSWERS_AT_ONCE = 16  # of different sessions; they wait for the model one by one
COMPARISONS_AT_ONCE = 16  # more than those that nobody waits for, which stay in line for the model meanwhile
COMPARISON_SECONDS = 120.0  # a user waits for it
RECORD_SECONDS = 5.0
HOUR = 3600.0
_ON_RECORD: tuple[type[ResponseGeneration | CritiqueResult | PairwiseResult], ...] = (
    ResponseGeneration,
    CritiqueResult,
    PairwiseResult,
)
_ENDS = {"graded": Action.JUDGED, "unparsed": Action.UNPARSED, "failed": Action.FAIL}


class CriticAgent(Participant):
    """Grades every answer from 1 to 5, and says which of two respondents' answers is better. It delays nobody."""

    name = "critic"
    kind = Kind.AGENT
    Config = CriticConfig

    def __init__(self, config: CriticConfig, judge: Judge) -> None:
        super().__init__(config)
        self._settings, self._judge = config, judge
        self._rubrics_of_tools: dict[str, str] = {}
        self._figures, self._failed, self._left_alone = Figures(), 0, 0
        self._work: defaultdict[str, set[asyncio.Task[Any]]] = defaultdict(set)  # by the query that waits for it, or ""

    @classmethod
    def build(cls, config: CriticConfig, resources: Resources) -> Self:
        """With the model of the role critic, else the one that answers. Raises `ConfigError`."""
        routing = resources.routing
        if routing is None:
            raise ConfigError("the critic needs a model server, and none is known here")
        name = routing.first("critic", config.model or routing.first("chat", resources.chat_model))
        judge = Judge(
            connect(routing, timeout_seconds=config.timeout_seconds),
            name,
            PROFILES[profile_of(config.profile, name)],
            num_ctx=config.num_ctx or resources.chat_num_ctx,
            leases=Leases(lambda model: routing.locate(model)[0]),
            # It goes by any model's name, but users shall know it.
            signs_as="stand-in" if resources.model_backend == "stand_in" else None,
        )
        return cls(config, judge)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Stand in line for the model, as one who can wait."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._judge.close)
            await stack.enter_async_context(self._judge.leases.are_open(self.bus))
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
            "answers_graded": self._figures.graded,
            "answers_compared": self._figures.comparisons,
            "judgements_unparsed": self._figures.unparsed,
            "judgements_failed": self._failed,
            "old_answers_left_alone": self._left_alone,
        }

    def details(self) -> dict[str, str]:
        """Who judges, what (doors wait for that), how reliably since the start, and what is wrong with it now."""
        shares = {name: f"{share:.0%}" for name, share in self._figures.shares().items() if share is not None}
        told = {"model": self._judge.name, "judges": self._settings.judges, **shares}
        problem = self._judge.patience.problem
        return {**told, **({"problem": problem} if problem else {})}

    @on(ResponseGeneration, durable=CONSUMER, concurrency=ANSWERS_AT_ONCE)
    async def receive(self, answer: ResponseGeneration, envelope: Envelope) -> None:
        """An answer, until all there is to judge is judged; where nothing is to be left behind, nothing is.

        An old one is left alone: who starts with a long record is not to have all of it judged at once.
        """
        if answer.status != "answered" or answer.incognito:
            return
        if time.time() - envelope.sent_at > self._settings.grade_within_hours * HOUR:
            self._left_alone += 1
        else:
            await self._unless_stopped("", self._judge_answer(answer, envelope.trace()))

    @on(ComparisonRequest, concurrency=COMPARISONS_AT_ONCE)
    async def compare(self, request: ComparisonRequest, envelope: Envelope) -> ComparisonResult:
        """A model in the middle of a turn wants two texts compared: at once if it is a user's turn."""
        try:
            async with asyncio.timeout(COMPARISON_SECONDS):
                return await self._unless_stopped(
                    envelope.correlation_id, self._compare_texts(request, envelope.trace())
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
        self._rubrics_of_tools[schema.tool] = schema.rubric

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """What is told to a model that wanted two texts compared."""
        if isinstance(message, ComparisonRequest):
            return no_comparison(getattr(error, "kind", "internal"), str(error) or type(error).__name__)
        return None

    async def _judge_answer(self, answer: ResponseGeneration, trace: Trace) -> None:
        respondent = answer.respondent_id
        record = await messages_on_record(self.bus, answer.query_id, _ON_RECORD, RECORD_SECONDS)
        ids = {envelope.id for _, envelope in record}
        if self._settings.grade and judgement_id(CritiqueResult, answer.query_id, respondent) not in ids:
            await self._judge_and_tell(Action.GRADE, respondent, self._grade(answer), trace)
        if not self._settings.compare or respondent != SECOND_RESPONDENT:
            return
        rival = next((message for message, _ in record if _is_rival(message)), None)
        if rival is not None and judgement_id(PairwiseResult, answer.query_id, respondent) not in ids:
            await self._judge_and_tell(Action.COMPARE, respondent, self._prefer(rival, answer), trace)

    async def _judge_and_tell(
        self, begin: Action, respondent: str, work: Coroutine[Any, Any, CritiqueResult | PairwiseResult], trace: Trace
    ) -> None:
        machine = self._machine(respondent, trace)
        machine.advance(begin)
        result = await work
        machine.advance(_ENDS[result.status])
        failpoints.reach("critic.judged")
        envelope_id = judgement_id(type(result), result.query_id, respondent)
        try:
            await self.bus.publish(result, trace, envelope_id=envelope_id, seconds=math.inf)
        except JournalFull as error:
            raise StoreFull(f"the judgement has to wait: {error}") from error
        failpoints.reach("critic.told")
        machine.advance(Action.PUBLISHED)

    async def _grade(self, answer: ResponseGeneration) -> CritiqueResult:
        name, rubric = self._rubric(answer)
        end: Verdict | ModelError
        try:
            judge, end = await self._judge.grade(case_of(answer), rubric)
            self._figures.count_verdict(end)
        except ModelError as error:
            judge, end = self._judge.name, error
            self._failed += 1
        return critique(answer, name, judge, end)

    async def _prefer(self, answer_a: ResponseGeneration, answer_b: ResponseGeneration) -> PairwiseResult:
        name, rubric = self._rubric(answer_a, answer_b)
        pair = pair_of(answer_a, answer_b)
        end: ComparisonOutcome | ModelError
        try:
            judge, end = await self._judge.compare(pair, rubric)
            self._figures.count_outcome(end, pair)
        except ModelError as error:
            judge, end = self._judge.name, error
            self._failed += 1
        return preference(answer_a, answer_b, name, judge, end)

    async def _compare_texts(self, request: ComparisonRequest, trace: Trace) -> ComparisonResult:
        pair = Pair(request.question, request.answer_a, request.answer_b)
        compare = self._judge.compare_now if request.respondent_id == MAIN_RESPONDENT else self._judge.compare
        machine = self._machine(NOBODY, trace)
        machine.advance(Action.COMPARE)
        try:
            judge, outcome = await compare(pair, self._settings.rubrics.knowledge)
            self._figures.count_outcome(outcome, pair)
            result = comparison(judge, outcome)
        except ModelError as error:
            self._failed += 1
            result = no_comparison(error.kind, str(error))
        machine.advance(Action.JUDGED if result.error is None else Action.FAIL)
        machine.advance(Action.PUBLISHED)
        return result

    def _rubric(self, *answers: ResponseGeneration) -> tuple[str, Rubric]:
        return choose(self._settings.rubrics, used_tools(answers, self._rubrics_of_tools))

    def _machine(self, respondent: str, trace: Trace) -> Machine[State, Action]:
        def tell(before: State, action: Action, after: State) -> None:
            transition = AgentTransition(
                agent=AGENT,
                query_id=trace.correlation_id,
                respondent_id=respondent,
                from_state=before,
                action=action,
                to_state=after,
            )
            self.bus.post(transition, trace)

        return Machine(TABLE, State.IDLE, tell)

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


def _is_rival(message: Message) -> TypeGuard[ResponseGeneration]:
    return (
        isinstance(message, ResponseGeneration)
        and message.respondent_id == MAIN_RESPONDENT
        and message.status == "answered"
    )


def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    for task in list(tasks):
        task.cancel()
