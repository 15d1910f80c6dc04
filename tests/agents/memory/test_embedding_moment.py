"""What was answered is embedded when users are quiet: no model is asked for it at the end of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from local.memory.messages import MemoryIngested
from local.models import arbiter as quiet_period

NEVER = 1e9  # seconds


class NotingEmbedder:
    """Notes what it is asked."""

    name, dimensions, relevance_floor = "noting", 2, 0.0

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        return np.ones((len(texts), 2), np.float32)


async def test_the_embedder_is_asked_when_the_quiet_period_has_begun(
    remembering: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, embedder = (await remembering.serve()).participant, NotingEmbedder()
    quiet, engrams = memory._quiet, memory._engrams
    engrams.use(embedder)
    await engrams.settled()
    with monkeypatch.context() as patch:
        patch.setattr(quiet_period, "QUIET_SECONDS", asyncio.get_running_loop().time() / 2)  # begins, if nobody answers
        patch.setattr(quiet_period, "LONGEST_SECONDS", NEVER)
        await remembering.answered("q", "I like zebras")
        await remembering.door.hears(MemoryIngested)  # a turn's last step
        await until(lambda: quiet._begins or embedder.texts)
        assert embedder.texts == []
    quiet._look()  # as the loop does when it is time
    await engrams.settled()
    assert any("zebras" in text for text in embedder.texts)
