"""Which hits of a search are put before a model unasked: only exchanges that clearly fit the question.

What a tool's search finds may fit only a little, because the model has asked for it and looks for an answer in it. What
it has not asked for has to be right: something doubtful misleads a small model and takes room in every prompt. So words
and meaning both have to be near, the hit has to stand out from the crowd, and whatever is less near than the best one
is left out. The limits were chosen on two sets, one by hand and one that is public; docs/memory.md has the figures.
"""

from __future__ import annotations

from collections.abc import Iterable

from local.services.engrams.ranking import EngramHit
from local.services.engrams.words import telling_words

LOOKED_AT = 8  # hits
MOST = 3
WORDS, MEANING, FUSED = 0.4, 0.4, 0.6
ABOVE_CROWD = 0.25  # of the fused score, above the one that a search needs to find anything
OF_BEST = 0.9  # of the best one's score
WORDS_ALONE, LEAST_WORDS = 0.9, 3  # where meaning is not compared: this share of the question's words, of so many


def clear(question: str, hits: Iterable[EngramHit], limit: int) -> tuple[EngramHit, ...]:
    """The exchanges that clearly fit the question, best first, at most three. None of them is a note, and none says
    what no longer holds."""
    words = len(telling_words(question))
    fitting = [hit for hit in hits if _is_clear(hit, words) and _holds(hit)]
    return tuple(hit for hit in fitting[: min(limit, MOST)] if hit.score >= OF_BEST * fitting[0].score)


def _is_clear(hit: EngramHit, words: int) -> bool:
    stands_out = hit.fused >= max(FUSED, hit.threshold + ABOVE_CROWD)
    if hit.cosine is None:
        return stands_out and words >= LEAST_WORDS and hit.words >= WORDS_ALONE
    return stands_out and hit.words >= WORDS and hit.meaning >= MEANING


def _holds(hit: EngramHit) -> bool:
    return hit.engram.note_of is None and hit.engram.superseded_by is None and not hit.outdated
