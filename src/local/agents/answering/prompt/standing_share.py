"""How much of a model's window what the owner has written may take, as it is told before every question. No I/O."""

from __future__ import annotations

from dataclasses import replace

from local.agents.answering.context.token_budget import TokenMeter, size_of
from local.instructions.sourced_text import SourcedText
from local.instructions.standing_texts import StandingTexts

SHARE = 0.4  # of the window, for all of it


def fitting(texts: StandingTexts, window: int) -> StandingTexts:
    """As many of the texts as fit, the instructions of the settings first, the soul last; the others are a problem
    each."""
    room, meter, problems = int(window * SHARE), TokenMeter(), list[str]()

    def fits(text: SourcedText) -> bool:
        nonlocal room
        tokens = meter.tokens(size_of(text.text))
        if tokens > room:
            problems.append(f"{text.origin} is left out: with {tokens} tokens it has no room, {room} are left for it")
            return False
        room -= tokens
        return True

    told = tuple(filter(fits, texts.instructions))
    soul = texts.soul if texts.soul and fits(texts.soul) else None
    return replace(texts, instructions=told, soul=soul, problems=(*texts.problems, *problems))
