"""Where no judge is named, one of its own judges if it is pulled and fits beside the model that answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.core import config
from local.core.routing import Endpoint, Routing
from local.critic.agent import CriticAgent, CriticConfig
from local.critic.judge import JudgeChooser, choose_judge
from local.critic.judging import Case, Rubric
from local.models.ollama import LoadedModel
from local.runtime.participant import Resources

GEMMA, SELENE, PROMETHEUS = "gemma4:12b", "atla/selene-mini:latest", "some/prometheus-7b:latest"
SIZES = {GEMMA: 8_100_000_000, SELENE: 4_900_000_000, PROMETHEUS: 5_100_000_000, "all:latest": 1_000}
GB = 10**9
SHIPPED = Path(__file__).parents[2] / "config"
RUBRIC = Rubric(criteria="Is it right?", scores=("a", "b", "c", "d", "e"))
CASE = Case("How deep?", "Very.")


class FakeOllama:
    """Has these models, pulled and loaded, as /api/tags and /api/ps tell it; /api/chat notes who is asked."""

    def __init__(self, pulled: tuple[str, ...], loaded: dict[str, tuple[int, int]]) -> None:
        self.pulled, self.loaded = pulled, loaded
        self.asked: list[dict[str, Any]] = []
        self.is_broken = False
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split()[1]
        length = next(
            (int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("content-length")), 0
        )
        body = await reader.readexactly(length)
        status, answer = self._answer(path, json.loads(body or b"{}"))
        data = json.dumps(answer).encode() + b"\n"
        about = f"Content-Type: application/x-ndjson\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        writer.write(f"HTTP/1.1 {status} OK\r\n{about}".encode() + data)
        await writer.drain()
        writer.close()

    def _answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        match path:
            case _ if self.is_broken:
                return 500, {"error": "broken"}
            case "/api/tags":
                return 200, {"models": [{"model": name, "size": SIZES[name]} for name in self.pulled]}
            case "/api/ps":
                models = [
                    {"model": name, "size": all_, "size_vram": card} for name, (all_, card) in self.loaded.items()
                ]
                return 200, {"models": models}
            case "/api/show":
                return 200, {"capabilities": ["completion"], "model_info": {}}
            case _:
                self.asked.append(body)
                reply = (
                    "Feedback: good. [RESULT] 4"
                    if "prometheus" in body["model"]
                    else json.dumps({"feedback": "good", "score": 4})
                )
                if "selene" in body["model"]:
                    reply = "**Reasoning:** good\n**Result:** 4"
                return 200, {"model": body["model"], "message": {"role": "assistant", "content": reply}, "done": True}


@asynccontextmanager
async def ollama(*pulled: str, loaded: dict[str, tuple[int, int]] | None = None) -> AsyncIterator[FakeOllama]:
    fake = FakeOllama(pulled, loaded or {})
    async with await asyncio.start_server(fake.serve, "127.0.0.1", 0) as server:
        fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield fake


@pytest.mark.parametrize(
    ("pulled", "loaded", "free", "judge", "why"),
    [
        ((GEMMA,), {}, 99 * GB, None, "no model made for judging is pulled"),
        ((GEMMA, SELENE), {GEMMA: (10 * GB, 0)}, 9 * GB, SELENE, "7.9 GB for atla/selene-mini:latest"),
        ((GEMMA, SELENE), {GEMMA: (10 * GB, 0)}, 7 * GB, None, "would take 7.9 GB .* of 7.0 GB that are free"),
        ((GEMMA, SELENE), {}, 9 * GB, None, "would take 17.6 GB"),  # what answers is yet to be loaded
        ((GEMMA, SELENE), {GEMMA: (10 * GB, 10 * GB)}, 99 * GB, None, "graphics memory"),
        ((GEMMA, SELENE), {GEMMA: (10 * GB, 10 * GB), SELENE: (6 * GB, 6 * GB)}, 0, SELENE, "are both loaded"),
        ((GEMMA, SELENE), {GEMMA: (10 * GB, 0)}, None, None, "unknown"),
        ((GEMMA, PROMETHEUS, SELENE), {GEMMA: (10 * GB, 0)}, 99 * GB, SELENE, "7.9 GB"),
    ],
)
def test_a_judge_of_its_own_is_chosen_where_it_fits(
    pulled: tuple[str, ...], loaded: dict[str, tuple[int, int]], free: int | None, judge: str | None, why: str
) -> None:
    here = [LoadedModel(name, size, vram) for name, (size, vram) in loaded.items()]
    choice = choose_judge(GEMMA, {name: SIZES[name] for name in pulled}, here, free)
    assert choice.name == judge
    assert re.search(why, choice.why), choice.why


async def test_a_judge_beside_the_default_server_is_called_with_its_provider() -> None:
    async with ollama(GEMMA, SELENE) as fake:
        box = Endpoint(kind="openai", url="http://127.0.0.1:1/v1")
        routing = Routing(endpoints={"box": box, "ollama": Endpoint(kind="ollama", url=fake.url)}, default="box")
        assert JudgeChooser.beside(routing, "some-model") is None
        chooser = JudgeChooser.beside(routing, f"ollama/{GEMMA}")
        assert chooser is not None
        choice = await replace(chooser, free_memory=lambda: 99 * GB).choose()
    assert choice.name == f"ollama/{SELENE}"


def critic_at(fake: FakeOllama, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> CriticAgent:
    monkeypatch.setattr("local.critic.judge._free_memory", lambda: 99 * GB)
    routing = Routing.to_one("ollama", Endpoint(kind="ollama", url=fake.url))
    found = config.load("critic", CriticConfig, [SHIPPED], settings)
    return CriticAgent.build(found, Resources(folder, routing, "ollama", GEMMA, chat_num_ctx=32_000))


async def test_the_first_grade_is_already_its_own_judges_in_its_own_manner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ollama(GEMMA, SELENE, loaded={GEMMA: (10 * GB, 0)}) as fake:
        judge = critic_at(fake, tmp_path, monkeypatch)._judge
        name, verdict = await judge.grade(CASE, RUBRIC)
        await judge.close()
    assert (name, verdict.score, judge.name) == (SELENE, 4, SELENE)
    assert [(body["model"], body["options"]["num_ctx"], "format" in body) for body in fake.asked] == [
        (SELENE, 8192, False)
    ]


async def test_while_ollama_does_not_tell_the_model_that_answers_judges_and_it_is_asked_again_after_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ollama(GEMMA, SELENE, loaded={GEMMA: (10 * GB, 0)}) as fake:
        judge = critic_at(fake, tmp_path, monkeypatch)._judge
        judge._clock = lambda: now
        now, fake.is_broken = 100.0, True
        await judge.settle()
        assert judge.name == GEMMA
        now, fake.is_broken = 159.0, False
        await judge.settle()
        assert judge.name == GEMMA
        now = 160.0
        assert (await judge.grade(CASE, RUBRIC))[0] == SELENE
        await judge.close()
