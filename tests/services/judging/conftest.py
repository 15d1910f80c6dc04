"""A rubric, and the profiles by name."""

from __future__ import annotations

import pytest

from local.critic.judge import PROFILES
from local.critic.judging import Profile, Rubric


@pytest.fixture
def rubric() -> Rubric:
    return Rubric(
        criteria="Is the answer correct?",
        scores=(
            "All of it is wrong.",
            "Much is wrong.",
            "Half is right.",
            "Nearly all is right.",
            "All of it is right.",
        ),
    )


@pytest.fixture(params=list(PROFILES))
def profile(request: pytest.FixtureRequest) -> Profile:
    return PROFILES[request.param]
