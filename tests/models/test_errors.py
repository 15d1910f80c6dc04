"""What the errors of model servers mean, and their addresses and keys. Bodies are written as the servers write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.core.errors import ConfigError, ModelBusy
from local.models.chat import ErrorClass, classify, error_text, ollama_errors, openai_errors, retry_after_seconds
from local.models.settings import authorisation, is_loopback, normalise_base_url, normalise_host

KEY = "sk-very-secret-0123456789"
LLAMA = {"code": 400, "message": "request (2622 tokens) exceeds the available context size (512 tokens)"}
OLLAMA = [
    (404, "model 'gemma4:12b' not found", "model_missing"),
    (404, 'model "gemma4:12b" not found, try pulling it first', "model_missing"),
    (404, "404 page not found", "unreachable"),
    (400, "the input length exceeds the context length", "context_overflow"),
    (400, json.dumps({"error": LLAMA}), "context_overflow"),
    (None, "prompt too long; exceeded max context length by 12 tokens", "context_overflow"),
    (500, "context deadline exceeded", "server_error"),
    (400, '"gemma3:4b" does not support thinking', "unsupported"),
    (503, "server busy, please try again.  maximum pending requests exceeded", "overloaded"),
    (503, "", "overloaded"),
    (429, "slow down", "overloaded"),
    (500, "model requires more system memory (5.6 GiB) than is available (3.1 GiB)", "out_of_memory"),
    (401, "unauthorized", "unauthorised"),
    (500, "llama runner process has terminated: signal: killed", "server_error"),
    (None, "an error was encountered while running the model", "server_error"),
    (400, "invalid options: num_ctx", "bad_request"),
]


@pytest.mark.parametrize(("status", "text", "kind"), OLLAMA)
def test_each_failure_of_ollama_has_its_kind(status: int | None, text: str, kind: str) -> None:
    error = ollama_errors("http://host:1").explain({"error": text}, status=status, model="gemma4:12b")
    assert (error.kind, error.status) == (kind, status)
    assert error_text(text) in str(error) or str(error) == "model gemma4:12b is not pulled: ollama pull gemma4:12b"


def openai(message: str, kind: str = "invalid_request_error", code: str | None = None) -> Any:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def llama(code: int, message: str, kind: str, **more: Any) -> Any:
    return {"error": {"code": code, "message": message, "type": kind, **more}}


def vllm(code: int, message: str, kind: str = "BadRequestError") -> Any:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def router(code: int, message: str, **metadata: Any) -> Any:
    return {"error": {"code": code, "message": message, **({"metadata": metadata} if metadata else {})}}


def google(code: int, message: str, status: str) -> Any:
    return [{"error": {"code": code, "message": message, "status": status}}]


LENGTH = "This model's maximum context length is 4097 tokens. However, your messages resulted in 6988 tokens."
SIZE = "request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it"
QUOTA = "You exceeded your current quota, please check your plan and billing details."
CHOICE = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
MISSING = "models/gemini-9 is not found for API version v1main, or is not supported for generateContent."
TOKENS = "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576)."
OPENAI = [
    (400, openai(LENGTH, code="context_length_exceeded"), "context_overflow"),
    (401, openai("Incorrect API key provided: sk-abc.", code="invalid_api_key"), "unauthorised"),
    (403, openai("Country, region, or territory not supported", "request_forbidden"), "unauthorised"),
    (404, openai("The model `gpt-9` does not exist or you do not have access to it.", code="model_not_found"),
     "model_missing"),
    (429, openai("Rate limit reached for gpt-4o", "requests", "rate_limit_exceeded"), "rate_limit"),
    (429, openai(QUOTA, "insufficient_quota", "insufficient_quota"), "quota"),
    (400, openai("Unsupported parameter: 'max_tokens'", code="unsupported_parameter"), "unsupported"),
    (500, openai("The server had an error while processing your request.", "server_error"), "server_error"),
    (503, openai("The engine is currently overloaded, please try again later", "server_error"), "overloaded"),
    (400, llama(400, SIZE, "exceed_context_size_error", n_prompt_tokens=4390, n_ctx=4096), "context_overflow"),
    (500, llama(500, "Context size has been exceeded.", "server_error"), "context_overflow"),
    (500, llama(500, "input (600 tokens) is too large to process. increase the physical batch size", "server_error"),
     "context_overflow"),
    (503, llama(503, "Loading model", "unavailable_error"), "overloaded"),
    (401, llama(401, "Invalid API Key", "authentication_error"), "unauthorised"),
    (500, llama(500, "tools param requires --jinja flag", "server_error"), "unsupported"),
    (500, llama(500, "image input is not supported - hint: you may need to provide the mmproj", "server_error"),
     "unsupported"),
    (404, llama(404, "File Not Found", "not_found_error"), "unreachable"),
    (404, vllm(404, "The model `x` does not exist.", "NotFoundError"), "model_missing"),
    (404, {"error": vllm(404, "The model `x` does not exist.", "NotFoundError")}, "model_missing"),
    (400, vllm(400, "max_tokens must be at least 1, got -186."), "context_overflow"),
    (400, {"error": {"message": "The decoder prompt (length 5000) is longer than the maximum model length of 4096."}},
     "context_overflow"),
    (400, vllm(400, CHOICE), "unsupported"),
    (422, {"detail": [{"type": "missing", "loc": ["body", "model"], "msg": "Field required"}]}, "bad_request"),
    (404, {"detail": "Not Found"}, "unreachable"),
    (500, vllm(500, "CUDA out of memory. Tried to allocate 2.00 GiB", "InternalServerError"), "out_of_memory"),
    (400, router(400, "foo/bar is not a valid model ID"), "model_missing"),
    (404, router(404, "No endpoints found for foo/bar."), "model_missing"),
    (404, router(404, "No endpoints found that support tool use."), "unsupported"),
    (402, router(402, "Insufficient credits. Add more using https://openrouter.ai/settings/credits"), "quota"),
    (402, router(402, "This request requires more credits, or fewer max_tokens."), "quota"),
    (403, router(403, "Model requires moderation, your input was flagged", reasons=["violence"]), "filtered"),
    (408, router(408, "Request timed out"), "timeout"),
    (400, router(400, "Provider returned error", raw='{"error":{"message":"prompt is too long: 9 tokens > 8"}}'),
     "context_overflow"),
    (502, router(502, "Provider returned error", raw="upstream died", provider_name="X"), "overloaded"),
    (429, google(429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED"), "rate_limit"),
    (400, google(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"), "unauthorised"),
    (404, google(404, MISSING, "NOT_FOUND"), "model_missing"),
    (400, google(400, TOKENS, "INVALID_ARGUMENT"), "context_overflow"),
    (503, google(503, "The model is overloaded. Please try again later.", "UNAVAILABLE"), "overloaded"),
    (413, "<html><h1>413 Request Entity Too Large</h1></html>", "context_overflow"),
    (504, "context deadline exceeded", "timeout"),
    (504, "", "timeout"),
    (301, "", "unreachable"),
    (405, "Method Not Allowed", "unreachable"),
    (418, "teapot", "bad_request"),
    (None, openai("boom"), "server_error"),
    (None, openai("content_filter: safety"), "filtered"),
    (None, "too many requests", "rate_limit"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind"), OPENAI, ids=lambda value: str(value)[:60])
def test_each_failure_of_other_servers_has_its_kind_and_a_class(status: int | None, body: Any, kind: str) -> None:
    error = openai_errors("http://host:1/v1").explain(body, status=status, model="m", retry_after=7.0)
    assert (error.kind, error.status) == (kind, status)
    assert error_text(body) in str(error) and classify(error) is not ErrorClass.UNKNOWN
    assert (getattr(error, "retry_after", None) == 7.0) is isinstance(error, ModelBusy)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error":{"message":"boom"}}', "boom"),
        ({"error": json.dumps({"error": LLAMA})}, LLAMA["message"]),
        (b"<html>\n  Bad  Gateway", "<html> Bad Gateway"),
        (b"\xff{", "\ufffd{"),
        ('{"half":', '{"half":'),
        (b"", "no reason given"),
        ([], "no reason given"),
        ("x" * 10_000, "x" * 300),
        (router(502, "Provider returned error", raw="upstream died"), "Provider returned error: upstream died"),
        ({"detail": [{"loc": ["body", "model"], "msg": "Field required"}]}, "Field required"),
    ],
)
def test_the_sentence_is_found_in_any_body(body: Any, text: str) -> None:
    assert error_text(body) == text


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
        ({"retry-after": "soon", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({}, None),
    ],
)
def test_the_wish_to_be_asked_later_is_read_in_both_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


def test_a_key_is_in_no_error() -> None:
    errors = openai_errors("http://host:1", KEY)
    told = errors.explain(openai(f"Incorrect API key provided: {KEY}"), status=401, model="m")
    assert KEY not in f"{errors!r} {told} {errors.bad_stream(f'a line: {KEY}')}"
    for key in (f"{KEY}\n", f"{KEY} {KEY}", f"ü{KEY}", f"{KEY}\r\nHost: evil"):  # which no header can carry
        with pytest.raises(ConfigError) as refused:
            authorisation(key)
        assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", "http://127.0.0.1:11434"),
        ("  '127.0.0.1' ", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("host:8080/", "http://host:8080"),
        ("host/path", "http://host:11434/path"),
        ("http://host", "http://host:80"),
        ("HTTPS://host", "https://host:443"),
        ("https://host:443/path/", "https://host:443/path"),
        ("::1", "http://[::1]:11434"),
        ("[::]", "http://[::1]:11434"),
        ("http://[2001:db8::1]/path", "http://[2001:db8::1]:80/path"),
    ],
)
def test_every_form_of_ollama_host_becomes_one_base_address(value: str, expected: str) -> None:
    assert normalise_host(value) == normalise_host(expected) == expected


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        (" http://[::1]:8080/ ", "http://[::1]:8080/v1"),
        ("https://openrouter.ai/api/v1/", "https://openrouter.ai/api/v1"),
        ("https://api.example.com/v1/chat/completions", "https://api.example.com/v1"),
    ],
)
def test_an_address_of_another_server_is_completed(written: str, address: str) -> None:
    assert normalise_base_url(written) == address


def test_what_is_no_address_is_refused_with_an_example_and_without_a_password() -> None:
    for value in ("ftp://host", "host:99999", "host:port", "u:ge/heim@host", "host?x=1", "a b", "http://[::1"):
        with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:11434$") as refused:
            normalise_host(value)
        assert "heim" not in str(refused.value)
    for value in ("", "host:1", "ftp://host", "http://", "http://h:99999", "http://u:heim@h:99999", "http://h/?key=1"):
        with pytest.raises(ConfigError, match="expected something like http://") as refused:
            normalise_base_url(value)
        assert "heim" not in str(refused.value)


def test_only_addresses_of_this_machine_are_loopback() -> None:
    assert all(is_loopback(f"http://{host}:1") for host in ("127.1.2.3", "[::1]", "localhost"))
    assert not any(is_loopback(f"http://{host}:1") for host in ("10.0.0.1", "example.com", "[2001:db8::1]"))
