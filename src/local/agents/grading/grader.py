"""Grades and compares answers, and tells of it: once each, whatever dies in between."""

from __future__ import annotations

import math
from collections.abc import Coroutine
from enum import StrEnum
from typing import Any, Final, TypeGuard

from local import failpoints
from local.agents.grading.fitness import JudgeFitness
from local.agents.grading.judge import Judge
from local.agents.grading.judgements import (
    case_of,
    comparison,
    critique,
    judgement_id,
    left_out,
    no_comparison,
    not_compared,
    pair_of,
    preference,
    unfit_comparison,
    unfit_critique,
    used_tools,
)
from local.bus.bus import Bus
from local.errors import JournalFull, ModelError, StoreFull
from local.journal.client.record import messages_on_record
from local.protocol.envelope import Trace
from local.protocol.journal_messages import JournalRead
from local.protocol.judgement_messages import ComparisonRequest, ComparisonResult, CritiqueResult, PairwiseResult
from local.protocol.message import MAIN_RESPONDENT, Message
from local.protocol.messages import ResponseGeneration
from local.runtime.machine import Machine, Table, TransitionLog
from local.services.judging.figures import Figures
from local.services.judging.judgement import ComparisonOutcome, Verdict
from local.services.judging.prompt import Pair
from local.services.judging.rubric import Rubric, Rubrics, choose

AGENT = "CriticAgent"
UNFIT = "judge_unfit"
NOBODY = ""  # about whom a comparison is that a model asked for
RECORD_SECONDS = 5.0
HOLD_SECONDS = 0.1  # a judge that takes longer is seen at work
_ON_RECORD: tuple[type[ResponseGeneration | CritiqueResult | PairwiseResult], ...] = (
    ResponseGeneration,
    CritiqueResult,
    PairwiseResult,
)


class GradingState(StrEnum):
    """What a critic is doing about an answer."""

    IDLE = "IDLE"
    GRADING = "GRADING"
    COMPARING = "COMPARING"
    PUBLISHING = "PUBLISHING"


class GradingAction(StrEnum):
    """What can happen to it."""

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
    """Has the judge's word on answers and publishes it. `figures` count it, `failed` where the judge could not be
    asked, `unfit` what a judge was not asked that has failed its self-test (`fitness`; without one every judge counts),
    `skipped` what was left out of a long line; `rubrics_of_tools` are those that tools ask for, by their names.
    `bus` is set before anything is judged."""

    bus: Bus
    publishes = (CritiqueResult, PairwiseResult, TransitionLog, JournalRead)

    def __init__(self, judge: Judge, rubrics: Rubrics, fitness: JudgeFitness | None = None) -> None:
        self._judge, self._rubrics, self._fitness = judge, rubrics, fitness
        self.figures, self.failed, self.skipped, self.unfit = Figures(), 0, 0, 0
        self.rubrics_of_tools: dict[str, str] = {}

    async def grade(self, answer: ResponseGeneration, trace: Trace) -> None:
        """Grade an answer that nobody has graded."""
        await self._judge_and_tell(GradingAction.GRADE, answer.respondent_id, self._critique(answer), trace)

    async def grade_unless_on_record(self, answer: ResponseGeneration, trace: Trace) -> None:
        """Grade an answer that perhaps somebody has graded."""
        graded = judgement_id(CritiqueResult, answer.query_id, answer.respondent_id)
        if graded not in await self._judged(answer.query_id):
            await self.grade(answer, trace)

    async def _judged(self, query_id: str) -> set[str]:
        record = await messages_on_record(self.bus, query_id, (CritiqueResult, PairwiseResult), RECORD_SECONDS)
        return {envelope.id for _, envelope in record}

    async def skip(self, answer: ResponseGeneration, trace: Trace, reason: str, *, compare: bool) -> None:
        """Tell that an answer is not graded, and with `compare` not compared, unless somebody has done so before."""
        told: list[CritiqueResult | PairwiseResult] = [left_out(answer, reason)]
        if compare:
            told.append(not_compared(answer, reason))
        judged = await self._judged(answer.query_id)
        for result in told:
            if judgement_id(type(result), answer.query_id, answer.respondent_id) not in judged:
                machine = self._machine(answer.respondent_id, trace)
                machine.advance(GradingAction.SKIP)
                await self._tell(result, answer.respondent_id, trace, machine)
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
        """Which of two texts is better, for a model that asks."""
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
        await self._tell(result, respondent, trace, machine)

    async def _tell(
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
            raise StoreFull(f"the judgement has to wait: {error}") from error
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
        tested = None if self._fitness is None else await self._fitness.checked()
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
