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
    rubrics: Rubrics


def profile_of(profile: Literal["auto"] | ProfileName, model: str) -> ProfileName:
    """The profile that was chosen, or the one that the model's name tells; else that of Prometheus."""
    if profile != "auto":
        return profile
    return next((found for word, found in _BY_NAME.items() if word in model.lower()), "prometheus2")
