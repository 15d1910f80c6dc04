"""Who judges, and how it is asked, by the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from local.core import config
from local.core.errors import ConfigError
from local.core.routing import Endpoint, ModelsConfig, Routing
from local.critic import agent as critic
from local.critic.agent import CriticAgent, CriticConfig, profile_of
from local.runtime.participant import Resources

SHIPPED = Path(__file__).parents[2] / "config"


def settings(**overrides: Any) -> CriticConfig:
    return config.load("critic", CriticConfig, [SHIPPED], overrides)


def judge_of(tmp_path: Path, backend: str = "ollama", roles: Any = None, **overrides: Any) -> str:
    models = ModelsConfig.model_validate({"roles": roles or {}, "providers": {"ollama": {"kind": "ollama"}}})
    endpoint = Endpoint(kind="ollama", url="http://127.0.0.1:1")
    routing = Routing(config=models, endpoints={"ollama": endpoint}, default="ollama")
    resources = Resources(tmp_path, routing, backend, "gemma4:12b")
    return CriticAgent.build(settings(**overrides), resources).details()["model"]


def test_the_judge_is_the_model_that_answers_unless_one_is_named(tmp_path: Path) -> None:
    assert judge_of(tmp_path) == "gemma4:12b"
    assert judge_of(tmp_path, model="atla/selene-mini") == "atla/selene-mini"
    assert judge_of(tmp_path, roles={"chat": ["ollama/gemma4:26b"]}) == "gemma4:26b"
    assert judge_of(tmp_path, roles={"critic": ["ollama/judge:7b"]}) == "judge:7b"
    assert judge_of(tmp_path, "stand_in") == "stand-in"
    with pytest.raises(ConfigError):
        CriticAgent.build(settings(), Resources(tmp_path))


@pytest.mark.parametrize(
    ("profile", "model", "found"),
    [
        ("auto", "atla/selene-mini", "selene"),
        ("auto", "someone/Prometheus-7b-v2.0", "prometheus2"),
        ("auto", "gemma4:12b", "generic-json"),
        ("generic-json", "atla/selene-mini", "generic-json"),
    ],
)
def test_a_judge_is_asked_as_its_name_tells_unless_the_profile_is_named(profile: Any, model: str, found: str) -> None:
    assert profile_of(profile, model) == found


@pytest.mark.parametrize(("overrides", "window"), [({}, 4096), ({"num_ctx": 8192}, 8192)])
def test_a_judge_has_the_window_of_the_model_that_answers_unless_its_own_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overrides: dict[str, Any], window: int
) -> None:
    made: list[int] = []
    monkeypatch.setattr(critic, "Judge", lambda *_, num_ctx, **others: made.append(num_ctx))
    routing = Routing.to_one("ollama", Endpoint(kind="ollama", url="http://127.0.0.1:1"))
    resources = Resources(tmp_path, routing, "ollama", chat_model="gemma4:12b", chat_num_ctx=4096)
    CriticAgent.build(settings(**overrides), resources)
    assert made == [window]
