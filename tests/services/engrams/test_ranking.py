"""Ranking: fusion, bounded factors, successors, near-duplicates, and the threshold below which nothing is relevant."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.services.engrams.engram import Engram, Origin
from local.services.engrams.ranking import (
    CERTAIN_COVERAGE,
    COVERAGE_FLOOR,
    CROWD,
    HALF_LIFE_SECONDS,
    Candidate,
    EngramHit,
    Factors,
    factors,
    fused,
    rank,
)

NOW = 1_000_000_000.0
FLOOR = 0.3


def engram(name: str, text: str | None = None, **fields: Any) -> Engram:
    told: dict[str, Any] = {"asked_at": NOW} | fields
    return Engram(name, name, "A", "session", "ann", text or f"words of {name}", "", Origin.ASSISTANT, **told)


def candidate(name: str, *, bm25: float | None = None, cosine: float | None = None, **fields: Any) -> Candidate:
    return Candidate(engram(name, **fields), bm25, None if bm25 is None else bm25 / 10, cosine)


def ranked(*candidates: Candidate, limit: int = 5) -> list[EngramHit]:
    return rank(candidates, now=NOW, relevance_floor=FLOOR, limit=limit)


def names(*candidates: Candidate, limit: int = 5) -> list[str]:
    return [hit.engram.engram_id for hit in ranked(*candidates, limit=limit)]


def test_what_both_lists_know_comes_before_what_one_knows() -> None:
    both = candidate("both", bm25=5.0, cosine=0.59)
    assert names(candidate("words", bm25=6.0), both, candidate("meaning", cosine=0.6)) == ["both", "meaning", "words"]


def test_a_far_better_meaning_is_not_outweighed_by_being_shorter_or_more_recent() -> None:
    close = candidate("close", bm25=4.0, cosine=0.7, asked_at=NOW - 1e9)
    shorter = [candidate(f"shorter{number}", bm25=4.5, cosine=0.5) for number in range(9)]
    assert names(*shorter, close)[0] == "close"


def test_what_differs_by_less_than_a_step_shares_a_rank_and_gaps_are_kept() -> None:
    texts = [("a", 9.0, 0.6), ("b", 8.5, 0.598), ("c", 7.0, 0.58)]
    hits = ranked(*(candidate(name, bm25=bm25, cosine=cosine) for name, bm25, cosine in texts))
    assert [(hit.lexical_rank, hit.dense_rank) for hit in hits] == [(1, 1), (1, 1), (3, 5)]


def test_a_hit_tells_its_ranks_raw_scores_and_factors() -> None:
    first, _ = ranked(
        candidate("a", bm25=5.0, cosine=0.5, score=5.0, sentiment=1), candidate("b", bm25=9.0, cosine=0.4)
    )
    assert (first.lexical_rank, first.bm25, first.coverage, first.dense_rank, first.cosine) == (5, 5.0, 0.5, 1, 0.5)
    assert first.factors == Factors(recency=0.04, critic=0.06, rating=0.10)
    assert first.score == pytest.approx(first.fused * 1.2)


def test_first_everywhere_is_one_whatever_lists_there_are() -> None:
    assert fused(1, 1, has_dense=True) == fused(1, None, has_dense=False) == 1
    assert fused(1, None, has_dense=True) < fused(None, 1, has_dense=True) < 1


@given(
    age=st.floats(-1e9, 1e10), score=st.one_of(st.none(), st.floats(1, 5)), sentiment=st.sampled_from([None, -1, 0, 1])
)
def test_factors_stay_within_a_fifth(age: float, score: float | None, sentiment: int | None) -> None:
    made = factors(engram("a", asked_at=NOW - age, score=score, sentiment=sentiment), NOW)
    assert 0.8 - 1e-9 <= made.product <= 1.2 + 1e-9


def test_age_counts_less_and_less_down_to_a_floor() -> None:
    def recency(age: float) -> float:
        return factors(engram("a", asked_at=NOW - age), NOW).recency

    assert recency(0) == 0.04
    assert recency(HALF_LIFE_SECONDS) == pytest.approx(0)
    assert recency(1e12) == -0.04


def test_of_two_that_fit_alike_the_better_rated_comes_first() -> None:
    liked, disliked = candidate("liked", cosine=0.50, sentiment=1), candidate("disliked", cosine=0.51, sentiment=-1)
    assert names(disliked, liked) == ["liked", "disliked"]


def test_no_rating_lifts_what_fits_badly_over_what_fits_well() -> None:
    others = [candidate(f"other {number}", bm25=8.0 - number, cosine=0.8 - number / 100) for number in range(30)]
    liked = candidate("liked", cosine=0.31, sentiment=1, score=5.0)
    assert names(*others, liked, limit=40).index("liked") > 10


def test_nothing_is_found_where_nothing_is_relevant() -> None:
    assert names(candidate("a", bm25=COVERAGE_FLOOR * 10 - 0.1, cosine=FLOOR - 0.01), candidate("b", cosine=0.1)) == []


def test_enough_of_the_words_or_of_the_meaning_makes_a_hit() -> None:
    assert names(candidate("a", bm25=COVERAGE_FLOOR * 10), candidate("b", cosine=FLOOR)) == ["b", "a"]


def crowd(cosine: float) -> list[Candidate]:
    return [candidate(f"crowd{number}", cosine=cosine) for number in range(CROWD)]


def test_where_all_are_equally_close_nothing_is_relevant() -> None:
    assert names(*crowd(FLOOR + 0.05)) == []


def test_what_stands_out_from_the_crowd_is_relevant_and_tells_how_far_it_had_to() -> None:
    (first, *_) = ranked(*crowd(FLOOR + 0.05), candidate("best", cosine=0.46))
    assert (first.engram.engram_id, first.threshold) == ("best", pytest.approx(0.451))
    assert names(*crowd(FLOOR + 0.05), candidate("best", cosine=0.44)) == []


def test_a_close_meaning_is_relevant_however_many_are_as_close() -> None:
    assert len(names(*crowd(0.6))) == 5


def test_most_of_the_words_are_enough_in_any_crowd_and_some_are_where_there_is_no_vector_yet() -> None:
    words = CERTAIN_COVERAGE * 10
    assert "all" in names(*crowd(FLOOR + 0.05), candidate("all", bm25=words, cosine=0.1))
    assert names(*crowd(FLOOR + 0.05), candidate("some", bm25=words - 0.1, cosine=0.1)) == []
    assert "new" in names(*crowd(FLOOR + 0.05), candidate("new", bm25=COVERAGE_FLOOR * 10))


def test_what_has_the_words_comes_before_what_has_them_from_it() -> None:
    says = candidate("says", bm25=10.0, cosine=0.4, asked_at=NOW - 2)
    thanks = candidate("thanks", bm25=1.3, cosine=0.46, asked_at=NOW - 1)
    assert names(thanks, says) == ["says", "thanks"]


def test_a_closer_meaning_comes_before_the_words_unless_it_only_borrows_them() -> None:
    says = candidate("says", bm25=10.0, cosine=0.4, asked_at=NOW - 2)
    own_words = candidate("own", bm25=6.0, cosine=0.6, asked_at=NOW - 1)
    before = candidate("before", bm25=1.3, cosine=0.6, asked_at=NOW - 3)
    without = candidate("without", cosine=0.7, asked_at=NOW - 1)
    assert names(says, own_words)[0] == "own"
    assert names(says, before)[0] == "before"
    assert names(says, without)[0] == "without"


def test_what_alone_has_the_word_asked_for_is_found_though_all_others_are_closer_in_meaning() -> None:
    alike = [candidate(f"crate{number}", cosine=0.9 - number / 100) for number in range(30)]
    named = candidate("named", bm25=1.4, cosine=0.5)
    beside = candidate("beside", bm25=0.7, cosine=0.4)
    assert names(*alike, named, beside)[:3] == ["crate0", "named", "crate1"]
    assert "named" not in names(*alike, named, candidate("other", bm25=1.0, cosine=0.4))


def test_what_superseded_a_hit_comes_right_before_it_even_if_nothing_else_found_it() -> None:
    old = candidate("old", bm25=9.0, cosine=0.9, superseded_by="new")
    hits = ranked(old, Candidate(engram("new")), candidate("other", cosine=0.4))
    assert [hit.engram.engram_id for hit in hits] == ["new", "old", "other"]
    assert (hits[0].successor_of, hits[0].lexical_rank, hits[0].dense_rank) == ("old", None, None)
    assert hits[0].score == hits[1].score


def test_what_superseded_a_hit_moves_up_once_and_keeps_its_own_reasons() -> None:
    new, old = candidate("new", cosine=0.4), candidate("old", cosine=0.9, superseded_by="new")
    hits = ranked(new, candidate("between", cosine=0.6), old)
    assert [hit.engram.engram_id for hit in hits] == ["new", "old", "between"]
    assert hits[0].cosine == 0.4


def test_of_a_chain_the_last_comes_first() -> None:
    chain = [
        candidate("a", cosine=0.9, superseded_by="b"),
        Candidate(engram("b", superseded_by="c")),
        Candidate(engram("c")),
    ]
    assert names(*chain) == ["c", "a"]


def test_engrams_that_supersede_each_other_are_all_found() -> None:
    a, b = candidate("a", cosine=0.9, superseded_by="b"), candidate("b", cosine=0.8, superseded_by="a")
    assert names(a, b) == ["a", "b"]


def test_a_successor_that_is_gone_leaves_the_hit_alone() -> None:
    assert names(candidate("a", cosine=0.9, superseded_by="deleted")) == ["a"]


def test_of_exchanges_that_say_the_same_the_latest_stands_for_all() -> None:
    text = "The capital of France is Paris on the Seine"
    first = candidate("first", text=text, cosine=0.9, asked_at=NOW - 100)
    again = candidate("again", text=text + "!", cosine=0.8)
    (hit,) = ranked(first, again)
    assert (hit.engram.engram_id, hit.folded) == ("again", ("first",))
    assert hit.score >= ranked(first)[0].score * 0.99


def test_another_number_is_another_thing_however_alike_the_words() -> None:
    text = "The meeting with the whole team about the budget of the project starts at {} in the big room upstairs"
    assert (
        len(names(candidate("a", text=text.format(10), cosine=0.9), candidate("b", text=text.format(11), cosine=0.9)))
        == 2
    )


def test_no_more_than_the_limit_is_returned() -> None:
    assert names(*(candidate(f"e{number}", cosine=0.9 - number / 100) for number in range(9)), limit=3) == [
        "e0", "e1", "e2",
    ]  # fmt: skip
