"""What the environment says of collectors of traces is for other programs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from local.api.app import routed


async def test_nothing_is_told_to_a_collector_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    told = list[str]()
    said = asyncio.Queue[Any]()
    for kind in ("lifespan.startup", "lifespan.shutdown"):
        said.put_nowait({"type": kind})

    async def send(message: Any) -> None:
        told.append(message["type"])

    await routed.__wrapped__()({"type": "lifespan", "state": {}}, said.get, send)
    assert told == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert caplog.messages == [], "not so much as an attempt"
