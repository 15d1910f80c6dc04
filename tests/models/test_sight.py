"""What is said of a picture that a model cannot look at."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from local.models import settings as sight
from local.models.chat import ModelInfo
from local.models.router import connect
from local.models.settings import Endpoint, Routing, cannot_see, is_blind


async def nobody() -> Sequence[str]:
    return []


async def two() -> Sequence[str]:
    return ["ollama/llava:7b", "box/qwen-vl"]


async def silent() -> Sequence[str]:
    await asyncio.Event().wait()
    return []


def test_a_model_whose_server_does_not_say_what_it_can_do_is_not_blind() -> None:
    assert not is_blind(ModelInfo("m", frozenset()))
    assert not is_blind(ModelInfo("m", frozenset({"vision"})))
    assert is_blind(ModelInfo("m", frozenset({"completion"})))


async def test_models_that_can_see_are_recommended() -> None:
    assert "ollama/llava:7b, box/qwen-vl can" in str(await cannot_see("m", two))


async def test_where_none_can_see_one_to_pull_is_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sight, "_LOOK_SECONDS", 0.01)
    for others in (None, nobody, silent):
        error = await cannot_see("m", others)
        assert (error.kind, "model pull gemma4:12b" in str(error)) == ("unsupported", True)


async def test_a_server_that_does_not_answer_names_no_model() -> None:
    router = connect(Routing.to_one("ollama", Endpoint(kind="ollama", url="http://127.0.0.1:1")), timeout_seconds=5)
    assert router.seeing is not None and await router.seeing() == []
    await router.close()
