"""What error bodies of OpenAI-compatible servers mean. The bodies are the servers' own."""

from __future__ import annotations

from typing import Any

import pytest

from local.core.errors import ConfigError, ModelBusy
from local.models.chat import ErrorClass, classify, error_text, openai_errors, retry_after_seconds
from local.models.settings import authorisation, normalise_base_url

KEY = "sk-very-secret-0123456789"


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
BODIES = [
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


@pytest.mark.parametrize(("status", "body", "kind"), BODIES, ids=lambda value: str(value)[:60])
def test_each_failure_has_its_kind_its_text_and_a_class(status: int | None, body: Any, kind: str) -> None:
    error = openai_errors("http://host:1/v1").explain(body, status=status, model="m")
    assert (error.kind, error.status) == (kind, status)
    assert error_text(body) in str(error)
    assert classify(error) is not ErrorClass.UNKNOWN


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (router(502, "Provider returned error", raw="upstream died"), "Provider returned error: upstream died"),
        (google(400, "API key not valid.", "INVALID_ARGUMENT"), "API key not valid."),
        ({"detail": [{"loc": ["body", "model"], "msg": "Field required"}]}, "Field required"),
        ({"detail": "Not Found"}, "Not Found"),
        ([], "no reason given"),
    ],
)
def test_the_sentence_is_found_in_any_body(body: Any, text: str) -> None:
    assert error_text(body) == text


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_says_when_to_come_back(status: int) -> None:
    error = openai_errors("http://host:1").explain("", status=status, model="m", retry_after=7.0)
    assert isinstance(error, ModelBusy)
    assert error.retry_after == 7.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
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


def test_a_server_that_repeats_the_key_does_not_bring_it_into_an_error() -> None:
    errors = openai_errors("http://host:1", KEY)
    assert KEY not in repr(errors)
    assert KEY not in str(errors.explain(openai(f"Incorrect API key provided: {KEY}"), status=401, model="m"))
    assert KEY not in str(errors.bad_stream(f"a line: {KEY}"))


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        (" http://[::1]:8080/ ", "http://[::1]:8080/v1"),
        ("https://openrouter.ai/api/v1/", "https://openrouter.ai/api/v1"),
        ("https://api.example.com/v1/chat/completions", "https://api.example.com/v1"),
        ("HTTPS://host/v1beta/openai", "https://host/v1beta/openai"),
    ],
)
def test_an_address_is_completed(written: str, address: str) -> None:
    assert normalise_base_url(written) == address


@pytest.mark.parametrize(
    "written",
    [
        "",
        "host:1",
        "ftp://host",
        "http://",
        "http://h:99999",
        "http://u:pass@h",
        "http://u:pass@h:99999",
        "http://h/?key=1",
        "http://[x",
    ],
)
def test_what_is_no_address_is_refused_with_an_example_and_without_a_password(written: str) -> None:
    with pytest.raises(ConfigError, match="expected something like http://") as caught:
        normalise_base_url(written)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY} {KEY}", f"ü{KEY}", f"{KEY}\r\nHost: evil"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_told(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        authorisation(key)
    assert KEY not in str(caught.value)
