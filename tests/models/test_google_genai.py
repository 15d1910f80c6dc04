"""`backend: google_genai`: Google's models by their address for OpenAI's API, against a recorder that speaks so.

Its format is that of https://ai.google.dev/gemini-api/docs/openai: models as `models/<name>`, the key as a bearer
token, tool calls whole and without an index, an error inside a list.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from local.core.config import SystemConfig, load
from local.core.errors import ConfigError, ModelError
from local.core.routing import ModelsConfig
from local.generator.config import GeneratorConfig
from local.models.chat import ContentDelta, Done, ToolCall
from local.models.router import connect
from local.run.backend import GOOGLE_URL, Backend, choose_backend, with_backend

GEMMA = "gemma-4-27b-it"
MODELS = {"object": "list", "data": [{"id": f"models/{GEMMA}", "object": "model", "owned_by": "google"}]}
CALL = {
    "function": {"arguments": '{"query":"news"}', "name": "web_search"},
    "id": "function-call-1",
    "type": "function",
}
SAYS = [
    {"choices": [{"delta": {"content": "I look.", "role": "assistant"}, "index": 0}], "model": GEMMA},
    {"choices": [{"delta": {"role": "assistant", "tool_calls": [CALL]}, "finish_reason": "tool_calls", "index": 0}],
     "model": GEMMA, "usage": {"completion_tokens": 5, "prompt_tokens": 7, "total_tokens": 12}},
]  # fmt: skip
NO_KEY = [{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}]


class Recorder(ThreadingHTTPServer):
    """Keeps what it is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str, Any]] = []
        self.refuses = False
        self.url = f"http://127.0.0.1:{self.server_port}/v1beta/openai"


class _Handler(BaseHTTPRequestHandler):
    server: Recorder

    def do_GET(self) -> None:
        self._answer(None, json.dumps(MODELS).encode(), "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in SAYS)
        self._answer(body, f"{events}data: [DONE]\n\n".encode(), "text/event-stream")

    def _answer(self, body: Any, answer: bytes, kind: str) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        if self.server.refuses:
            answer, kind = json.dumps(NO_KEY).encode(), "application/json"
        self.send_response(400 if self.server.refuses else 200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def google() -> Iterator[Recorder]:
    with Recorder() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)


def backend(url: str | None = None) -> Backend:
    provider = {"kind": "google_genai", "url": url} if url else {"kind": "google_genai"}
    models = ModelsConfig.model_validate({"providers": {"google_genai": provider}})
    return choose_backend(SystemConfig(backend="google_genai"), models)


async def test_a_chat_goes_to_google_with_the_key_and_its_calls_come_back(
    google: Recorder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "second")
    monkeypatch.setenv("GEMINI_API_KEY", "first")
    with caplog.at_level(logging.WARNING):
        chosen = backend(google.url)
    assert "are sent to Google" in caplog.text
    assert (chosen.name, chosen.routing.first("chat", GEMMA)) == ("google_genai", GEMMA)
    model = connect(chosen.routing, timeout_seconds=20)
    tools = [{"type": "function", "function": {"name": "web_search", "parameters": {"type": "object"}}}]
    deltas = [delta async for delta in model.chat(GEMMA, [{"role": "user", "content": "News?"}], tools=tools)]
    await model.close()
    assert "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta)) == "I look."
    [call] = [delta for delta in deltas if isinstance(delta, ToolCall)]
    assert (call.name, call.arguments) == ("web_search", {"query": "news"})
    assert isinstance(deltas[-1], Done)
    assert {path for path, _, _ in google.asked} == {"/v1beta/openai/models", "/v1beta/openai/chat/completions"}
    assert {key for _, key, _ in google.asked} == {"Bearer first"}
    body = google.asked[-1][2]
    assert (body["model"], body["stream"], body["tools"]) == (GEMMA, True, tools)


async def test_a_refusal_is_in_google_s_words_without_the_key(
    google: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "very-secret")
    google.refuses = True
    model = connect(backend(google.url).routing, timeout_seconds=20)
    with pytest.raises(ModelError, match=r"API key not valid") as caught:
        await model.show(GEMMA)
    await model.close()
    assert "very-secret" not in str(caught.value)


def test_without_a_key_it_says_which_one() -> None:
    with pytest.raises(ConfigError, match="google_genai needs a key: set the environment variable GEMINI_API_KEY"):
        backend()


def test_without_an_address_it_is_google_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    endpoint = backend().routing.endpoints["google_genai"]
    assert (endpoint.url, endpoint.api_key_variable) == (GOOGLE_URL, "GEMINI_API_KEY")


def test_the_plan_s_place_for_it_is_generator_yaml(tmp_path: Path) -> None:
    (tmp_path / "generator.yaml").write_text(f"backend: google_genai\nmodel: {GEMMA}\n")
    named = load("generator", GeneratorConfig, [tmp_path]).backend
    assert with_backend(SystemConfig(), named).backend == "google_genai"
    assert with_backend(SystemConfig(backend="ollama"), named).backend == "ollama"
    assert with_backend(SystemConfig(), None).backend == "auto"
    (tmp_path / "generator.yaml").write_text("backend: google_genal\n")
    with pytest.raises(ConfigError, match=r"generator\.yaml:1: backend: .*google_genai"):
        load("generator", GeneratorConfig, [tmp_path])
