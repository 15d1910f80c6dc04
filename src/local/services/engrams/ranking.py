"""From candidates to hits: fusion, bounded factors, what replaces what, near-duplicates, and a threshold. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from local.services.engrams.engram import Engram
from local.services.engrams.facts import Outdated
from local.services.engrams.words import content_words

RRF_K = 20
LEXICAL_WEIGHT = 0.4  # a question shares its meaning with what it is after more often than its words
DENSE_WEIGHT = 1.0
# Differences that say something. Fused by mere order, the length of a text (in its BM25) and its age outweighed a far
# better cosine: recall@1 was below that of dense search alone [m].
COVERAGE_STEP, COSINE_STEP = 0.1, 0.005
COVERAGE_FLOOR = 0.35  # a text with less of the question's words says nothing of it by its words
# In a large memory some text is close to any question. So the best one has to stand out, its cosine halfway from the
# crowd's, that of the 30th, to one that leaves no doubt, which lies this far from the floor to 1. Or it has most of the
# question's words.
CROWD, CERTAIN = 30, 0.36
CERTAIN_COVERAGE = 0.6
MAX_FACTOR = 0.20
RECENCY, CRITIC, RATING = 0.04, 0.06, 0.10  # how far each factor goes at most; together `MAX_FACTOR`
HALF_LIFE_SECONDS = 30 * 24 * 3600.0
# Names and numbers mean nothing to an embedding. What leads by its words so clearly comes second at least: that costs
# no recall on the generated set, and first would cost 1 % of its recall@1 [m].
LEAD, LEADERS_PLACE = 1.5, 1
BORROWED = 2.0  # a word is worth less than half to the exchanges after the one that has it
DUPLICATE = 0.9  # share of common words from which two exchanges say the same


@dataclass(frozen=True, slots=True)
class Candidate:
    """An engram that was found by its words, by its vector, or as the successor of one that was."""

    engram: Engram
    bm25: float | None = None
    coverage: float | None = None
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Factors:
    """What an engram's score is multiplied with: 1 plus these, together within ±0.2."""

    recency: float
    critic: float
    rating: float

    @property
    def product(self) -> float:
        """The multiplier."""
        return 1 + max(-MAX_FACTOR, min(MAX_FACTOR, self.recency + self.critic + self.rating))


@dataclass(frozen=True, slots=True)
class EngramHit:
    """An engram that answers a question, and why it stands where it does.

    `score` is `fused` times the factors. `fused` is 1 for what comes first by words and by vector. Ranks count from 1:
    what differs by less than a step shares one, and what is several steps behind is as many ranks behind. `threshold`
    is the cosine that the best one had to reach, unless it has most of the question's words. `folded` are engrams that
    say the same, older ones; `successor_of` the found engram that this one has superseded; `outdated` what it says
    that holds no more.
    """

    engram: Engram
    score: float
    fused: float
    factors: Factors
    lexical_rank: int | None = None
    bm25: float | None = None
    coverage: float | None = None
    dense_rank: int | None = None
    cosine: float | None = None
    threshold: float | None = None
    folded: tuple[str, ...] = ()
    successor_of: str | None = None
    outdated: tuple[Outdated, ...] = ()


def rank(candidates: Sequence[Candidate], *, now: float, relevance_floor: float, limit: int) -> list[EngramHit]:
    """The best `limit` hits, best first; none where nothing is relevant. `relevance_floor` is the embedder's."""
    threshold = _threshold([each.cosine for each in candidates if each.cosine is not None], relevance_floor)
    if not any(_stands_out(candidate, threshold) for candidate in candidates):
        return []
    lexical = _ranks({each.engram.engram_id: each.coverage for each in candidates}, COVERAGE_STEP)
    dense = _ranks({each.engram.engram_id: each.cosine for each in candidates}, COSINE_STEP)
    relevant = [candidate for candidate in candidates if _is_relevant(candidate, relevance_floor)]
    hits = [_hit(candidate, lexical, dense, now) for candidate in relevant]
    hits.sort(key=lambda hit: (-hit.score, -hit.engram.asked_at, hit.engram.engram_id))
    best = _folded(_successors_first(_sources_first(_leader_ahead(hits)), candidates, now), limit)
    return [replace(hit, threshold=threshold if dense else None) for hit in best]


def factors(engram: Engram, now: float) -> Factors:
    """What speaks for or against an engram whatever is asked. Age counts less and less, and never more than it may."""
    age = max(0.0, now - engram.asked_at)
    return Factors(
        recency=RECENCY * (2 * 0.5 ** (age / HALF_LIFE_SECONDS) - 1),
        critic=0.0 if engram.score is None else CRITIC * (engram.score - 3) / 2,
        rating=RATING * (engram.sentiment or 0),
    )


def fused(lexical_rank: int | None, dense_rank: int | None, *, has_dense: bool) -> float:
    """Reciprocal rank fusion (Cormack et al. 2009), scaled to 1 for what is first in every list that there is."""
    reached = _reciprocal(LEXICAL_WEIGHT, lexical_rank) + _reciprocal(DENSE_WEIGHT, dense_rank)
    return reached / (_reciprocal(LEXICAL_WEIGHT, 1) + (_reciprocal(DENSE_WEIGHT, 1) if has_dense else 0.0))


def _reciprocal(weight: float, position: int | None) -> float:
    return 0.0 if position is None else weight / (RRF_K + position)


def _ranks(scores: Mapping[str, float | None], step: float) -> dict[str, int]:
    """1 for the best, and one more for each whole step that another is behind it."""
    present = {engram_id: score for engram_id, score in scores.items() if score is not None}
    best = max(present.values(), default=0.0)
    return {engram_id: 1 + int((best - score) / step + 1e-9) for engram_id, score in present.items()}


def _threshold(cosines: Sequence[float], relevance_floor: float) -> float:
    """What the best cosine has to reach: the floor where few were compared, more where many are close."""
    if len(cosines) < CROWD:
        return relevance_floor
    certain = relevance_floor + CERTAIN * (1 - relevance_floor)
    return max(relevance_floor, (sorted(cosines)[-CROWD] + certain) / 2)


def _stands_out(candidate: Candidate, threshold: float) -> bool:
    """Whether an engram is about what was asked, not merely closest; by its words alone while it has no vector."""
    enough = COVERAGE_FLOOR if candidate.cosine is None else CERTAIN_COVERAGE
    return (candidate.cosine or 0.0) >= threshold or (candidate.coverage or 0.0) >= enough


def _is_relevant(candidate: Candidate, relevance_floor: float) -> bool:
    return (candidate.cosine or 0.0) >= relevance_floor or (candidate.coverage or 0.0) >= COVERAGE_FLOOR


def _hit(candidate: Candidate, lexical: Mapping[str, int], dense: Mapping[str, int], now: float) -> EngramHit:
    engram = candidate.engram
    lexical_rank, dense_rank = lexical.get(engram.engram_id), dense.get(engram.engram_id)
    base, adjusted = fused(lexical_rank, dense_rank, has_dense=bool(dense)), factors(engram, now)
    return EngramHit(engram, base * adjusted.product, base, adjusted, lexical_rank, candidate.bm25, candidate.coverage,
               dense_rank, candidate.cosine)  # fmt: skip


def _leader_ahead(hits: list[EngramHit]) -> list[EngramHit]:
    """The hits, with the one that leads by its words no further down than its place."""
    first, second = (*sorted((hit.coverage or 0.0 for hit in hits), reverse=True), 0.0, 0.0)[:2]
    leader = next((number for number, hit in enumerate(hits) if first and hit.coverage == first), 0)
    if leader <= LEADERS_PLACE or first < LEAD * second:
        return hits
    moved = replace(hits[leader], score=hits[LEADERS_PLACE].score)
    return [*hits[:LEADERS_PLACE], moved, *hits[LEADERS_PLACE:leader], *hits[leader + 1 :]]


def _sources_first(hits: Sequence[EngramHit]) -> list[EngramHit]:
    """What has the question's words comes before the "thanks" after it, which has them from there."""
    sources = [hit for hit in hits if (hit.coverage or 0.0) >= CERTAIN_COVERAGE]
    ordered: dict[str, EngramHit] = {}
    for hit in hits:
        for source in sources:
            if _borrows(hit, source):
                ordered.setdefault(source.engram.engram_id, replace(source, score=max(source.score, hit.score)))
        ordered.setdefault(hit.engram.engram_id, hit)
    return list(ordered.values())


def _borrows(hit: EngramHit, source: EngramHit) -> bool:
    before, after = source.engram, hit.engram
    if before.session_id != after.session_id or before.asked_at >= after.asked_at:
        return False
    return 0 < BORROWED * (hit.coverage or 0.0) <= (source.coverage or 0.0)


def _successors_first(hits: Sequence[EngramHit], candidates: Sequence[Candidate], now: float) -> list[EngramHit]:
    """What holds now comes right before what it has superseded, found by the question or not."""
    found = {hit.engram.engram_id: hit for hit in hits}
    known = {candidate.engram.engram_id: candidate for candidate in candidates}
    ordered: dict[str, EngramHit] = {}
    for hit in hits:
        latest = _latest(hit.engram.engram_id, known)
        if latest != hit.engram.engram_id and latest not in ordered:
            base = found.get(latest) or _hit(known[latest], {}, {}, now)
            score = max(base.score, hit.score)
            ordered[latest] = replace(base, score=score, successor_of=hit.engram.engram_id)
        ordered.setdefault(hit.engram.engram_id, hit)
    return list(ordered.values())


def _latest(engram_id: str, known: Mapping[str, Candidate]) -> str:
    """The last of the known engrams that superseded one another; where they go round in a circle, the one asked for."""
    seen = [engram_id]
    while (after := known[seen[-1]].engram.superseded_by or "") in known:
        if after in seen:
            return engram_id
        seen.append(after)
    return seen[-1]


def _folded(hits: Iterable[EngramHit], limit: int) -> list[EngramHit]:
    """The best `limit`; of exchanges that say the same the latest stands where the best of them stood."""
    kept: list[tuple[frozenset[str], EngramHit]] = []
    for hit in hits:
        words = content_words(f"{hit.engram.query} {hit.engram.answer}")
        same = next((number for number, (others, _) in enumerate(kept) if _say_the_same(words, others)), None)
        if same is not None:
            kept[same] = (kept[same][0], _merged(kept[same][1], hit))
        elif len(kept) < limit:
            kept.append((words, hit))
    return [hit for _, hit in kept]


def _merged(better: EngramHit, other: EngramHit) -> EngramHit:
    latest, older = (other, better) if other.engram.asked_at > better.engram.asked_at else (better, other)
    folded = (*better.folded, *other.folded, older.engram.engram_id)
    return replace(latest, score=max(better.score, other.score), folded=folded)


def _say_the_same(words: frozenset[str], others: frozenset[str]) -> bool:
    """Nearly the same words, and exactly the same numbers: those are what an update changes."""
    different = words ^ others
    if len(different) > (1 - DUPLICATE) * len(words | others):
        return False
    return not any(character.isdigit() for word in different for character in word)
