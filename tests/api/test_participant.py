"""The frontend as a participant: its settings, its socket, its end."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.api.app import ApiConfig, ApiParticipant
from local.core.config import layers_for, load
from local.core.errors import ConfigError
from local.queries import asker
from local.runtime.participant import Resources

System = Any  # of conftest.py


def test_without_a_socket_there_is_no_frontend() -> None:
    with pytest.raises(ConfigError, match="--api"):
        ApiParticipant.build(ApiConfig(), Resources(Path()))


def test_a_socket_that_others_reach_needs_a_token() -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:
        resources = Resources(Path(), listener=listener)
        with pytest.raises(ConfigError, match="LOCAL2_API_TOKEN"):
            ApiParticipant.build(ApiConfig(), resources)
        ApiParticipant.build(ApiConfig(api_token="secret"), resources)


def test_the_defaults_are_those_of_the_file(tmp_path: Path) -> None:
    assert load("api", ApiConfig, layers_for(tmp_path)) == ApiConfig()


def test_the_token_is_not_shown_when_the_settings_are() -> None:
    assert "secret" not in repr(ApiConfig(api_token="secret"))


async def test_clients_that_come_while_the_frontend_restarts_are_served_by_the_next_one(system: System) -> None:
    async with system.frontend() as client:
        await client.get("/health")
    async with system.client() as client:
        waiting = asyncio.create_task(client.post("/query", json={"query": "hello"}))
        async with system.frontend():
            assert (await waiting).json()["answer"] == "Hi there."


async def test_answers_are_not_held_back_by_nagle(client: httpx.AsyncClient, system: System) -> None:
    assert system.listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_who_waits_for_an_answer_is_told_that_the_frontend_closes(system: System) -> None:
    async with system.client() as client:
        async with system.frontend():
            asking = asyncio.create_task(client.post("/query", json={"query": "hold on", "query_id": "q"}))
            await system.generator.heard.wait()
        answer = await asking
    assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "stopping")
    assert "q" in system.generator.turns


async def test_a_query_that_the_journal_does_not_confirm_is_503(
    bare_system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asker.AskTimeouts, "__init__", _impatient(asker.AskTimeouts.__init__))
    async with bare_system.frontend() as client:
        refused = await client.post("/query", json={"query": "hello"})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "not_confirmed")
    assert refused.headers["retry-after"]


def _impatient(make: Any) -> Any:
    return lambda self: make(self, until_accepted=0.02)


async def test_an_exception_in_here_is_500_without_its_text(
    client: httpx.AsyncClient, system: System, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from local.queries.session import LoCALSession

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("inner secret")

    monkeypatch.setattr(LoCALSession, "ask", broken)
    answer = await client.post("/query", json={"query": "hello"})
    assert (answer.status_code, answer.json()["error"]["kind"]) == (500, "error")
    assert "secret" not in answer.text
    assert "POST /query: RuntimeError: inner secret" in caplog.text and "Traceback" not in caplog.text
