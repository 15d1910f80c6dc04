"""Ranking: fusion, bounded factors, successors, near-duplicates, and the threshold below which nothing is relevant."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.services.engrams.engram import Engram, Origin
from local.services.engrams.ranking import (
    COVERAGE_FLOOR,
    HALF_LIFE_SECONDS,
    Candidate,
    Factors,
    Hit,
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


def ranked(*candidates: Candidate, limit: int = 5) -> list[Hit]:
    return rank(candidates, now=NOW, relevance_floor=FLOOR, limit=limit)


def names(*candidates: Candidate, limit: int = 5) -> list[str]:
    return [hit.engram.engram_id for hit in ranked(*candidates, limit=limit)]


def test_what_both_lists_know_comes_before_what_one_knows() -> None:
    both = candidate("both", bm25=5.0, cosine=0.5)
    assert names(candidate("words", bm25=6.0), both, candidate("meaning", cosine=0.9)) == ["both", "meaning", "words"]


def test_a_hit_tells_its_ranks_raw_scores_and_factors() -> None:
    first, _ = ranked(
        candidate("a", bm25=5.0, cosine=0.5, score=5.0, sentiment=1), candidate("b", bm25=9.0, cosine=0.4)
    )
    assert (first.lexical_rank, first.bm25, first.coverage, first.dense_rank, first.cosine) == (2, 5.0, 0.5, 1, 0.5)
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
