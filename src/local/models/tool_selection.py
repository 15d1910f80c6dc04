"""How large a model is, in three tiers, by its billions of parameters. No I/O."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Tier(StrEnum):
    """What a model can be trusted with: how long its prompt is and how many tools it is offered."""

    SMALL = "small"
    MID = "mid"
    LARGE = "large"


LEAST: Final[dict[Tier, float]] = {Tier.LARGE: 69.5, Tier.MID: 11.5, Tier.SMALL: 0.0}
"""The billions of parameters from which on a model is of that tier. Models are sold by rounded numbers: "12B" may have
11.8 billion, "70B" 69.7."""


def tier_of(parameters: float | None) -> Tier:
    """The tier of a model with so many billions of parameters; one of unknown size counts as small."""
    if parameters is None:
        return Tier.SMALL
    return next((tier for tier, least in LEAST.items() if parameters >= least), Tier.SMALL)
