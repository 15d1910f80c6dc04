"""Ranking: words and meaning, bounded factors, successors, near-duplicates, and when nothing is relevant."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.memory.search import (
    CROWD,
    MAX_FACTOR,
    Candidate,
    EngramHit,
    Factors,
    factors,
    rank,
)
from local.memory.store import Engram, Origin

BENCH = Path(__file__).parents[2] / "scripts" / "bench.py"
NOW = 1_000_000_000.0
FLOOR = 0.3


def engram(name: str, text: str | None = None, **fields: Any) -> Engram:
    told: dict[str, Any] = {"asked_at": NOW} | fields
    return Engram(name, name, "A", "session", "ann", text or f"words of {name}", "", Origin.ASSISTANT, **told)


def candidate(name: str, *, words: float = 0.0, cosine: float | None = None, **fields: Any) -> Candidate:
    return Candidate(engram(name, **fields), words, cosine=cosine)


def ranked(*candidates: Candidate, limit: int = 5) -> list[EngramHit]:
    return list(rank(candidates, now=NOW, relevance_floor=FLOOR, limit=limit).hits)


def names(*candidates: Candidate, limit: int = 5) -> list[str]:
    return [hit.engram.engram_id for hit in ranked(*candidates, limit=limit)]


def test_what_has_words_and_meaning_comes_before_what_has_more_of_one() -> None:
    both = candidate("both", words=0.5, cosine=0.5)
    assert names(candidate("words", words=0.7, cosine=0.1), both, candidate("meaning", cosine=0.7))[0] == "both"


def test_a_hit_tells_what_its_score_is_made_of() -> None:
    first, _ = ranked(
        candidate("a", words=0.6, cosine=0.5, score=5.0, sentiment=1), candidate("b", words=0.2, cosine=0.4)
    )
    assert first.factors == Factors(recency=0.02, critic=0.06, rating=0.10)
    assert (first.words, first.meaning, first.fused, first.score) == pytest.approx((0.6, 0.5, 0.55, 0.55 * 1.18))
    assert first.parts == {"words": 0.6, "meaning": 0.5, "fused": 0.55, "threshold": 0.11, "in_period": 0.0,
                           "recency": 0.02, "critic": 0.06, "rating": 0.1}  # fmt: skip


def test_a_word_of_the_exchanges_before_counts_less_than_an_own_one() -> None:
    own, borrowed = Candidate(engram("own"), 0.5, cosine=0.4), Candidate(engram("borrowed"), 0.0, 0.5, 0.4)
    hits = ranked(borrowed, own)
    assert [(hit.engram.engram_id, hit.words) for hit in hits] == [("own", 0.5), ("borrowed", pytest.approx(0.2))]


def test_what_was_said_in_the_time_asked_about_comes_first_of_what_fits_alike() -> None:
    then = Candidate(engram("then"), 0.4, cosine=0.3, in_period=True)
    assert names(candidate("other", words=0.5, cosine=0.4), then) == ["then", "other"]
    assert names(candidate("far better", words=0.9, cosine=0.6), then) == ["far better", "then"]


@given(
    age=st.floats(-1e9, 1e10), score=st.one_of(st.none(), st.floats(1, 5)), sentiment=st.sampled_from([None, -1, 0, 1])
)
def test_factors_stay_within_a_fifth(age: float, score: float | None, sentiment: int | None) -> None:
    made = factors(engram("a", asked_at=NOW - age, score=score, sentiment=sentiment), NOW)
    assert 1 - MAX_FACTOR <= made.product <= 1 + MAX_FACTOR


def test_of_two_that_fit_alike_the_better_rated_comes_first() -> None:
    liked, disliked = candidate("liked", cosine=0.50, sentiment=1), candidate("disliked", cosine=0.51, sentiment=-1)
    assert names(disliked, liked) == ["liked", "disliked"]


def test_no_rating_lifts_what_fits_badly_over_what_fits_well() -> None:
    others = [candidate(f"other {number}", words=0.3, cosine=0.8 - number / 100) for number in range(30)]
    liked = candidate("liked", cosine=0.31, sentiment=1, score=5.0)
    assert names(*others, liked, limit=40).index("liked") > 10


def test_where_nothing_is_relevant_nothing_is_found_and_what_was_nearest_is_told() -> None:
    far = [candidate("a", cosine=0.1), candidate("b", words=0.02, cosine=0.19)]
    made = rank(far, now=NOW, relevance_floor=FLOOR, limit=1)
    assert made.hits == ()
    assert [(hit.engram.engram_id, hit.cosine, hit.threshold) for hit in made.nearest] == [("b", 0.19, 0.11)]
    assert rank([], now=NOW, relevance_floor=FLOOR, limit=5).nearest == ()


def crowd(cosine: float, words: float = 0.0) -> list[Candidate]:
    return [candidate(f"crowd{number}", words=words, cosine=cosine) for number in range(CROWD)]


def test_where_all_are_a_little_close_nothing_is_relevant() -> None:
    assert names(*crowd(0.4)) == []


def test_what_stands_out_from_the_crowd_is_relevant_and_tells_how_far_it_had_to() -> None:
    (first, *_) = ranked(*crowd(0.4), candidate("best", cosine=0.53))
    assert (first.engram.engram_id, first.threshold) == ("best", pytest.approx(0.26))
    assert names(*crowd(0.4), candidate("best", cosine=0.51)) == []
    assert "words" in names(*crowd(0.4), candidate("words", words=0.45, cosine=0.1))


def test_what_superseded_a_hit_comes_right_before_it_even_if_nothing_else_found_it() -> None:
    old = candidate("old", words=0.9, cosine=0.9, superseded_by="new")
    hits = ranked(old, Candidate(engram("new")), candidate("other", cosine=0.4))
    assert [hit.engram.engram_id for hit in hits] == ["new", "old", "other"]
    assert (hits[0].successor_of, hits[0].words, hits[0].cosine) == ("old", 0.0, None)
    assert hits[0].score == hits[1].score


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


async def test_the_bundled_model_finds_what_is_asked_in_other_words() -> None:
    """The smallest set of the benchmark, within its limits."""
    bench = await asyncio.create_subprocess_exec(
        sys.executable, str(BENCH), "memory", "--small", stdout=asyncio.subprocess.PIPE
    )
    told, _ = await bench.communicate()
    assert bench.returncode == 0, told.decode()
