"""What a later look at a message adds to the facts that were found in it before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from local.services.classifying.lexicon import matters
from local.services.engrams.engram import StatedFact, slot_key
from local.services.engrams.facts import FactFinding, Way
from local.services.engrams.words import content_words


def news(
    findings: Sequence[FactFinding], stated: Sequence[StatedFact] | Sequence[FactFinding]
) -> tuple[FactFinding, ...]:
    """The findings without those that say what is `stated` of the same matter. One that says more of a single fact
    extends that one: "hazelnuts" becomes "hazelnuts (severe)"."""
    return tuple(new for finding in findings if (new := _new(finding, stated)) is not None)


def _new(finding: FactFinding, stated: Sequence[StatedFact] | Sequence[FactFinding]) -> FactFinding | None:
    if finding.way is Way.RETRACT:
        return finding
    same = [fact for fact in stated if _is_same_matter(fact.slot, finding.slot)]
    if _says(" ".join(fact.value for fact in same), finding.value):
        return None
    less = [fact for fact in same if _says(finding.value, fact.value)]
    if len(less) == 1 and finding.certain and finding.confirmed and isinstance(less[0], StatedFact):
        return replace(finding, way=Way.EXTEND, slot=less[0].slot, extends=less[0].value)
    return finding


def _is_same_matter(slot: str, other: str) -> bool:
    return slot_key(slot) == slot_key(other) or bool(matters(slot) & matters(other))


def _says(text: str, value: str) -> bool:
    """Whether all words of a value are in a text, perhaps in another form."""
    there, words = content_words(text), content_words(value)
    if not words:
        return bool(value) and value.casefold() in text.casefold()
    return all(any(a.startswith(b) or b.startswith(a) for b in there) for a in words)
