"""Three NATS servers for a test."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.nats_cluster import HOSTS, IS_POSSIBLE, Cluster


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    if not IS_POSSIBLE:
        pytest.skip("needs nats-server, and loopback addresses as Linux has them")
    cluster = Cluster(tmp_path / "servers")
    for number in range(len(HOSTS)):
        cluster.start(number)
    try:
        await cluster.ready()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(tmp_path / "servers", ignore_errors=True)
