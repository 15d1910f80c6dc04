"""From candidates to hits: words and meaning as one score, bounded factors, what replaces what, near-duplicates, and a
threshold. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from local.services.engrams.engram import Engram
from local.services.engrams.facts import Outdated
from local.services.engrams.vectors import CONTEXT_WEIGHT
from local.services.engrams.words import content_words


@dataclass(frozen=True, slots=True)
class Weights:
    """Every number that the order of hits depends on. `bench.py memory` prints what each is worth on paraphrases and
    on dialogue: words alone lose on the one, meaning alone on the other."""

    words: float = 0.5  # of the words against the meaning
    context: float = CONTEXT_WEIGHT  # of a word in the exchanges before, as of their meaning in the vectors
    period: float = 0.2  # for what was said in the time that the question names
    # The best one has to stand out: by this much from nothing, and from this share of what the crowd reaches.
    stands_out: float = 0.11
    crowd_share: float = 0.75
    recency: float = 0.02  # how far each factor goes at most, both ways
    critic: float = 0.06
    rating: float = 0.10


WEIGHTS = Weights()
MAX_FACTOR = 0.20
CROWD = 30  # the crowd reaches what the 30th does: in a large memory, some text is close to any question
RELATED = 0.3  # what a cosine at the embedder's `relevance_floor` counts for; 1 counts for 1
HALF_LIFE_SECONDS = 30 * 24 * 3600.0
DUPLICATE = 0.9  # share of common words from which two exchanges say the same


@dataclass(frozen=True, slots=True)
class Candidate:
    """An engram that was found by its words, by its vector, by its time, or as the successor of one that was.

    `coverage` is how much of the question's words it has, 1 for all, `context` how much only the exchanges before it
    have; `cosine` is None where it has no vector, or the question has none.
    """

    engram: Engram
    coverage: float = 0.0
    context: float = 0.0
    cosine: float | None = None
    in_period: bool = False


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

    `score` is `fused` times the factors; `fused` is made of `words` and `meaning`, each up to 1, and a little more for
    what is `in_period`. `threshold` is what the best one had to reach without that. `folded` are engrams that say the
    same, older ones; `successor_of` the found engram that this one has superseded; `outdated` what it says that holds
    no more.
    """

    engram: Engram
    score: float
    fused: float
    factors: Factors
    words: float
    meaning: float
    cosine: float | None = None
    in_period: bool = False
    threshold: float = 0.0
    folded: tuple[str, ...] = ()
    successor_of: str | None = None
    outdated: tuple[Outdated, ...] = ()

    @property
    def parts(self) -> dict[str, float]:
        """The numbers that the score is made of, by name."""
        made = {"words": self.words, "meaning": self.meaning, "fused": self.fused, "threshold": self.threshold,
                "in_period": float(self.in_period), **asdict(self.factors)}  # fmt: skip
        return {name: round(value, 6) for name, value in made.items()}


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best hits, best first. Where nothing is relevant there are none, only the `nearest` ones."""

    hits: tuple[EngramHit, ...] = ()
    nearest: tuple[EngramHit, ...] = ()


def rank(
    candidates: Sequence[Candidate], *, now: float, relevance_floor: float, limit: int, weights: Weights = WEIGHTS
) -> Ranked:
    """The best `limit` candidates as hits. `relevance_floor` is the embedder's."""
    scale = _Scale(weights, relevance_floor, now)
    relevances = [scale.relevance(candidate) for candidate in candidates]
    crowd = sorted(relevances, reverse=True)[CROWD - 1 : CROWD]
    threshold = weights.stands_out + sum(weights.crowd_share * reached for reached in crowd)
    hits = [scale.hit(*each, threshold) for each in zip(candidates, relevances, strict=True)]
    hits.sort(key=lambda hit: (-hit.score, -hit.engram.asked_at, hit.engram.engram_id))
    if max(relevances, default=0.0) < threshold:
        return Ranked(nearest=tuple(hits[:limit]))
    relevant = [hit for hit in hits if hit.fused >= weights.stands_out]
    made = {hit.engram.engram_id: hit for hit in hits}
    return Ranked(tuple(_folded(_successors_first(relevant, made), limit)))


@dataclass(frozen=True, slots=True)
class _Scale:
    weights: Weights
    relevance_floor: float
    now: float

    def relevance(self, candidate: Candidate) -> float:
        """How much a candidate has to do with the question, whenever it was said."""
        words = self.words(candidate)
        return self.weights.words * words + (1 - self.weights.words) * self.meaning(candidate.cosine, words)

    def words(self, candidate: Candidate) -> float:
        return min(1.0, candidate.coverage + self.weights.context * candidate.context)

    def meaning(self, cosine: float | None, words: float) -> float:
        """A cosine on a scale that is the same for all models. What has no vector yet is taken to mean what it says."""
        if cosine is None:
            return words
        return max(0.0, 1 - (1 - cosine) * (1 - RELATED) / (1 - min(self.relevance_floor, 0.99)))

    def hit(self, candidate: Candidate, relevance: float, threshold: float) -> EngramHit:
        base = relevance + self.weights.period * candidate.in_period
        adjusted, words = factors(candidate.engram, self.now, self.weights), self.words(candidate)
        meaning = self.meaning(candidate.cosine, words)
        return EngramHit(candidate.engram, base * adjusted.product, base, adjusted, words, meaning, candidate.cosine,
                         candidate.in_period, threshold)  # fmt: skip


def factors(engram: Engram, now: float, weights: Weights = WEIGHTS) -> Factors:
    """What speaks for or against an engram whatever is asked. Age counts less and less, and never more than it may."""
    age = max(0.0, now - engram.asked_at)
    return Factors(
        recency=weights.recency * (2 * 0.5 ** (age / HALF_LIFE_SECONDS) - 1),
        critic=0.0 if engram.score is None else weights.critic * (engram.score - 3) / 2,
        rating=weights.rating * (engram.sentiment or 0),
    )


def _successors_first(hits: Sequence[EngramHit], known: Mapping[str, EngramHit]) -> list[EngramHit]:
    """What holds now comes right before what it has superseded, relevant by itself or not."""
    ordered: dict[str, EngramHit] = {}
    for hit in hits:
        latest = _latest(hit.engram.engram_id, known)
        if latest != hit.engram.engram_id and latest not in ordered:
            score = max(known[latest].score, hit.score)
            ordered[latest] = replace(known[latest], score=score, successor_of=hit.engram.engram_id)
        ordered.setdefault(hit.engram.engram_id, hit)
    return list(ordered.values())


def _latest(engram_id: str, known: Mapping[str, EngramHit]) -> str:
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
    both = len(words) + len(others)
    if abs(len(words) - len(others)) > (1 - DUPLICATE) * both:
        return False  # as most are, without a look at the words
    common = len(words & others)
    if both - 2 * common > (1 - DUPLICATE) * (both - common):
        return False
    return not any(character.isdigit() for word in words ^ others for character in word)
