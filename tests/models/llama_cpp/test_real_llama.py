"""A small real model, SmolLM2-135M, in a real llama.cpp as we start it: how soon it is free after a stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import pytest

from local.models.chat import ContentDelta, ProgressDelta
from local.models.openai import OpenAIModel
from local.models.servers import ServerSpec
from tests.models.llama_cpp.real_llama import served, smollm2, spec_of

SECONDS = 170.0
# test_llama_cpp.py shows the rest on a model of four megabytes, and there is nothing to wait for while that reads
pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180)]
MODEL = smollm2().stem
LONG = " ".join(f"Item {number} costs {number * 7 % 13} coins." for number in range(40))
SHORT = [{"role": "user", "content": "What is the capital of France?"}]
OPTIONS = {"temperature": 0, "num_predict": 8}
LIMITS: Any = {"first_token_seconds": SECONDS, "between_tokens_seconds": SECONDS, "timeout_seconds": SECONDS}


def long(number: int) -> list[dict[str, Any]]:
    """A prompt of about 500 tokens that no earlier one has begun like."""
    return [{"role": "user", "content": f"{number}. {LONG} Which item is the cheapest?"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerSpec]:
    with served(spec_of(smollm2(), "--ctx-size", "4096"), tmp_path_factory.mktemp("llama")) as spec:
        yield spec


@pytest.fixture
async def model(server: ServerSpec) -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel(f"{server.url}/v1", **LIMITS)
    yield model
    await model.close()


async def first_token(model: OpenAIModel, messages: list[dict[str, Any]]) -> tuple[float, float]:
    """Seconds until the first token, and of these until the prompt was being read."""
    began, heard = time.monotonic(), 0.0
    async with asyncio.timeout(SECONDS), aclosing(model.chat(MODEL, messages, options=OPTIONS)) as deltas:
        async for delta in deltas:
            heard = heard or time.monotonic() - began
            if isinstance(delta, ContentDelta):
                return time.monotonic() - began, heard
    raise AssertionError("it said nothing")


async def test_after_a_stop_the_model_is_free_as_soon_as_its_batch_is_read(model: OpenAIModel) -> None:
    times: list[float] = []
    async with asyncio.timeout(SECONDS), aclosing(model.chat(MODEL, long(2), options=OPTIONS)) as deltas:
        async for delta in deltas:
            assert isinstance(delta, ProgressDelta)
            times.append(time.monotonic())
            if len(times) == 4:
                break
    batch = max(after - before for before, after in pairwise(times))
    until_first, until_read = await first_token(model, SHORT)
    assert until_read <= max(3.0, 3 * batch), f"a batch takes {batch:.1f} s, the first token {until_first:.1f} s"
