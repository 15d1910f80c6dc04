"""What was said of an answer, fed by hand."""

from __future__ import annotations

from local.critic.messages import CritiqueResult, PairwiseResult, UserFeedback
from local.queries.view import Judgements


def rated(rating: int | None, at: float) -> UserFeedback:
    return UserFeedback.model_validate({"query_id": "q", "rating": rating, "rated_at": at})


def test_scores_are_null_until_they_come() -> None:
    judgements = Judgements()
    assert judgements.as_json() == {"critique": None, "pairwise": None, "rating": None}
    judgements.hear(CritiqueResult(query_id="q", score=4, expected=3.9, status="graded", rubric="knowledge"), "c")
    judgements.hear(PairwiseResult(query_id="q", winner="tie", order_consistent=False, status="graded"), "p")
    judgements.hear(rated(-1, 7.0), "f")
    scores = judgements.as_json()
    assert scores["critique"] == {
        "score": 4, "expected": 3.9, "status": "graded", "feedback": "", "rubric": "knowledge", "judge": "",
        "self_judged": False,
    }  # fmt: skip
    assert (scores["pairwise"]["winner"], scores["pairwise"]["order_consistent"]) == ("tie", False)
    assert scores["rating"] == -1
    assert judgements.settled == {"critique", "pairwise", "feedback"}


def test_the_latest_rating_counts_whatever_comes_last_and_null_withdraws_it() -> None:
    judgements = Judgements()
    assert judgements.hear(rated(1, 5.0), "first")
    assert judgements.hear(rated(-1, 9.0), "latest")
    assert not judgements.hear(rated(1, 7.0), "late")
    assert judgements.as_json()["rating"] == -1
    assert judgements.hear(rated(None, 10.0), "withdrawn")
    assert judgements.as_json()["rating"] is None


def test_an_ungraded_critique_says_so() -> None:
    judgements = Judgements()
    judgements.hear(CritiqueResult(query_id="q", score=None, status="unparsed"), "c")
    critique = judgements.as_json()["critique"]
    assert (critique["score"], critique["status"]) == (None, "unparsed")
