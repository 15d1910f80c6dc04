"""The settings of the critic."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from local.config import Settings
from local.services.judging.profiles import ProfileName
from local.services.judging.rubric import Rubrics

_BY_NAME: dict[str, ProfileName] = {"prometheus": "prometheus2", "selene": "selene"}


class CriticConfig(Settings):
    """`critic.yaml`, which the rubrics stand in; the comments there say what each key means."""

    model: str | None = None
    profile: Literal["auto"] | ProfileName = "auto"
    num_ctx: int | None = Field(None, ge=2048)
    timeout_seconds: float = Field(120, gt=0)
    grade: bool = True
    compare: bool = True
    grade_within_hours: float = Field(24, gt=0)
    rubrics: Rubrics

    @property
    def judges(self) -> str:
        """What there will be of an answer, by the names that doors have for it."""
        return ", ".join(name for name, is_made in (("critique", self.grade), ("pairwise", self.compare)) if is_made)


def profile_of(profile: Literal["auto"] | ProfileName, model: str) -> ProfileName:
    """The profile that was chosen, or the one that the model's name tells; else that of Prometheus."""
    if profile != "auto":
        return profile
    return next((found for word, found in _BY_NAME.items() if word in model.lower()), "prometheus2")
