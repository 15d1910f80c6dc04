"""Two answers being compared in both orders, since a judge tends to prefer the first, or the second, it reads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from local.services.judging.case import Pair
from local.services.judging.prompt import Profile
from local.services.judging.question import Ask, Question, Status
from local.services.judging.rubric import Rubric


class Winner(StrEnum):
    """Which answer is better."""

    A = "A"
    B = "B"
    TIE = "tie"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. If `status` is unparsed, `winner` and `order_consistent` are None: one order had no verdict.

    `order_consistent` says whether the judge preferred the same answer in both orders; if not, it is a tie.
    `feedback` is what it said in the order A, B.
    """

    status: Status
    winner: Winner | None
    order_consistent: bool | None
    feedback: str
    replies: int  # in both orders together
    unread: int


class Comparison:
    """`ask` says what to send, `hear` takes the reply; when `ask` is None, `outcome` is there."""

    def __init__(self, profile: Profile, pair: Pair, rubric: Rubric) -> None:
        self._forward = Question(profile.relative(pair, rubric), profile.read_winner)
        self._backward = Question(profile.relative(pair.swapped(), rubric), profile.read_winner)

    @property
    def ask(self) -> Ask | None:
        """What to ask next; None when this is done, which it is, too, as soon as one order has no verdict."""
        return self._current.ask

    def hear(self, generated: str) -> None:
        """The reply to what was asked last."""
        self._current.hear(generated)

    @property
    def outcome(self) -> Outcome | None:
        """The end of it; None while there is something to ask."""
        if self.ask is not None:
            return None
        first, second = self._forward.reading, self._backward.reading
        asked = (self._forward, self._backward)
        counts = (sum(question.replies for question in asked), sum(question.unread for question in asked))
        if first is None or second is None:
            return Outcome(Status.UNPARSED, None, None, self._current.last_reply.strip(), *counts)
        consistent = first.value != second.value  # the same letter in both orders is the other answer
        winner = Winner(first.value) if consistent else Winner.TIE
        return Outcome(Status.GRADED, winner, consistent, first.feedback, *counts)

    @property
    def _current(self) -> Question[str]:
        return self._forward if self._forward.reading is None else self._backward
