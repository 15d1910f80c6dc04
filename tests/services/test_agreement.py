"""How far a critic and users agree."""

import pytest

from local.reward.reward import agreement


def test_a_critic_that_scores_every_liked_answer_higher_agrees_fully() -> None:
    found = agreement({5: 20, 4: 5}, {3: 2, 1: 3})
    assert (found.liked, found.disliked, found.rated) == (25, 5, 30)
    assert (found.auc, found.mean_liked, found.mean_disliked) == (1.0, 4.8, 1.8)
    assert found.in_words(30) == "AUC 1.00 over 30 rated answers; mean score 4.8 liked, 1.8 disliked"


def test_pairs_are_counted_by_hand_with_a_half_for_equal_scores() -> None:
    # 5 against 4, 2: two won; each 4 against 4, 2: one tied and one won; 1 against 4, 2: two lost.
    assert agreement({5: 1, 4: 2, 1: 1}, {4: 1, 2: 1}).auc == pytest.approx((2 + 2 * 1.5 + 0) / 8)


def test_one_score_for_everything_is_no_agreement_and_the_opposite_is_none_at_all() -> None:
    assert agreement({3: 7}, {3: 9}).auc == 0.5
    assert agreement({1: 7}, {5: 9}).auc == 0.0


def test_without_answers_of_both_kinds_there_is_nothing_to_compare() -> None:
    found = agreement({4: 30}, {})
    assert (found.auc, found.mean_disliked) == (None, None)
    assert found.in_words(30) == "none to compare over 30 rated answers; mean score 4.0 liked, - disliked"


def test_of_too_few_answers_only_their_number_is_told() -> None:
    assert agreement({5: 20}, {1: 9}).in_words(30) == "29 of 30 rated and graded answers"
    assert agreement({}, {}).in_words(30) == "0 of 30 rated and graded answers"
