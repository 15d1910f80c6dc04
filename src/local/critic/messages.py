"""The messages about judgements: the critic's grades, comparisons, users' ratings, and rewards for respondents."""

from __future__ import annotations

from typing import Literal

from local.bus.message import MAIN_RESPONDENT, Delivery, ErrorInfo, Message

JudgementStatus = Literal["graded", "unparsed", "failed", "skipped", "judge_unfit"]
"""`unparsed`: no reply of the judge could be read; `failed`: the judge could not be asked; `skipped`: too many answers
waited, and the newest of them are judged; `judge_unfit`: the judge has failed its self-test, and is not asked."""


class CritiqueResult(Message):
    """The critic's grade of an answer. `score` is 1 to 5, or null with a status that says why; `expected` is the mean
    over the judge's probabilities of the scores, where they are known.
    """

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
    """The critic's comparison of two respondents' answers to a query. `winner` is null with a status that says why.
    `order_consistent` says whether the judge preferred the same answer in both orders; if not, it is a tie, unless the
    judge's probabilities are known: then `preferred`, the mean probability of A over both orders, decides.
    """

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
    """A request of the tool `compare_answers` to compare two texts, made by a model. A user waits for it only if it is
    the main respondent's.
    """

    subject = "comparison.request"
    is_request = True
    answered_by = "critic"
    respondent_id: str = MAIN_RESPONDENT
    question: str
    answer_a: str
    answer_b: str


class ComparisonResult(Message):
    """The critic's answer to a `ComparisonRequest`; `error` says why there is no comparison."""

    subject = "comparison.result"
    winner: Literal["A", "B", "tie"] | None = None
    order_consistent: bool | None = None
    feedback: str = ""
    judge: str = ""
    error: ErrorInfo | None = None


class UserFeedback(Message):
    """A user's rating of an answer, published by a frontend; the latest rating of an answer counts, null
    withdraws it."""

    subject = "user.feedback"
    delivery = Delivery.CONFIRMED
    query_id: str
    respondent_id: str = MAIN_RESPONDENT
    rating: Literal[-1, 1] | None
    comment: str = ""
    rated_at: float  # seconds since 1970


class RewardEvent(Message):
    """The present reward of an answer, 0 for none, sent by the reward service to the answer's respondent. It replaces
    any earlier one of the same answer.
    """

    subject = "reward.event"
    delivery = Delivery.CONFIRMED
    hurried = False
    query_id: str
    respondent_id: str = MAIN_RESPONDENT
    reward: float  # -1 to 1
    source: Literal["user"] = "user"
    rated_at: float  # seconds since 1970
