"""How able a model is, as far as its name tells."""

from __future__ import annotations

import re
from enum import StrEnum

_WEAK_BELOW, _FRONTIER_FROM = 12.0, 70.0  # billions of parameters
# 12b, e4b, 1.5b, 270m, 8x7b; not the active part of a mixture, as in 30b-a3b.
_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?e?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")
_LARGE = re.compile(r"\b(gpt-[4-9]|o[1-9]|claude|gemini|grok|deepseek-(v\d|r\d|chat|reasoner)|kimi|glm-[4-9])|-large\b")
_SMALLER = re.compile(r"\b(mini|nano|lite|flash|haiku|small|tiny|air)\b")


class Tier(StrEnum):
    """What a model can be trusted with."""

    WEAK = "weak"
    MID = "mid"
    FRONTIER = "frontier"


def tier_of(model: str) -> Tier:
    """By the size in the name, else by the family; a name that tells nothing is `mid`."""
    name = model.lower()
    size = parameters(name)
    if size is not None:
        return Tier.WEAK if size < _WEAK_BELOW else Tier.FRONTIER if size >= _FRONTIER_FROM else Tier.MID
    return Tier.FRONTIER if _LARGE.search(name) and not _SMALLER.search(name) else Tier.MID


def parameters(name: str) -> float | None:
    """The billions of parameters that a name in lower case tells."""
    millions = {"b": 1000.0, "m": 1.0}
    sizes = [int(many or 1) * float(number) * millions[unit] for many, number, unit in _SIZE.findall(name)]
    return max(sizes) / 1000 if sizes else None
