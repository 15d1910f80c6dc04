"""How answers are judged: by a critic, by comparison, by users; and what the respondents learn of it."""

from __future__ import annotations

from typing import Literal

from local.bus.message import MAIN_RESPONDENT, Delivery, ErrorInfo, Message

JudgementStatus = Literal["graded", "unparsed", "failed", "skipped", "judge_unfit"]
"""`unparsed`: no reply of the judge could be read; `failed`: the judge could not be asked; `skipped`: too many answers
waited, and the newest of them are judged; `judge_unfit`: the judge has failed its self-test, and is not asked."""


class CritiqueResult(Message):
    """The critic, after it has read an answer. `score` is 1 to 5, or null with a status that says why; `expected` is
    the mean over the judge's probabilities of the scores, where they are known."""

    subject = "critique.result"
    delivery = Delivery.CONFIRMED
    hurried = False
    query_id: str
    respondent_id: str = MAIN_RESPONDENT
    score: int | None
    expected: float | None = None
    status: JudgementStatus
    feedback: str = ""
    rubric: str = ""
    judge: str = ""
    self_judged: bool = False  # judge and author are the same model
    session_id: str | None = None


class PairwiseResult(Message):
    """The critic, when two respondents have answered a query. `winner` is null with a status that says why.
    `order_consistent` says whether the judge preferred the same answer in both orders; if not, it is a tie, unless the
    judge's probabilities are known: then `preferred`, the mean probability of A over both orders, decides."""

    subject = "pairwise.result"
    delivery = Delivery.CONFIRMED
    hurried = False
    query_id: str
    winner: Literal["A", "B", "tie"] | None
    order_consistent: bool | None = None
    preferred: float | None = None
    status: JudgementStatus
    feedback: str = ""
    rubric: str = ""
    judge: str = ""
    self_judged: bool = False  # the judge has written one of the two
    session_id: str | None = None


class ComparisonRequest(Message):
    """The tool `compare_answers`, when a model asks which of two texts answers a question better. A user waits for it
    only if it is the main respondent's."""

    subject = "comparison.request"
    is_request = True
    answered_by = "critic"
    respondent_id: str = MAIN_RESPONDENT
    question: str
    answer_a: str
    answer_b: str


class ComparisonResult(Message):
    """The critic's answer to that; `error` says why it has none."""

    subject = "comparison.result"
    winner: Literal["A", "B", "tie"] | None = None
    order_consistent: bool | None = None
    feedback: str = ""
    judge: str = ""
    error: ErrorInfo | None = None


class UserFeedback(Message):
    """A frontend, when a user rates an answer; the latest rating of an answer counts, null withdraws it."""

    subject = "user.feedback"
    delivery = Delivery.CONFIRMED
    query_id: str
    respondent_id: str = MAIN_RESPONDENT
    rating: Literal[-1, 1] | None
    comment: str = ""
    rated_at: float  # seconds since 1970


class RewardEvent(Message):
    """The reward service, to the respondent that gave an answer: the answer's reward is now this, 0 for none. It
    replaces any earlier one of the same answer."""

    subject = "reward.event"
    delivery = Delivery.CONFIRMED
    hurried = False
    query_id: str
    respondent_id: str = MAIN_RESPONDENT
    reward: float  # -1 to 1
    source: Literal["user"] = "user"
    rated_at: float  # seconds since 1970
