"""What Ollama's error bodies mean. The texts are those of its releases 0.12 to 0.40."""

from __future__ import annotations

import json

import pytest

from local.models.chat import error_text, ollama_errors

LLAMA_SERVER = json.dumps(
    {"error": {"code": 400, "message": "request (2622 tokens) exceeds the available context size (512 tokens)"}}
)
MEMORY = "model requires more system memory (5.6 GiB) than is available (3.1 GiB)"
BODIES = [
    (404, "model 'gemma4:12b' not found", "model_missing"),
    (404, 'model "gemma4:12b" not found, try pulling it first', "model_missing"),
    (404, "404 page not found", "unreachable"),
    (400, "the input length exceeds the context length", "context_overflow"),
    (400, LLAMA_SERVER, "context_overflow"),
    (None, "prompt too long; exceeded max context length by 12 tokens", "context_overflow"),
    (500, "context deadline exceeded", "server_error"),
    (400, '"gemma3:4b" does not support thinking', "unsupported"),
    (400, "registry.ollama.ai/library/x:latest does not support tools", "unsupported"),
    (503, "server busy, please try again.  maximum pending requests exceeded", "overloaded"),
    (503, "", "overloaded"),
    (429, "slow down", "overloaded"),
    (500, MEMORY, "out_of_memory"),
    (401, "unauthorized", "unauthorised"),
    (500, "llama runner process has terminated: signal: killed", "server_error"),
    (None, "an error was encountered while running the model", "server_error"),
    (400, "invalid options: num_ctx", "bad_request"),
]


@pytest.mark.parametrize(("status", "text", "kind"), BODIES)
def test_each_failure_has_its_kind_and_keeps_its_text(status: int | None, text: str, kind: str) -> None:
    error = ollama_errors("http://host:1").explain({"error": text}, status=status, model="gemma4:12b")
    assert (error.kind, error.status) == (kind, status)
    if kind != "model_missing":
        assert error_text(text) in str(error)


def test_a_missing_model_says_how_to_get_it() -> None:
    body = b'{"error":"model \'gemma4:12b\' not found"}'
    error = ollama_errors("http://h:1").explain(body, status=404, model="gemma4:12b")
    assert str(error) == "model gemma4:12b is not pulled: ollama pull gemma4:12b"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error":"boom"}', "boom"),
        (b'{"error":{"message":"boom"}}', "boom"),
        ({"error": LLAMA_SERVER}, "request (2622 tokens) exceeds the available context size (512 tokens)"),
        (b"<html>\n  Bad  Gateway", "<html> Bad Gateway"),
        (b"\xff{", "\ufffd{"),
        ('{"half":', '{"half":'),
        (b"", "no reason given"),
        (None, "no reason given"),
        ("x" * 10_000, "x" * 300),
    ],
)
def test_the_sentence_is_found_in_any_body(body: object, text: str) -> None:
    assert error_text(body) == text
