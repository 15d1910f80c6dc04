"""The doctor's checks of servers: our own system, the model server, the search providers."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from local.bus.messages import ChildStatus, ParticipantStatus
from local.cli.bus_health import health_of
from local.core.config import SystemConfig
from local.core.data_dir import RunInfo
from local.core.routing import Chains, ModelsConfig
from local.generator.config import GeneratorConfig
from local.run import doctor as machine
from local.run import doctor as participants
from local.run.doctor import DoctorFinding, FindingStatus, ObserverModels, check_model_servers
from local.web.search import WebSearchConfig
from tests.stand_in.server import StandInSettings, serve

OK, WARN, FAIL = FindingStatus
ROOT = Path(__file__).parents[2]
REFUSED = "http://127.0.0.1:1"  # nothing listens on port 1


def facts(api_url: str | None) -> RunInfo:
    return RunInfo(os.getpid(), "ipc:///a", "ipc:///b", False, REFUSED, "ollama", api_url)


def statuses(findings: list[DoctorFinding]) -> dict[str, FindingStatus]:
    return {finding.name: finding.status for finding in findings}


@asynccontextmanager
async def stand_in(*models: str) -> AsyncIterator[str]:
    """The stand-in model server with these models; gives its address."""
    listener, stop = socket.create_server(("127.0.0.1", 0)), asyncio.Event()
    port = listener.getsockname()[1]
    task = asyncio.create_task(serve(StandInSettings(models=models), listener, stop))
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        stop.set()
        await task


@asynccontextmanager
async def web_server(status: int, content_type: str, body: bytes) -> AsyncIterator[str]:
    """Answers every request alike; gives its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def test_a_port_is_free_taken_or_our_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        taken = SystemConfig(api_port=port)
        assert machine.check_port(taken, None).status is FAIL
        assert "our own system" in machine.check_port(taken, facts(f"http://127.0.0.1:{port}")).text
        assert machine.check_port(taken, facts("http://127.0.0.1:9")).status is FAIL
    assert machine.check_port(taken, None).text == f"{port} is free"
    assert machine.check_port(SystemConfig(api_port=0), None).status is OK


async def test_a_running_system_is_as_healthy_as_it_says() -> None:
    assert statuses(await participants.check_health(None)) == {"running system": OK}
    assert statuses(await participants.check_health(facts(None))) == {"running system": OK}
    for body, status in (
        (b'{"status": "ok"}', OK),
        (b'{"status": "degraded"}', WARN),
        (b"[]", WARN),
        (b"<html>", FAIL),
    ):
        async with web_server(200, "application/json", body) as url:
            assert statuses(await participants.check_health(facts(url))) == {"running system": status}
    assert statuses(await participants.check_health(facts(REFUSED))) == {"running system": FAIL}


async def test_a_running_system_tells_who_has_which_problem() -> None:
    details = {"problem": "no model x", "model": "x"}
    health = {"status": "degraded", "participants": [{"name": "generator_b", "details": details}, {"name": "proxy"}]}
    async with web_server(503, "application/json", json.dumps(health).encode()) as url:
        [found] = await participants.check_health(facts(url))
    assert (found.status, found.text.endswith("says it is degraded: generator_b: no model x")) == (WARN, True)


async def test_a_running_system_names_who_has_failed_and_why() -> None:
    rows = [
        {"name": "dice", "state": "failed", "detail": "exit status 1: the dice are lost; next try in 20 s"},
        {"name": "memory", "state": "restarting", "detail": "killed by SIGKILL"},
        {"name": "generator", "state": "ready", "detail": "killed by SIGKILL"},
    ]
    health = {"status": "degraded", "problem": "the data directory is gone", "participants": rows}
    async with web_server(503, "application/json", json.dumps(health).encode()) as url:
        whole, dice, memory = await participants.check_health(facts(url))
    assert whole.text.endswith("says it is degraded: the data directory is gone")
    assert (dice.name, dice.status) == ("dice", FAIL)
    assert dice.text == "dice has failed: exit status 1: the dice are lost; next try in 20 s"
    assert (memory.status, memory.text) == (WARN, "memory is restarting: killed by SIGKILL")


def test_a_system_without_an_api_tells_the_same_on_its_bus() -> None:
    def beat(name: str, pid: int, **fields: Any) -> ParticipantStatus:
        return ParticipantStatus(name=name, kind="x", pid=pid, instance=name, state="ready", **fields)

    dice = ChildStatus(name="dice", kind="tool", state="failed", pid=None, restarts=5, detail="the dice are lost")
    critic = ChildStatus(name="critic", kind="agent", state="ready", pid=7, restarts=0, detail="")
    judge = beat("critic", 7, child="critic", details={"problem": "no model x"})
    health = health_of([beat("supervisor", 1, children=(critic, dice)), judge, beat("doctor", 9)])
    assert health["status"] == "degraded" and participants.problems(health) == ["critic: no model x"]
    [failed] = participants.check_participants(health)
    assert (failed.name, failed.status, failed.text) == ("dice", FAIL, "dice has failed: the dice are lost")
    assert health_of([beat("supervisor", 1, children=(critic,)), beat("critic", 7)])["status"] == "ok"
    assert health_of([judge])["status"] == "degraded"
    off = beat(
        "critic", 7, child="critic", details={"off": "there is no bubblewrap"}
    )  # as the tools for commands tell it
    assert health_of([beat("supervisor", 1, children=(critic,)), off])["status"] == "ok"


async def test_a_server_with_our_model_is_fine() -> None:
    async with stand_in() as url:
        findings = await check_model_servers(SystemConfig(ollama_url=url), GeneratorConfig())
    names = ["model server", "model", "context", "embeddings"]
    assert statuses(findings) == dict.fromkeys(names, OK)
    assert url in findings[0].text


async def test_a_model_that_is_not_pulled_comes_with_the_command_that_pulls_it() -> None:
    async with stand_in("gemma4:e2b") as url:
        findings = await check_model_servers(SystemConfig(ollama_url=url), GeneratorConfig())
    assert statuses(findings) == {"model server": OK, "model": FAIL, "embeddings": OK}
    assert "available are: gemma4:e2b" in findings[1].text
    assert "ollama pull gemma4:12b" in findings[1].fix
    assert "optional" in findings[2].text


async def test_a_model_that_lacks_what_we_need_is_a_warning() -> None:
    async with stand_in() as url:
        findings = await check_model_servers(SystemConfig(ollama_url=url), GeneratorConfig(model="tinyllama"))
        quiet = await check_model_servers(SystemConfig(ollama_url=url), GeneratorConfig(model="tinyllama", think=False))
    assert statuses(findings) == {"model server": OK, "model": WARN, "context": WARN, "embeddings": OK}
    assert "lacks: tools, thinking" in findings[1].text
    assert "at most 2048" in findings[2].fix
    assert "lacks: tools;" in quiet[1].text


async def test_without_a_server_auto_goes_on_with_the_stand_in_and_ollama_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))  # no Ollama is installed
    [auto] = await check_model_servers(SystemConfig(ollama_url=REFUSED), GeneratorConfig())
    [only] = await check_model_servers(SystemConfig(ollama_url=REFUSED, backend="ollama"), GeneratorConfig())
    [none] = await check_model_servers(SystemConfig(ollama_url=REFUSED, backend="stand_in"), GeneratorConfig())
    [bad] = await check_model_servers(SystemConfig(ollama_url="http://[x"), GeneratorConfig())
    assert [auto.status, only.status, none.status, bad.status] == [WARN, FAIL, OK, FAIL]
    assert "the stand-in answers" in auto.text
    assert "ollama serve" in only.fix


async def test_an_ollama_that_is_installed_but_does_not_run_is_fine_because_it_will_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ollama").touch(0o755)
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    [found] = await check_model_servers(SystemConfig(ollama_url=REFUSED), GeneratorConfig())
    assert (found.status, "LoCAL2 starts" in found.text) == (OK, True)
    models = models_with("ollama", start=False)
    [found] = await check_model_servers(SystemConfig(ollama_url=REFUSED, backend="ollama"), GeneratorConfig(), models)
    assert found.status is FAIL


def models_with(provider: str, **settings: object) -> ModelsConfig:
    """The shipped settings, with one provider's changed."""
    kinds = ("ollama", "openai", "llama_server")
    providers = {kind: {"kind": kind, **(settings if kind == provider else {})} for kind in kinds}
    return ModelsConfig.model_validate({"providers": providers})


async def test_an_openai_compatible_server_is_asked_for_our_model() -> None:
    system = SystemConfig(backend="openai")
    async with stand_in("gemma4:12b") as url:
        models = models_with("openai", url=url)
        there = await check_model_servers(system, GeneratorConfig(), models)
        missing = await check_model_servers(system, GeneratorConfig(model="x"), models)
    assert [finding.status for finding in there] == [OK, OK]
    assert [finding.status for finding in missing] == [OK, FAIL]
    assert "x is not available; available are: gemma4:12b" in missing[1].text
    [away] = await check_model_servers(system, GeneratorConfig(), models_with("openai", url=REFUSED))
    [nowhere] = await check_model_servers(system, GeneratorConfig())
    assert (away.status, nowhere.status, "providers.openai.url" in nowhere.text) == (FAIL, FAIL, True)


async def test_llama_server_needs_its_program_and_its_model(tmp_path: Path) -> None:
    system = SystemConfig(backend="llama_server")
    (tmp_path / "llama-server").touch(0o755)
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    settings = {"program": str(tmp_path / "llama-server"), "model": tmp_path / "tiny.gguf"}
    [found, _] = await check_model_servers(system, GeneratorConfig(), models_with("llama_server", **settings))
    assert (found.status, "tiny.gguf; LoCAL2 starts it" in found.text) == (OK, True)
    settings["model"] = tmp_path / "none.gguf"
    [found] = await check_model_servers(system, GeneratorConfig(), models_with("llama_server", **settings))
    assert (found.status, "there is no file" in found.text) == (FAIL, True)


async def test_every_server_of_the_chains_is_examined() -> None:
    async with stand_in() as url:
        roles = {"chat": ["ollama/gemma4:12b", "openai/gemma4:e2b"], "embed": ["ollama/nomic-embed-text"]}
        models = models_with("openai", url=f"{url}/v1").model_copy(update={"roles": Chains.model_validate(roles)})
        found = await check_model_servers(SystemConfig(ollama_url=url), GeneratorConfig(model="not asked"), models)
    assert {finding.status for finding in found} == {OK}
    text = " ".join(finding.text for finding in found)
    assert "nomic-embed-text is pulled; it embeds texts" in text and "gemma4:e2b is available" in text
    assert "not asked" not in text


async def test_a_critic_without_its_model_is_a_warning_on_each_kind_of_server() -> None:
    critic = ObserverModels({"critic": "prometheus"})
    async with stand_in("gemma4:12b") as url:
        ollama = await check_model_servers(SystemConfig(ollama_url=url), GeneratorConfig(), observers=critic)
        models = models_with("openai", url=url)
        openai = await check_model_servers(SystemConfig(backend="openai"), GeneratorConfig(), models, critic)
    assert (statuses(ollama)["model"], statuses(ollama)["critic"]) == (OK, WARN)
    assert (statuses(openai)["model"], statuses(openai)["critic"]) == (OK, WARN)


async def test_something_else_on_the_port_of_the_model_server_is_a_failure() -> None:
    async with web_server(200, "text/html", b"<html>") as url:
        [found] = await check_model_servers(SystemConfig(ollama_url=url, backend="ollama"), GeneratorConfig())
    assert found.status is FAIL
    assert "is it an Ollama server?" in found.text


@pytest.mark.parametrize(
    ("status", "content_type", "expected", "words"),
    [
        (400, "application/json", OK, "answers in JSON"),
        (403, "text/html", FAIL, "add 'json' to search.formats"),
        (429, "text/html", FAIL, "limiter"),
        (404, "text/html", FAIL, "is not SearXNG (HTTP 404)"),
        (200, "text/html", FAIL, "is not SearXNG"),
    ],
)
async def test_searxng_says_whether_it_speaks_json(
    status: int, content_type: str, expected: FindingStatus, words: str
) -> None:
    async with web_server(status, content_type, b"{}") as url:
        found = await participants.check_searxng(url)
    assert found.status is expected
    assert words in found.text + found.fix


@pytest.mark.parametrize("url", [REFUSED, "no address", "http://[x"])
async def test_no_searxng_is_a_failure_with_its_address(url: str) -> None:
    found = await participants.check_searxng(url)
    assert (found.status, url in found.text) == (FAIL, True)


async def test_a_key_is_there_or_its_variable_is_named_and_a_key_is_never_shown() -> None:
    [missing] = await participants.check_search(WebSearchConfig(provider="brave"))
    assert missing.status is FAIL and "BRAVE_API_KEY" in missing.text
    [found] = await participants.check_search(WebSearchConfig(provider="tavily", tavily_api_key="tvly-secret"))
    assert found.status is OK and "secret" not in found.text


async def test_a_provider_that_cannot_look_is_a_warning_if_its_fallback_can() -> None:
    config = WebSearchConfig(provider="brave", fallback_providers=("tavily",), tavily_api_key="key")
    assert [finding.status for finding in await participants.check_search(config)] == [WARN, OK]
    config = WebSearchConfig(provider="brave", fallback_providers=("tavily", "typo"))
    assert [finding.status for finding in await participants.check_search(config)] == [FAIL, FAIL, FAIL]


async def test_that_no_engine_is_chosen_is_a_warning_unless_searxng_is_there() -> None:
    [unchosen] = await participants.check_search(WebSearchConfig(searxng_url=REFUSED))
    assert (unchosen.status, unchosen.text) == (WARN, "no search engine is chosen")
    [wanted] = await participants.check_search(WebSearchConfig(provider="searxng", searxng_url=REFUSED))
    assert wanted.status is FAIL


async def test_canned_results_are_a_warning_and_no_search_at_all_is_fine() -> None:
    assert [f.status for f in await participants.check_search(WebSearchConfig(provider="mock"))] == [WARN]
    assert [f.status for f in await participants.check_search(None)] == [OK]
