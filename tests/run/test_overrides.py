"""What flags and system.yaml say of participants' settings."""

from __future__ import annotations

from typing import Any

import pytest

from local.core.config import SystemConfig
from local.run.overrides import GENERATOR, SECOND_RESPONDENT, overrides_for, with_second_respondent


def system(*participants: Any) -> SystemConfig:
    return SystemConfig.model_validate({"participants": participants})


@pytest.mark.parametrize(
    ("participants", "generator", "second", "expected"),
    [
        (["generator"], {}, {}, {}),
        (["generator"], {"model": "a"}, {"temperature": 0.9}, {"model": "a", "temperature": 0.9}),
        ([{"generator": {"model": "a", "think": False}}], {}, {"model": "b"}, {"model": "b", "think": False}),
        (["generator", {"generator_b": {"model": "b"}}], {"model": "a"}, {}, {"model": "b"}),
        (["generator", {"generator_b": {"model": "b"}}], {"model": "a"}, {"model": "c"}, {"model": "c"}),
    ],
)
def test_the_second_respondent_has_the_generators_settings_and_its_own_over_these(
    participants: list[Any], generator: dict[str, Any], second: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert overrides_for(SECOND_RESPONDENT, system(*participants), generator, second) == expected


def test_the_generator_knows_what_is_denied_wherever_that_is_said_of_the_gatekeeper() -> None:
    denied = {"denied_tools": ["web_fetch"]}
    said = system("generator", {"gatekeeper": {**denied, "mode": "plan"}}, "generator_b")
    assert overrides_for(GENERATOR, said, {}, {}) == overrides_for(SECOND_RESPONDENT, said, {}, {}) == denied


def test_a_second_respondent_takes_part_once_and_last() -> None:
    added = with_second_respondent(system("generator", "web_search"))
    assert [entry.name for entry in added.participants] == ["generator", "web_search", "generator_b"]
    listed = system({"generator_b": {"model": "b"}}, "generator")
    assert with_second_respondent(listed) == listed
