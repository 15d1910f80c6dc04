"""One answer being graded: what to ask the judge next, and in the end the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from local.services.judging.case import Case
from local.services.judging.expectation import Token, expected_score
from local.services.judging.prompt import Profile
from local.services.judging.question import Ask, Question, Status
from local.services.judging.rubric import Rubric


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judge's word on one answer.

    `score` is the integer from 1 to 5 that it wrote, None if `status` is unparsed; `expected` the mean over the
    probabilities of the scores, where they are known. `feedback` is what it said, the whole last reply if unparsed;
    `replies` how often it was asked, `unread` how many of them could not be read.
    """

    status: Status
    score: int | None
    expected: float | None
    feedback: str
    replies: int
    unread: int


class Grading:
    """`ask` says what to send, `hear` takes the reply; when `ask` is None, `verdict` is there."""

    def __init__(self, profile: Profile, case: Case, rubric: Rubric) -> None:
        self._question = Question(profile.absolute(case, rubric), profile.read_score)
        self._expected: float | None = None

    @property
    def ask(self) -> Ask | None:
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
            return Verdict(Status.UNPARSED, None, None, self._question.last_reply.strip(), *counts)
        return Verdict(Status.GRADED, reading.value, self._expected, reading.feedback, *counts)
