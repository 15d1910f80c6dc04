"""A model that judges answers: asked in the background or for a user who waits, until a reply can be read."""

from __future__ import annotations

import asyncio
import logging
import math
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Generic, Literal, Self, TypeVar

from local.bus.message import ErrorInfo, Message
from local.bus.messages import ResponseGeneration, ToolCallRecord
from local.core.errors import IllegalTransition, ModelBusy, ModelError
from local.core.excerpts import excerpt
from local.core.routing import Routing
from local.critic.judging import Case, Evidence, JudgePrompt, Pair, Profile, Reading, Rubric, UsedTool
from local.critic.messages import ComparisonResult, CritiqueResult, PairwiseResult
from local.critic.prompts import GenericJson, Prometheus2, Selene, bare_score, plain
from local.models.chat import ChatModel, ContentDelta, Done, ErrorClass, RestartDelta, TokenScore, TokenScores, classify
from local.models.lease_messages import JUDGE_TEST
from local.models.leases import Leases
from local.models.ollama import LoadedModel, OllamaModel
from local.models.settings import is_loopback, is_made_for_judging

# The grading of one answer, or the comparison of two: the next request to the judge, and in the end the verdict. No
# I/O.

T = TypeVar("T")

TEMPERATURES = (0.0, 0.4, 0.8)  # one for each time of asking: the same question would get the same reply


class JudgingStatus(StrEnum):
    """The outcome of a judgement."""

    GRADED = "graded"
    UNPARSED = "unparsed"  # no reply stated the judge's decision in the agreed form; there is no score


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """A question for the judge; `attempt` counts from 1."""

    prompt: JudgePrompt
    temperature: float
    attempt: int


class JudgeQuestion(Generic[T]):
    """One question to a judge, repeated until a reply can be read: `ask` is the next request, None at the end;
    `receive` takes the reply. `reading` is None until a reply could be read.
    """

    def __init__(self, prompt: JudgePrompt, read: Callable[[str], Reading[T] | None]) -> None:
        self._prompt = prompt
        self._read = read
        self.replies = 0
        self.last_reply = ""
        self.reading: Reading[T] | None = None

    @property
    def ask(self) -> JudgeRequest | None:
        """The question in the form it is to be asked next; None when it was answered, or asked often enough."""
        if self.reading is not None or self.replies == len(TEMPERATURES):
            return None
        return JudgeRequest(self._prompt, TEMPERATURES[self.replies], self.replies + 1)

    @property
    def unread(self) -> int:
        """The number of unreadable replies."""
        return self.replies - (self.reading is not None)

    def receive(self, generated: str) -> None:
        """Receive the judge's reply: the generated text without the prompt. `IllegalTransition` if nothing was
        asked."""
        if self.ask is None:
            raise IllegalTransition("done", "hear")
        self.replies += 1
        self.last_reply = generated
        self.reading = self._read(generated)


MIN_MASS = 0.5  # of the probability that must be on the valid choices, or the place is not the decision


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token, with the log probabilities of its alternatives."""

    text: str
    alternatives: Mapping[str, float]


def expected_score(tokens: Sequence[Token], generated: str, at: int | None) -> float | None:
    """Σ n·p(n) / Σ p(n) over the scores n from 1 to 5 (G-Eval, Liu et al. 2023), at the token that wrote the score.

    `at` is that score's place in `generated`. None where the tokens are not those of the text, where the score shares
    its token with other characters than blanks, or where less than half of the probability is on scores.
    """
    masses = _masses(tokens, generated, at, "12345")
    return None if masses is None else math.fsum(int(score) * mass for score, mass in masses.items())


def preference(tokens: Sequence[Token], generated: str, at: int | None) -> float | None:
    """Return the probability that the judge names A and not B, at the token that wrote the letter; None as above."""
    masses = _masses(tokens, generated, at, "AB")
    return None if masses is None else masses["A"]


def _masses(tokens: Sequence[Token], generated: str, at: int | None, symbols: str) -> dict[str, float] | None:
    """The probabilities of the symbols at a place of the reply, among themselves."""
    if at is None or "".join(token.text for token in tokens) != generated:
        return None
    token = _token_at(tokens, at)
    if token is None or token.text.strip() != generated[at]:
        return None
    weights = dict.fromkeys(symbols, 0.0)
    for text, logarithm in token.alternatives.items():
        if (symbol := plain(text).strip().upper()) in weights and logarithm <= 0:
            weights[symbol] += math.exp(logarithm)
    mass = math.fsum(weights.values())
    return {symbol: weight / mass for symbol, weight in weights.items()} if mass >= MIN_MASS else None


def _token_at(tokens: Sequence[Token], at: int) -> Token | None:
    end = 0
    for token in tokens:
        end += len(token.text)
        if at < end:
            return token
    return None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judge's verdict on one answer.

    `score` is the integer from 1 to 5 that the judge wrote, None if `status` is unparsed; `expected` is the mean over
    the probabilities of the scores, where they are known. `feedback` is the judge's explanation, or the whole last
    reply if unparsed; `replies` counts the replies, `unread` those that could not be read.
    """

    status: JudgingStatus
    score: int | None
    expected: float | None
    feedback: str
    replies: int
    unread: int


class Grading:
    """The grading of one answer: `ask` is the next request, `receive` takes the reply; when `ask` is None, `verdict` is
    set.
    """

    def __init__(self, profile: Profile, case: Case, rubric: Rubric) -> None:
        prompt = profile.absolute(case, rubric)
        self._question = JudgeQuestion(prompt, lambda text: profile.read_score(text) or bare_score(text, prompt.user))
        self._expected: float | None = None

    @property
    def ask(self) -> JudgeRequest | None:
        """The next request; None at the end."""
        return self._question.ask

    def receive(self, generated: str, tokens: Sequence[Token] = ()) -> None:
        """Receive the reply, and its tokens if the backend reports their probabilities."""
        self._question.receive(generated)
        if self._question.reading is not None:
            self._expected = expected_score(tokens, generated, self._question.reading.at)

    @property
    def verdict(self) -> Verdict | None:
        """The end of it; None while there is something to ask."""
        if self.ask is not None:
            return None
        reading, counts = self._question.reading, (self._question.replies, self._question.unread)
        if reading is None:
            return Verdict(JudgingStatus.UNPARSED, None, None, self._question.last_reply.strip(), *counts)
        return Verdict(JudgingStatus.GRADED, reading.value, self._expected, reading.feedback, *counts)


class Winner(StrEnum):
    """The winner of a comparison."""

    A = "A"
    B = "B"
    TIE = "tie"


@dataclass(frozen=True, slots=True)
class ComparisonOutcome:
    """The outcome of a comparison of two answers. If `status` is unparsed, `winner` and `order_consistent` are None:
    one order had no verdict.

    `order_consistent` says whether the judge preferred the same answer in both orders; if not, it is a tie, unless the
    probabilities are known: `preferred` is that of A, the mean over both orders, and decides then. `feedback` is the
    judge's text in the order A, B.
    """

    status: JudgingStatus
    winner: Winner | None
    order_consistent: bool | None
    feedback: str
    replies: int  # in both orders together
    unread: int
    preferred: float | None = None


MARGIN = 0.1  # from one half: a smaller distance is a tie


class Comparison:
    """The comparison of two answers in both orders: `ask` is the next request, `receive` takes the reply; when `ask` is
    None, `outcome` is set.
    """

    def __init__(self, profile: Profile, pair: Pair, rubric: Rubric) -> None:
        self._forward = JudgeQuestion(profile.relative(pair, rubric), profile.read_winner)
        self._backward = JudgeQuestion(profile.relative(pair.swapped(), rubric), profile.read_winner)
        self._preferences: list[float | None] = []  # for the answer that came first

    @property
    def ask(self) -> JudgeRequest | None:
        """Return the next request; None at the end, which is reached early if one order has no verdict."""
        return self._current.ask

    def receive(self, generated: str, tokens: Sequence[Token] = ()) -> None:
        """Receive the reply to the last request, and its tokens if the backend reports their probabilities."""
        question = self._current
        question.receive(generated)
        if question.reading is not None:
            self._preferences.append(preference(tokens, generated, question.reading.at))

    @property
    def outcome(self) -> ComparisonOutcome | None:
        """The end of it; None while there is something to ask."""
        if self.ask is not None:
            return None
        first, second = self._forward.reading, self._backward.reading
        asked = (self._forward, self._backward)
        counts = (sum(question.replies for question in asked), sum(question.unread for question in asked))
        if first is None or second is None:
            return ComparisonOutcome(JudgingStatus.UNPARSED, None, None, self._current.last_reply.strip(), *counts)
        consistent = first.value != second.value  # the same letter in both orders is the other answer
        preferred = self._preference()
        by_letter = Winner(first.value) if consistent else Winner.TIE
        winner = by_letter if preferred is None else _winner(preferred)
        return ComparisonOutcome(JudgingStatus.GRADED, winner, consistent, first.feedback, *counts, preferred)

    def _preference(self) -> float | None:
        """Return the mean over both orders, in which a preference for the first or the second place cancels out."""
        forward, backward = self._preferences
        return None if forward is None or backward is None else (forward + 1 - backward) / 2

    @property
    def _current(self) -> JudgeQuestion[str]:
        return self._forward if self._forward.reading is None else self._backward


def _winner(preferred: float) -> Winner:
    if abs(preferred - 0.5) < MARGIN:
        return Winner.TIE
    return Winner.A if preferred > 0.5 else Winner.B


# From answers to the judge's cases, and from its verdicts or failures to messages. No I/O.

C = TypeVar("C", Case, Pair)

_NAMESPACE = uuid.UUID("b7c0a5de-1c8b-4b3f-9a4e-52f8c7d1e6a3")
LEAST_CHARACTERS = 400  # of a tool's result; less of it proves nothing


def used_tools(answers: Iterable[ResponseGeneration], rubrics: Mapping[str, str]) -> list[UsedTool]:
    """The tools that these answers were written with; `rubrics` are those that tools ask for, by the tools' names."""
    return [UsedTool(call.tool, rubrics.get(call.tool, "")) for answer in answers for call in answer.tool_calls]


def case_of(answer: ResponseGeneration) -> Case:
    """Return one answer with the results of its tools."""
    return Case(answer.query, answer.answer, _evidence([answer]))


def pair_of(answer_a: ResponseGeneration, answer_b: ResponseGeneration) -> Pair:
    """Return two answers to one query with the results of the tools of either, each once."""
    return Pair(answer_a.query, answer_a.answer, answer_b.answer, _evidence([answer_a, answer_b]))


def shortened(case: C, room: int) -> C:
    """The case in about `room` characters: half of them for the answers, a quarter for the query, the rest for the
    evidence. Long results keep the parts that have most to do with query and answers."""
    query = excerpt(case.query, "", room // 4)
    whole = (
        {"answer": case.answer} if isinstance(case, Case) else {"answer_a": case.answer_a, "answer_b": case.answer_b}
    )
    answers: dict[str, Any] = {name: excerpt(text, query, room // 2 // len(whole)) for name, text in whole.items()}
    left = room - len(query) - sum(map(len, answers.values()))
    evidence = _fitting(case.evidence, " ".join([query, *answers.values()]), left)
    return replace(case, query=query, evidence=evidence, **answers)


def judgement_id(kind: type[Message], query_id: str, respondent_id: str) -> str:
    """The id of the envelope with a judgement: always the same, so that publishing it twice is one judgement."""
    return uuid.uuid5(_NAMESPACE, f"{query_id}\n{respondent_id}\n{kind.subject}").hex


def critique(answer: ResponseGeneration, rubric: str, judge: str, end: Verdict | ModelError) -> CritiqueResult:
    """The grade of an answer, by the model `judge`."""
    common = {"respondent_id": answer.respondent_id, **_common([answer], rubric, judge)}
    if isinstance(end, ModelError):
        return CritiqueResult(score=None, status="failed", feedback=str(end), **common)
    return CritiqueResult(
        score=end.score, expected=end.expected, status=end.status.value, feedback=end.feedback, **common
    )


def unfit_critique(answer: ResponseGeneration, rubric: str, judge: str, why: str) -> CritiqueResult:
    """Return the message that the judge of an answer has failed its self-test."""
    common = {"respondent_id": answer.respondent_id, **_common([answer], rubric, judge)}
    return CritiqueResult(score=None, status="judge_unfit", feedback=why, **common)


def unfit_comparison(
    answer_a: ResponseGeneration, answer_b: ResponseGeneration, rubric: str, judge: str, why: str
) -> PairwiseResult:
    """Return the message that the judge of two answers has failed its self-test."""
    common = _common([answer_a, answer_b], rubric, judge)
    return PairwiseResult(winner=None, status="judge_unfit", feedback=why, **common)


def left_out(answer: ResponseGeneration, reason: str) -> CritiqueResult:
    """Return the message that an answer is not graded, and why."""
    of = {"query_id": answer.query_id, "respondent_id": answer.respondent_id, "session_id": answer.session_id}
    return CritiqueResult(score=None, status="skipped", feedback=reason, **of)


def not_compared(answer: ResponseGeneration, reason: str) -> PairwiseResult:
    """Return the message that an answer is not compared with its rival, and why."""
    of = {"query_id": answer.query_id, "session_id": answer.session_id}
    return PairwiseResult(winner=None, status="skipped", feedback=reason, **of)


def preference_of(
    answer_a: ResponseGeneration,
    answer_b: ResponseGeneration,
    rubric: str,
    judge: str,
    end: ComparisonOutcome | ModelError,
) -> PairwiseResult:
    """Compare two respondents' answers with the model `judge`."""
    common = _common([answer_a, answer_b], rubric, judge)
    if isinstance(end, ModelError):
        return PairwiseResult(winner=None, status="failed", feedback=str(end), **common)
    return PairwiseResult(
        winner=None if end.winner is None else end.winner.value,
        order_consistent=end.order_consistent,
        preferred=end.preferred,
        status=end.status.value,
        feedback=end.feedback,
        **common,
    )


def comparison(judge: str, outcome: ComparisonOutcome) -> ComparisonResult:
    """Return the comparison for the model that requested it."""
    if outcome.winner is None:
        text = "the critic's reply could not be read"
        return ComparisonResult(judge=judge, error=ErrorInfo(kind=JudgingStatus.UNPARSED.value, message=text))
    return ComparisonResult(
        winner=outcome.winner.value, order_consistent=outcome.order_consistent, feedback=outcome.feedback, judge=judge
    )


def no_comparison(kind: str, message: str) -> ComparisonResult:
    """Return the answer to a comparison request that failed."""
    return ComparisonResult(error=ErrorInfo(kind=kind, message=message))


def is_same_model(one: str, other: str) -> bool:
    """Whether two names mean one model; Ollama reads a name without a tag as `:latest`."""
    return bool(one) and one.removesuffix(":latest") == other.removesuffix(":latest")


def _fitting(evidence: Sequence[Evidence], topic: str, room: int) -> tuple[Evidence, ...]:
    """Return as many as can be shown in part, the short ones whole."""
    kept = list(evidence[: max(1, room // LEAST_CHARACTERS)])
    limits: dict[int, int] = {}
    for place, index in enumerate(sorted(range(len(kept)), key=lambda index: len(kept[index].text))):
        limits[index] = max(LEAST_CHARACTERS, room // (len(kept) - place))
        room -= min(limits[index], len(kept[index].text))
    return tuple(replace(one, text=excerpt(one.text, topic, limits[index])) for index, one in enumerate(kept))


def _evidence(answers: Iterable[ResponseGeneration]) -> tuple[Evidence, ...]:
    found = (Evidence(call.tool, _returned(call)) for answer in answers for call in answer.tool_calls)
    return tuple(dict.fromkeys(found))


def _returned(call: ToolCallRecord) -> str:
    if call.error is not None:
        return f"nothing; it failed: {call.error.message}"
    return call.result or ""


def _common(answers: list[ResponseGeneration], rubric: str, judge: str) -> dict[str, Any]:
    self_judged = any(is_same_model(judge, answer.model) for answer in answers)
    of_query = {"query_id": answers[0].query_id, "session_id": answers[0].session_id}
    return {**of_query, "rubric": rubric, "judge": judge, "self_judged": self_judged}


log = logging.getLogger(__name__)

PURPOSE = "critic"
MOST_CHARACTERS = 16_000  # put before the judge at once; it reads them for each answer, while others wait
REPLY_TOKENS = 1024  # feedback and verdict; a judge that has not stated it by then never will
TEST_REPLY_TOKENS = 200  # in the self-test, of a judge that replies in JSON; its questions are short
WAITS = (5.0, 30.0)  # seconds before the second and the third time; the router has retried each time, too
PAUSE_SECONDS = 300.0  # where only a person can help, such as for a model that is not there
SHORT_PAUSE_SECONDS = 60.0
# Failures due to one request: other answers may be judged all the same.
_OF_THE_REQUEST = frozenset({"bad_request", "bad_call", "filtered", "context_overflow"})


class JudgeAway(ModelError):
    """The error for a judge whose model has failed and is not asked for a while."""


class CircuitBreaker:
    """A circuit breaker for the judge's model: it decides after each failure whether the model is asked again or left
    alone.

    Times are seconds of one monotonic clock that the caller reads. `problem` is the present problem, if any.
    """

    def __init__(self) -> None:
        self.problem = ""
        self._kind = ""
        self._until = float("-inf")

    def check(self, now: float) -> None:
        """Raises `JudgeAway` while the model is to be left alone."""
        if now < self._until:
            raise JudgeAway(f"the judge was not asked because it has just failed: {self.problem}", kind=self._kind)

    def after(self, error: ModelError, failures: int, now: float) -> float | None:
        """Return the seconds to wait after so many consecutive failures at one question before the model is asked
        again; None if it is not.
        """
        if error.kind in _OF_THE_REQUEST:
            return None
        is_permanent = classify(error) is ErrorClass.PERMANENT
        if not is_permanent and failures <= len(WAITS):
            wish = error.retry_after if isinstance(error, ModelBusy) else None
            return max(WAITS[failures - 1], wish or 0.0)
        seconds = PAUSE_SECONDS if is_permanent else SHORT_PAUSE_SECONDS
        if self.problem != str(error):  # logged once, however many answers are in flight
            log.error("judging is suspended; next try in %g s: %s", seconds, error)
        self.problem, self._kind, self._until = str(error), error.kind, now + seconds
        return None

    def answered(self) -> None:
        """Note an answer of the model, which ends the problem."""
        if self.problem:
            log.info("the judge answers again")
        self.problem, self._until = "", float("-inf")


@dataclass(frozen=True, slots=True)
class _Reply:
    text: str
    tokens: tuple[Token, ...]
    model: str


@dataclass(frozen=True, slots=True)
class Successor:
    """A model that replaces another as the judge, and how it is asked."""

    name: str
    profile: Profile
    num_ctx: int


_Calling = Callable[[JudgeRequest], Coroutine[Any, Any, _Reply]]


class Judge:
    """The model `name` as a judge of answers, asked by `profile`. `signs_as` is its name for people, if that differs.

    `successor` returns the replacement, if any, from the first grade or comparison in the background on. It raises
    only `ModelError`, and then there is no verdict.
    """

    def __init__(
        self,
        model: ChatModel,
        name: str,
        profile: Profile,
        *,
        num_ctx: int,
        leases: Leases | None = None,
        signs_as: str | None = None,
        successor: Callable[[], Awaitable[Successor | None]] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.leases = leases or Leases()
        self._breaker = CircuitBreaker()
        self._model, self._model_name, self._profile = model, name, profile
        self._signs_as, self._successor, self._settling = signs_as, successor, asyncio.Lock()
        self._settle_at = float("-inf")
        self._asking: set[asyncio.Task[Any] | None] = set()
        self._set_limits(num_ctx)
        self._clock, self._sleep = clock, sleep

    @property
    def name(self) -> str:
        """The judge's name for people."""
        return self._signs_as or self._model_name

    @property
    def identity(self) -> tuple[str, str]:
        """The model that judges now, and the kind of prompts that it is asked with."""
        return self._model_name, type(self._profile).__name__

    @property
    def problem(self) -> str:
        """The present problem, if any."""
        return self._breaker.problem

    def is_asked_by(self, task: asyncio.Task[Any]) -> bool:
        """Whether the model works on this task at this moment."""
        return task in self._asking

    async def test_score(self, case: Case, rubric: Rubric) -> float | None:
        """The score of one answer of the self-test, by the first reply alone; None if that could not be read."""
        grading = Grading(self._profile, case, rubric)
        if (ask := grading.ask) is not None:
            reply = await self._in_background(ask, JUDGE_TEST)
            grading.receive(reply.text, reply.tokens)
        verdict = grading.verdict
        if verdict is None or verdict.score is None:
            return None
        return verdict.score if verdict.expected is None else verdict.expected

    async def test_winner(self, pair: Pair, rubric: Rubric) -> Winner | None:
        """Which of two answers of the self-test is better, by one reply for each order; None if one was unreadable."""
        comparison = Comparison(self._profile, pair, rubric)
        for _ in range(2):
            if (ask := comparison.ask) is not None:
                reply = await self._in_background(ask, JUDGE_TEST)
                comparison.receive(reply.text, reply.tokens)
        return None if comparison.outcome is None else comparison.outcome.winner

    async def grade(self, case: Case, rubric: Rubric) -> tuple[str, Verdict]:
        """Return the score of one answer, whenever the model has time for it, and the name of the model that
        gave it.
        """
        await self.settle()
        return await self._fitting(lambda room: self._grade(shortened(case, room), rubric))

    async def compare(self, pair: Pair, rubric: Rubric) -> tuple[str, ComparisonOutcome]:
        """Compare two answers in the same way."""
        await self.settle()
        return await self._fitting(lambda room: self._compare(shortened(pair, room), rubric, self._in_background))

    async def compare_now(self, pair: Pair, rubric: Rubric) -> tuple[str, ComparisonOutcome]:
        """Return which of two answers is better, for a user whose turn waits: as a part of that turn it waits for no
        other.
        """
        with self.leases.users_turn(self._model_name):
            return await self._fitting(lambda room: self._compare(shortened(pair, room), rubric, self._call))

    async def close(self) -> None:
        """Close every connection."""
        await self._model.close()

    async def settle(self) -> None:
        """Let the successor of this judge take over, if there is one; checked once a minute until that is known,
        because it takes as long as a short reply.
        """
        async with self._settling:
            if self._successor is None or self._clock() < self._settle_at:
                return
            try:
                found = await self._successor()
            except ModelError as error:
                log.info("%s judges for now: %s", self.name, error)
                self._settle_at = self._clock() + SHORT_PAUSE_SECONDS
                return
            self._successor = None
            if found is not None:
                self._model_name, self._profile = found.name, found.profile
                self._set_limits(found.num_ctx)

    def _set_limits(self, num_ctx: int) -> None:
        self._options = {"num_ctx": num_ctx, "num_predict": REPLY_TOKENS}
        room = min(MOST_CHARACTERS, 2 * num_ctx)
        self._rooms = (room, room // 4)  # the second where a script has more tokens than we thought

    async def _grade(self, case: Case, rubric: Rubric) -> tuple[str, Verdict]:
        grading, judge = Grading(self._profile, case, rubric), self.name
        while (ask := grading.ask) is not None:
            reply = await self._in_background(ask)
            grading.receive(reply.text, reply.tokens)
            judge = reply.model
        assert grading.verdict is not None
        return judge, grading.verdict

    async def _compare(self, pair: Pair, rubric: Rubric, call: _Calling) -> tuple[str, ComparisonOutcome]:
        comparison, judge = Comparison(self._profile, pair, rubric), self.name
        while (ask := comparison.ask) is not None:
            reply = await call(ask)
            comparison.receive(reply.text, reply.tokens)
            judge = reply.model
        assert comparison.outcome is not None
        return judge, comparison.outcome

    async def _fitting(self, judge: Callable[[int], Awaitable[T]]) -> T:
        room, less = self._rooms
        try:
            return await judge(room)
        except ModelError as error:
            if error.kind != "context_overflow":
                raise
        return await judge(less)

    async def _in_background(self, ask: JudgeRequest, purpose: str = PURPOSE) -> _Reply:
        failures, asking = 0, asyncio.current_task()

        async def call() -> _Reply:
            self._asking.add(asking)
            try:
                return await self._call(ask, purpose)
            finally:
                self._asking.discard(asking)

        while True:
            self._breaker.check(self._clock())
            try:
                reply = await self.leases.in_background(self._model_name, purpose, call)
            except ModelError as error:
                failures += 1
                wait = self._breaker.after(error, failures, self._clock())
                if wait is None:
                    raise
                await self._sleep(wait)
            else:
                self._breaker.answered()
                return reply

    async def _call(self, ask: JudgeRequest, purpose: str = PURPOSE) -> _Reply:
        content: list[str] = []
        scores: list[TokenScore] = []
        done: Done | None = None
        begun = time.monotonic()
        options = {**self._options, "temperature": ask.temperature}
        if purpose == JUDGE_TEST and ask.prompt.schema is not None:
            options["num_predict"] = TEST_REPLY_TOKENS
        stream = self._model.chat(
            self._model_name,
            ask.prompt.messages(),
            options=options,
            format=_json(ask.prompt.schema),
            logprobs=True,
        )
        async with aclosing(stream):
            async for delta in stream:
                match delta:
                    case ContentDelta(piece):
                        content.append(piece)
                    case TokenScores(tokens):
                        scores += tokens
                    case RestartDelta():
                        content, scores = [], []
                    case Done():
                        done = delta
        text = "".join(content)
        model = self._signs_as or (done.model if done else "") or self._model_name
        if done is not None:
            self.leases.report_use(purpose, model, done.usage, begun)
        return _Reply(text, tokens_of(text, scores), model)


def tokens_of(text: str, scores: Sequence[TokenScore]) -> tuple[Token, ...]:
    """Return the tokens of that text, without those of thinking before it and of the end after it."""
    begin = "".join(score.text for score in scores).rfind(text)
    end = begin + len(text)
    tokens, at = [], 0
    for score in scores:
        if 0 <= begin <= at < end:
            tokens.append(Token(score.text, score.alternatives))
        at += len(score.text)
    return tuple(tokens)


def _json(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if schema is None else dict(schema)


# The kinds of judges that there are, by the names that `critic.yaml` knows: how each is asked and understood.

ProfileName = Literal["prometheus2", "selene", "generic-json"]

PROFILES: Mapping[ProfileName, Profile] = {
    "prometheus2": Prometheus2(),
    "selene": Selene(),
    "generic-json": GenericJson(),
}


# Who judges where no judge is named: one made for it, if it is pulled and fits beside the model that answers.

NUM_CTX = 8192
SECONDS = 5.0
LOADED_PER_BYTE = 1.2  # the memory of a loaded model with its window, by its size
SPARE_BYTES = 2_000_000_000  # for everything else that this machine is used for
HOW_ELSE = "`model` in critic.yaml decides otherwise"


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The choice of the judging model: `name` is the judge, None for the answering model; `why` explains it to a
    person.
    """

    name: str | None
    why: str


@dataclass(frozen=True, slots=True)
class JudgeChooser:
    """A chooser of a judging model beside the model `answering`, both on the Ollama server at `url`. Its models are
    called `prefix` and their name; `free_memory` returns the free bytes of its machine, None where unknown.
    """

    url: str
    answering: str
    prefix: str = ""
    free_memory: Callable[[], int | None] = lambda: None

    @classmethod
    def beside(cls, routing: Routing, answering: str) -> Self | None:
        """The one for the model that answers; None where that is not Ollama's."""
        provider, model = routing.locate(answering)
        endpoint = routing.endpoints[provider]
        if endpoint.kind != "ollama":
            return None
        prefix = "" if provider == routing.default else f"{provider}/"
        return cls(endpoint.url, model, prefix, _free_memory if is_loopback(endpoint.url) else lambda: None)

    async def choose(self) -> JudgeChoice:
        """Choose the judge, best after an answer: the answering model is loaded then. Raises `ModelError`."""
        server = OllamaModel(
            self.url, first_token_seconds=SECONDS, between_tokens_seconds=SECONDS, timeout_seconds=SECONDS
        )
        try:
            pulled, loaded = await server.pulled(), await server.loaded()
        finally:
            await server.close()
        choice = choose_judge(self.answering, pulled, loaded, self.free_memory())
        return choice if choice.name is None else replace(choice, name=self.prefix + choice.name)


def choose_judge(
    answering: str, pulled: Mapping[str, int | None], loaded: Sequence[LoadedModel], free: int | None
) -> JudgeChoice:
    """The smallest model made for judging that is pulled, if both fit; sizes are bytes, of files in `pulled`."""
    judges = sorted((size, name) for name, size in pulled.items() if size and is_made_for_judging(name))
    if not judges:
        return JudgeChoice(None, "no model made for judging is pulled")
    if any(is_made_for_judging(answering) and is_same_model(answering, name) for _, name in judges):
        return JudgeChoice(None, f"{answering} is made for judging")
    size, judge = judges[0]
    here = {model.name: model for model in loaded}
    answerer = next((model for name, model in here.items() if is_same_model(name, answering)), None)
    if answerer and judge in here:
        return JudgeChoice(judge, f"{judge} and {answering} are both loaded")
    if answerer and answerer.in_vram:
        return JudgeChoice(None, f"the graphics memory left beside {answering} is unknown; {HOW_ELSE}")
    if free is None:
        return JudgeChoice(None, f"the free memory of the model server is unknown; {HOW_ELSE}")
    yet_to_load = (
        0 if answerer else next((one or 0 for name, one in pulled.items() if is_same_model(name, answering)), 0)
    )
    needed = round(LOADED_PER_BYTE * (size + yet_to_load)) + SPARE_BYTES
    amounts = f"{needed / 1e9:.1f} GB for {judge} and what else there is, of {free / 1e9:.1f} GB that are free"
    return JudgeChoice(judge, amounts) if needed <= free else JudgeChoice(None, f"it would take {amounts}; {HOW_ELSE}")


def _free_memory() -> int:
    """Return the free memory of this machine in bytes."""
    import psutil

    return int(psutil.virtual_memory().available)


# The answers that wait for the judge. Of a long queue the newest are judged: old ones matter less than what a user has
# just read, and the judge has to catch up.

MOST = 24  # answers that wait; well below the number that the journal delivers at once, where the oldest comes first
REASON = f"not judged: more than {MOST} answers waited for the judge, and it judges the newest"


class JudgingLine:
    """The answers that wait for the judge, the newest first. `is_asked(task)` says whether the judge reads the answer
    of a task at this moment: that one is not left out.
    """

    def __init__(self, is_asked: Callable[[asyncio.Task[Any]], bool]) -> None:
        self._is_asked = is_asked
        self._tasks: dict[asyncio.Task[None], float] = {}  # with the time of each answer
        self._left_out: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks) - len(self._left_out)

    async def judge(self, sent_at: float, work: Coroutine[Any, Any, None]) -> bool:
        """Do the work, and return whether it was done: False if newer answers have taken its place."""
        task = asyncio.create_task(work)
        self._tasks[task] = sent_at
        self._leave_out()
        try:
            await task
        except asyncio.CancelledError:
            task.cancel()  # nothing waits for it any more
            waiting = asyncio.current_task()
            if task in self._left_out and not (waiting and waiting.cancelling()):
                return False
            raise
        finally:
            del self._tasks[task]
            self._left_out.discard(task)
        return True

    def _leave_out(self) -> None:
        """Make the line as short as it may be."""
        waiting = sorted(
            (task for task in self._tasks if task not in self._left_out and not self._is_asked(task)),
            key=lambda task: self._tasks[task],
        )
        for task in waiting[: max(0, len(self) - MOST)]:
            self._left_out.add(task)
            task.cancel()


# A judge's running figures: how often it could not be read, agreed with itself, and preferred the longer answer.


@dataclass(slots=True)
class Figures:
    """The running statistics of a judge. Counts since the start; the shares are between 0 and 1, None without data."""

    graded: int = 0  # answers
    unparsed: int = 0  # answers and comparisons
    replies: int = 0
    unread_replies: int = 0
    comparisons: int = 0
    consistent: int = 0
    decided: int = 0  # in favour of one of two answers that differ in length
    longer_won: int = 0
    longer_is_a: int = 0  # of those decided
    a_won: int = 0

    def count_verdict(self, verdict: Verdict) -> None:
        """Count one answer that was graded, or could not be."""
        self._count(verdict)
        self.graded += verdict.status is JudgingStatus.GRADED

    def count_outcome(self, outcome: ComparisonOutcome, pair: Pair) -> None:
        """Two answers were compared, or could not be."""
        self._count(outcome)
        if outcome.status is JudgingStatus.UNPARSED:
            return
        self.comparisons += 1
        self.consistent += outcome.order_consistent is True
        longer = len(pair.answer_a) - len(pair.answer_b)
        if outcome.winner is not Winner.TIE and longer:
            self.decided += 1
            self.longer_is_a += longer > 0
            self.a_won += outcome.winner is Winner.A
            self.longer_won += outcome.winner is (Winner.A if longer > 0 else Winner.B)

    def shares(self) -> dict[str, float | None]:
        """Return `parse_failures` of all replies, `order_consistency` of all comparisons, `longer_wins` of those
        decided, and its expected value if the judge ignored the length (`longer_wins_expected`).
        """
        return {
            "parse_failures": _share(self.unread_replies, self.replies),
            "order_consistency": _share(self.consistent, self.comparisons),
            "longer_wins": _share(self.longer_won, self.decided),
            "longer_wins_expected": self._expected(),
        }

    def _expected(self) -> float | None:
        """Return how often the longer answer would win if the two were independent: one respondent may win more often,
        and the same one be longer more often.
        """
        is_a, a_wins = _share(self.longer_is_a, self.decided), _share(self.a_won, self.decided)
        return None if is_a is None or a_wins is None else is_a * a_wins + (1 - is_a) * (1 - a_wins)

    def _count(self, end: Verdict | ComparisonOutcome) -> None:
        self.unparsed += end.status is JudgingStatus.UNPARSED
        self.replies += end.replies
        self.unread_replies += end.unread


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
