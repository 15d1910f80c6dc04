"""From a model's reply to what is noted: what may be believed of it, and what each fact does to those before it."""

from __future__ import annotations

from collections.abc import Collection

from local.services.classifying.grounding import is_named, refusal
from local.services.classifying.reply import MAX_ENTITIES, Claim, Reply
from local.services.engrams.classification import Classified, Finding, Way
from local.services.engrams.engram import slot_key

_SHOWN = 80


def decide(reply: Reply, own_words: str, slots: Collection[str]) -> tuple[Classified, tuple[str, ...]]:
    """What is to be noted, and a sentence for each claim that is not. `slots` are those of the user's current facts."""
    believed, refused = list[Claim](), list[str]()
    for claim in reply.facts:
        reason = refusal(claim, own_words, slots)
        if reason is None and claim.retracts and slot_key(claim.slot) not in map(slot_key, slots):
            reason = "nothing is known of it that could be taken back"
        if reason is None:
            believed.append(claim)
        else:
            refused.append(f"{_shown(claim.slot)}: {reason}")
    entities = [name for entity in reply.entities if is_named(name := entity.strip(), own_words)]
    findings = tuple(Finding(_way(claim, believed), claim.slot.strip(), claim.value.strip()) for claim in believed)
    return Classified(True, reply.intent, tuple(dict.fromkeys(entities))[:MAX_ENTITIES], findings), tuple(refused)


def _way(claim: Claim, believed: Collection[Claim]) -> Way:
    if claim.retracts:
        return Way.RETRACT
    values = {
        other.value.strip().casefold()
        for other in believed
        if slot_key(other.slot) == slot_key(claim.slot) and not other.retracts
    }
    return Way.SUPERSEDE if claim.certain and len(values) == 1 else Way.CONTRADICT


def _shown(slot: str) -> str:
    """A slot in a report: what was refused may be anything, a secret, too, so that no value is repeated."""
    printable = "".join(character if character.isprintable() else " " for character in slot)
    return " ".join(printable.split())[:_SHOWN] or "(no slot)"
