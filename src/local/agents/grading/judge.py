"""A model that judges answers: asked in the background or for a user who waits, until a reply can be read."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from local.agents.grading.judgements import shortened
from local.agents.leases import Leases
from local.errors import ModelBusy, ModelError
from local.models.chat import ChatModel, ContentDelta, Done, RestartDelta, TokenScore, TokenScores
from local.models.model_errors import ErrorClass, classify
from local.services.judging.judgement import (
    Comparison,
    ComparisonOutcome,
    Grading,
    JudgeRequest,
    Token,
    Verdict,
    Winner,
)
from local.services.judging.prompt import Case, Pair, Profile
from local.services.judging.rubric import Rubric

T = TypeVar("T")
log = logging.getLogger(__name__)

PURPOSE = "critic"
TEST_PURPOSE = "judge_test"
MOST_CHARACTERS = 16_000  # put before the judge at once; it reads them for each answer, while others wait
REPLY_TOKENS = 1024  # feedback and verdict; a judge that has not come to it by then never will
TEST_REPLY_TOKENS = 200  # in the self-test, of a judge that replies in JSON; its questions are short
WAITS = (5.0, 30.0)  # seconds before the second and the third time; the router has had its own tries each time
PAUSE_SECONDS = 300.0  # where only a person can help, such as for a model that is not there
SHORT_PAUSE_SECONDS = 60.0
# Failures that lie in what was asked: another answer may be judged all the same.
_OF_THE_REQUEST = frozenset({"bad_request", "bad_call", "filtered", "context_overflow"})


class JudgeAway(ModelError):
    """The judge's model has failed, and is not asked for a while."""


class CircuitBreaker:
    """Decides after each failure whether the model is asked again, and when it is left alone.

    Times are seconds of one monotonic clock that the caller reads. `problem` is what is wrong now, if anything."""

    def __init__(self) -> None:
        self.problem = ""
        self._kind = ""
        self._until = float("-inf")

    def check(self, now: float) -> None:
        """Raises `JudgeAway` while the model is to be left alone."""
        if now < self._until:
            raise JudgeAway(f"the judge was not asked, as it has just failed: {self.problem}", kind=self._kind)

    def after(self, error: ModelError, failures: int, now: float) -> float | None:
        """The model has failed so many times in a row at one question: seconds to wait before it is asked again, or
        None, which is the end of it."""
        if error.kind in _OF_THE_REQUEST:
            return None
        is_permanent = classify(error) is ErrorClass.PERMANENT
        if not is_permanent and failures <= len(WAITS):
            wish = error.retry_after if isinstance(error, ModelBusy) else None
            return max(WAITS[failures - 1], wish or 0.0)
        seconds = PAUSE_SECONDS if is_permanent else SHORT_PAUSE_SECONDS
        if self.problem != str(error):  # said once, however many answers are in flight
            log.error("nothing is judged for now, the next answer in %g s: %s", seconds, error)
        self.problem, self._kind, self._until = str(error), error.kind, now + seconds
        return None

    def answered(self) -> None:
        """The model has answered: whatever was wrong is over."""
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
    """A model that judges in the place of another, and how it is asked."""

    name: str
    profile: Profile
    num_ctx: int


_Calling = Callable[[JudgeRequest], Coroutine[Any, Any, _Reply]]


class Judge:
    """The model `name`, asked in the manner of `profile`. `signs_as` is its name for people where that is another.

    `successor` gives who judges in its place from the first grade or comparison in the background on, if anybody.

    What it raises is a `ModelError`, and then there is no verdict.
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
        self._give(num_ctx)
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
        """What is wrong with it now, if anything."""
        return self._breaker.problem

    def is_asked_by(self, task: asyncio.Task[Any]) -> bool:
        """Whether the model works at this moment on what this task wants to know."""
        return task in self._asking

    async def test_score(self, case: Case, rubric: Rubric) -> float | None:
        """The score of one answer of the self-test, by the first reply alone; None if that could not be read."""
        grading = Grading(self._profile, case, rubric)
        if (ask := grading.ask) is not None:
            reply = await self._in_background(ask, TEST_PURPOSE)
            grading.hear(reply.text, reply.tokens)
        verdict = grading.verdict
        if verdict is None or verdict.score is None:
            return None
        return verdict.score if verdict.expected is None else verdict.expected

    async def test_winner(self, pair: Pair, rubric: Rubric) -> Winner | None:
        """Which of two answers of the self-test is better, by one reply for each order; None if one was unreadable."""
        comparison = Comparison(self._profile, pair, rubric)
        for _ in range(2):
            if (ask := comparison.ask) is not None:
                reply = await self._in_background(ask, TEST_PURPOSE)
                comparison.hear(reply.text, reply.tokens)
        return None if comparison.outcome is None else comparison.outcome.winner

    async def grade(self, case: Case, rubric: Rubric) -> tuple[str, Verdict]:
        """The score of one answer, whenever the model has time for it, after the name of the model that gave it."""
        await self.settle()
        return await self._fitting(lambda room: self._grade(shortened(case, room), rubric))

    async def compare(self, pair: Pair, rubric: Rubric) -> tuple[str, ComparisonOutcome]:
        """Which of two answers is better, in the same way."""
        await self.settle()
        return await self._fitting(lambda room: self._compare(shortened(pair, room), rubric, self._in_background))

    async def compare_now(self, pair: Pair, rubric: Rubric) -> tuple[str, ComparisonOutcome]:
        """Which of two answers is better, for a user whose turn waits: as a part of that turn it waits for no other."""
        with self.leases.users_turn(self._model_name):
            return await self._fitting(lambda room: self._compare(shortened(pair, room), rubric, self._call))

    async def close(self) -> None:
        """Close every connection."""
        await self._model.close()

    async def settle(self) -> None:
        """Let the one who is to judge in its place take over, if there is one; asked once a minute until that is known,
        for it takes as long as a short reply does."""
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
                self._give(found.num_ctx)

    def _give(self, num_ctx: int) -> None:
        self._options = {"num_ctx": num_ctx, "num_predict": REPLY_TOKENS}
        room = min(MOST_CHARACTERS, 2 * num_ctx)
        self._rooms = (room, room // 4)  # the second where a script has more tokens than we thought

    async def _grade(self, case: Case, rubric: Rubric) -> tuple[str, Verdict]:
        grading, judge = Grading(self._profile, case, rubric), self.name
        while (ask := grading.ask) is not None:
            reply = await self._in_background(ask)
            grading.hear(reply.text, reply.tokens)
            judge = reply.model
        assert grading.verdict is not None
        return judge, grading.verdict

    async def _compare(self, pair: Pair, rubric: Rubric, call: _Calling) -> tuple[str, ComparisonOutcome]:
        comparison, judge = Comparison(self._profile, pair, rubric), self.name
        while (ask := comparison.ask) is not None:
            reply = await call(ask)
            comparison.hear(reply.text, reply.tokens)
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
        if purpose == TEST_PURPOSE and ask.prompt.schema is not None:
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
            self.leases.tell_use(purpose, model, done.usage, begun)
        return _Reply(text, tokens_of(text, scores), model)


def tokens_of(text: str, scores: Sequence[TokenScore]) -> tuple[Token, ...]:
    """The tokens of that text, without those of thinking before it and of the end after it."""
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
