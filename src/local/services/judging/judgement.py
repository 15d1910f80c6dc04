"""One answer being graded, or two compared: what to ask the judge next, and in the end the verdict. No I/O."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from local.errors import IllegalTransition
from local.services.judging.marked_reply import plain
from local.services.judging.prompt import Case, JudgePrompt, Pair, Profile, Reading
from local.services.judging.rubric import Rubric

T = TypeVar("T")

TEMPERATURES = (0.0, 0.4, 0.8)  # one for each time of asking: the same question would get the same reply


class JudgingStatus(StrEnum):
    """How judging ended."""

    GRADED = "graded"
    UNPARSED = "unparsed"  # no reply said in the agreed form what the judge decided; there is no score


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """What is to be sent to the judge now; `attempt` counts from 1."""

    prompt: JudgePrompt
    temperature: float
    attempt: int


class JudgeQuestion(Generic[T]):
    """`ask` is what to send, None at the end; `hear` takes the reply. `reading` is None until one could be read."""

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
        """How many of the replies could not be read."""
        return self.replies - (self.reading is not None)

    def hear(self, generated: str) -> None:
        """The judge's reply: the generated text alone, without the prompt. `IllegalTransition` if nothing was asked."""
        if self.ask is None:
            raise IllegalTransition("done", "hear")
        self.replies += 1
        self.last_reply = generated
        self.reading = self._read(generated)


MIN_MASS = 0.5  # of the probability that has to lie on what can be said there, or it is another place


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token, and the natural logarithms of the probabilities of what might have stood in its place."""

    text: str
    alternatives: Mapping[str, float]


def expected_score(tokens: Sequence[Token], generated: str, at: int | None) -> float | None:
    """Σ n·p(n) / Σ p(n) over the scores n from 1 to 5 (G-Eval, Liu et al. 2023), at the token that wrote the score.

    `at` is that score's place in `generated`. None where the tokens are not those of the text, where the score shares
    its token with other characters than blanks, or where less than half of the probability lies on scores.
    """
    masses = _masses(tokens, generated, at, "12345")
    return None if masses is None else math.fsum(int(score) * mass for score, mass in masses.items())


def preference(tokens: Sequence[Token], generated: str, at: int | None) -> float | None:
    """How probable it was that the judge names A and not B, at the token that wrote the letter; None as above."""
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
    """The judge's word on one answer.

    `score` is the integer from 1 to 5 that it wrote, None if `status` is unparsed; `expected` the mean over the
    probabilities of the scores, where they are known. `feedback` is what it said, the whole last reply if unparsed;
    `replies` how often it was asked, `unread` how many of them could not be read.
    """

    status: JudgingStatus
    score: int | None
    expected: float | None
    feedback: str
    replies: int
    unread: int


class Grading:
    """`ask` says what to send, `hear` takes the reply; when `ask` is None, `verdict` is there."""

    def __init__(self, profile: Profile, case: Case, rubric: Rubric) -> None:
        self._question = JudgeQuestion(profile.absolute(case, rubric), profile.read_score)
        self._expected: float | None = None

    @property
    def ask(self) -> JudgeRequest | None:
        """What to ask next; None when this is done."""
        return self._question.ask

    def hear(self, generated: str, tokens: Sequence[Token] = ()) -> None:
        """The reply, and its tokens where the backend tells their probabilities."""
        self._question.hear(generated)
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
    """Which answer is better."""

    A = "A"
    B = "B"
    TIE = "tie"


@dataclass(frozen=True, slots=True)
class ComparisonOutcome:
    """What came of it. If `status` is unparsed, `winner` and `order_consistent` are None: one order had no verdict.

    `order_consistent` says whether the judge preferred the same answer in both orders; if not, it is a tie, unless the
    probabilities are known: `preferred` is that of A, the mean over both orders, and decides then. `feedback` is what
    it said in the order A, B.
    """

    status: JudgingStatus
    winner: Winner | None
    order_consistent: bool | None
    feedback: str
    replies: int  # in both orders together
    unread: int
    preferred: float | None = None


MARGIN = 0.1  # from one half: what is nearer to it is a tie


class Comparison:
    """`ask` says what to send, `hear` takes the reply; when `ask` is None, `outcome` is there."""

    def __init__(self, profile: Profile, pair: Pair, rubric: Rubric) -> None:
        self._forward = JudgeQuestion(profile.relative(pair, rubric), profile.read_winner)
        self._backward = JudgeQuestion(profile.relative(pair.swapped(), rubric), profile.read_winner)
        self._preferences: list[float | None] = []  # for the answer that came first

    @property
    def ask(self) -> JudgeRequest | None:
        """What to ask next; None when this is done, which it is, too, as soon as one order has no verdict."""
        return self._current.ask

    def hear(self, generated: str, tokens: Sequence[Token] = ()) -> None:
        """The reply to what was asked last, and its tokens where the backend tells their probabilities."""
        question = self._current
        question.hear(generated)
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
        """The mean over both orders, in which a liking for the first or the second place is no longer."""
        forward, backward = self._preferences
        return None if forward is None or backward is None else (forward + 1 - backward) / 2

    @property
    def _current(self) -> JudgeQuestion[str]:
        return self._forward if self._forward.reading is None else self._backward


def _winner(preferred: float) -> Winner:
    if abs(preferred - 0.5) < MARGIN:
        return Winner.TIE
    return Winner.A if preferred > 0.5 else Winner.B
