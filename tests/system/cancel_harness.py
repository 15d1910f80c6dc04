"""A real system whose model and tool never come to an end by themselves: how soon do they notice a cancel?"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import httpx

from local.cli.temporary_system import write_settings
from tests.warm.warm_system import WarmSystem

Json = dict[str, Any]

SECONDS = 90.0
# By phase: the question that leads into it, and the first event that tells that it has begun.
PHASES = {
    "thinking": ("Think about gulls", "thinking"),
    "content": ("Speak about gulls", "token"),
    "tool": ("Write to the gulls", "tool_call"),
}
PIPE = "news"

# It tells of itself through a pipe in its folder. The clock is the machine's, the same for every process.
LETTER = f'''
"""A letter that is sent at once and never confirmed."""

import asyncio
import time
from pathlib import Path

from local.tools.tool import Tool


class LetterTool(Tool):
    """Send a letter to the gulls."""

    name = "letter"
    effect = "write"
    timeout_seconds = 600

    async def run(self) -> str:
        with (Path(__file__).parent / "{PIPE}").open("w", buffering=1) as news:
            print("sent", file=news)
            try:
                await asyncio.Event().wait()
            finally:
                print(time.monotonic(), file=news)
'''
SCRIPTS = (
    {
        "story": "without an end",
        "chunk_delay_seconds": 600,
        "turns": [
            {"user": "Think about", "replies": [{"thinking": ["Gulls", " are birds."], "content": "Birds."}]},
            {"user": "Speak about", "replies": [{"content": ["Gulls", " are birds."]}]},
        ],
    },
    {"story": "a letter", "turns": [{"user": "Write to", "replies": [{"tool_calls": [{"name": "letter"}]}]}]},
)


class Stage:
    """`responses` are the ends of the queries that were cancelled, in order."""

    def __init__(self, system: WarmSystem, http: httpx.Client, news: TextIO) -> None:
        self.system, self.responses = system, list[Json]()
        self._http, self._news = http, news
        self._stand_in = f"{system.facts.model_url}/stand_in"
        for script in SCRIPTS:
            http.post(f"{self._stand_in}/script", json=script).raise_for_status()

    def seconds_until_noticed(self, phase: str) -> float:
        """From POST /query/{id}/cancel to the end of the connection at the model server, or of the tool's task."""
        question, event = PHASES[phase]
        body = {"query": question, "query_id": f"{phase}-{uuid.uuid4().hex}"}
        headers = {"accept": "text/event-stream"}
        with self._http.stream("POST", f"{self.system.api_url}/query", json=body, headers=headers) as response:
            events = _events(response)
            next(data for name, data in events if name == event)
            if phase == "tool":
                assert self._news.readline() == "sent\n"
            asked = time.monotonic()
            self._http.post(f"{self.system.api_url}/query/{body['query_id']}/cancel").raise_for_status()
            self.responses.append(next(data for name, data in events if name == "response"))
        return (float(self._news.readline()) if phase == "tool" else self._disconnected_at()) - asked

    def _disconnected_at(self) -> float:
        log = self._http.get(f"{self._stand_in}/log", params={"idle": 1}).json()
        return float(log["requests"][-1]["disconnected_at"])


@contextmanager
def running(folder: Path) -> Iterator[Stage]:
    """The system, in this folder."""
    participants = ["generator", "gatekeeper", "my_tools.letter:LetterTool"]
    settings = {"system": {"participants": participants}, "gatekeeper": {"allowed_tools": ["letter"]}}
    config = write_settings(folder / "config", settings)
    tools = config / "my_tools"
    tools.mkdir()
    (tools / "letter.py").write_text(LETTER)
    os.mkfifo(tools / PIPE)
    with (
        open(os.open(tools / PIPE, os.O_RDWR), encoding="utf-8") as news,  # noqa: PTH123 - no end while nobody writes
        WarmSystem(folder / "data", config_dir=config, flags=["--backend", "stand_in"]) as system,
        httpx.Client(timeout=SECONDS, trust_env=False) as http,
    ):
        yield Stage(system, http, news)


def _events(response: httpx.Response) -> Iterator[tuple[str, Json]]:
    name = ""
    for line in response.iter_lines():
        if line.startswith("event:"):
            name = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            yield name, json.loads(line.removeprefix("data:"))
