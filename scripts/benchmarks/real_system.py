"""LoCAL2 on a real model: a whole system on data of its own, its llama.cpp behind a proxy that records, and the means
to count tokens by that model's own tokenizer."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks import recorded_xllamacpp_server
from benchmarks.figure import BenchmarkFailed
from local.cli.client import SystemClient
from local.cli.temporary_system import TemporarySystem, write_settings
from local.core.data_dir import owner_token
from local.core.errors import LocalError

SECONDS = 600.0
RECORDED_SECONDS = 5.0  # an answer may be here before its record is
CONTEXT = 8192
CHAT = "/chat/completions"

Json = dict[str, Any]
Settings = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request to the model server and what came of it; times are seconds of the monotonic clock. `evaluated` are
    the tokens of its prompt that were read anew, `cached` those that were not."""

    body: Json
    began: float
    first: float | None
    ended: float
    text: str
    calls: Sequence[Json]
    evaluated: int
    cached: int

    @property
    def messages(self) -> list[Json]:
        """The conversation as it was sent."""
        messages: list[Json] = self.body["messages"]
        return messages


class RealSystem:
    """A running system; `client` asks it as its owner, `server` is a client of its model server."""

    def __init__(self, system: TemporarySystem, server: httpx.Client, record: Path) -> None:
        self.system, self.server, self._record = system, server, record
        self.token = owner_token(system.data_dir) or ""
        self.client = SystemClient(system.api_url, self.token)

    @property
    def is_asked(self) -> bool:
        """Whether a chat request has ever come to the model server."""
        return any(line["path"].endswith(CHAT) for line in self._lines())

    def exchanges(self) -> list[Exchange]:
        """All chat requests to the model server that have ended, in the order in which they have."""
        return [_exchange(line) for line in self._lines() if line["path"].endswith(CHAT) and "ended" in line]

    def _lines(self) -> list[Json]:
        return list(map(json.loads, self._record.read_text().splitlines())) if self._record.exists() else []

    def turn(self, question: str, after: int = 0) -> list[Exchange]:
        """The requests by which a question was answered, those that say it and have no form to keep to, once the last
        has ended. Raises `BenchmarkFailed` if there are none."""

        def found() -> list[Exchange]:
            return [each for each in self.exchanges()[after:] if _asks(each, question)]

        self.wait_for(lambda: bool(found()) and not found()[-1].calls, RECORDED_SECONDS)
        if not found():
            raise BenchmarkFailed(f"no request to the model says “{question}”")
        return found()

    def wait_for(self, holds: Callable[[], bool], seconds: float = SECONDS) -> bool:
        """Look every so often until it holds; whether it did."""
        end = time.monotonic() + seconds
        while not (held := holds()) and time.monotonic() < end:
            time.sleep(0.2)
        return held

    def tokens(self, text: str) -> int:
        """Of a text, by the model's tokenizer."""
        return len(self._post("/tokenize", {"content": text, "parse_special": True})["tokens"])

    def prompt_tokens(self, body: Json) -> int:
        """Of a whole request, by the model's template and tokenizer."""
        fields: Json = {name: body[name] for name in ("messages", "tools") if name in body}
        return self.tokens(self._post("/apply-template", fields)["prompt"])

    def straight(self, messages: Sequence[Json], **fields: Any) -> str:
        """What the model says without us."""
        body = {"messages": list(messages), "temperature": 0, "max_tokens": 256, **fields}
        answer: str = self._post("/v1/chat/completions", body)["choices"][0]["message"]["content"]
        return answer

    def _post(self, path: str, body: Json) -> Json:
        response = self.server.post(path, json=body)
        if response.is_error:
            raise BenchmarkFailed(f"POST {path} of the model server: {response.status_code}: {response.text[:200]}")
        answer: Json = response.json()
        return answer


@contextmanager
def real_system(
    model: Path,
    *,
    threads: int,
    settings: Settings | None = None,
    server_args: Sequence[str] = (),
    parameters: int | None = None,
) -> Iterator[RealSystem]:
    """Start everything, stop everything; temperature 0. `parameters` is the size that the model is to be taken for.
    Raises `BenchmarkFailed`."""
    with tempfile.TemporaryDirectory(prefix="real-model-") as name:
        folder = Path(name)
        if parameters is not None:  # the size in its name is what a server that says nothing would go by
            named = folder / f"model-{parameters // 1_000_000_000}b.gguf"
            named.symlink_to(model.resolve())
            model = named
        args = ["--ctx-size", str(CONTEXT), "--threads", str(threads), *server_args]
        provider = {
            "kind": "llama_server", "model": str(model.absolute()), "args": args,
            "program": str(_program(folder, parameters)),
        }  # fmt: skip
        config = write_settings(folder / "config", _merged(settings or {}, provider))
        system = TemporarySystem(folder / "data", config_dir=config)
        try:
            system.__enter__()
        except LocalError as error:
            raise BenchmarkFailed(str(error)) from None
        try:
            url = system.facts.model_url.removesuffix("/v1")  # of the proxy
            with httpx.Client(base_url=url, timeout=SECONDS, trust_env=False) as server:
                yield RealSystem(system, server, folder / "record.jsonl")
        finally:
            system.__exit__(None, None, None)


def _program(folder: Path, parameters: int | None) -> Path:
    """The proxy as a program; its name says that it is the package's server, whose arguments it takes."""
    program = folder / "recorded_xllamacpp_server.py"
    wrapped = Path(recorded_xllamacpp_server.__file__)
    lines = [
        f"#!{sys.executable}",
        "import os, runpy",
        f"os.environ['LOCAL2_RECORD'] = {str(folder / 'record.jsonl')!r}",
        f"os.environ['LOCAL2_FAKE_PARAMETERS'] = {str(parameters or '')!r}",
        f"runpy.run_path({str(wrapped)!r}, run_name='__main__')",
    ]
    program.write_text("\n".join(lines) + "\n")
    program.chmod(0o700)
    return program


def _merged(settings: Settings, provider: Json) -> dict[str, dict[str, Any]]:
    ours: dict[str, dict[str, Any]] = {
        "system": {"backend": "llama_server"},
        "models": {"providers": {"llama_server": provider}},
        # On a busy machine a model takes many times as long, and what is measured is not that.
        "generator": {"temperature": 0, "timeout_seconds": SECONDS},
        "critic": {"timeout_seconds": SECONDS},
        "memory": {"timeout_seconds": SECONDS},
    }
    return {name: {**ours.get(name, {}), **settings.get(name, {})} for name in {**ours, **settings}}


def _exchange(line: Json) -> Exchange:
    timings = line["timings"]
    return Exchange(
        line["body"], line["began"], line["first"], line["ended"], line["text"], line["calls"],
        timings.get("prompt_n", 0), timings.get("cache_n", 0),
    )  # fmt: skip


def _asks(exchange: Exchange, question: str) -> bool:
    said = (str(message.get("content")) for message in exchange.messages if message["role"] == "user")
    last = list(said)[-1:]
    is_system = exchange.messages[0]["role"] == "system"
    return "response_format" not in exchange.body and is_system and any(text.endswith(question) for text in last)


def load() -> str:
    """What else runs on this machine, as every measure has to say."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
