"""What an Ollama server's failures mean, as a `ModelError` that says what to do about them. No I/O."""

from __future__ import annotations

import re
from typing import Any

import httpx
from pydantic_core import from_json

from local.errors import ModelError

_LONGEST_TEXT = 300

_BUSY = ("overloaded", "the Ollama server at {server} is busy ({text}): try again in a moment")
_REFUSED = ("unauthorised", "the Ollama server at {server} refused access ({text}): check its key or sign in")

# Texts as Ollama 0.12 to 0.40 and the llama-server inside it write them; the first that matches decides.
_BY_TEXT = (
    (
        # Not "context deadline exceeded", which is Go's word for a timeout.
        re.compile(r"exceed\w* .*context|longer than .*context|exceed_context_size", re.I | re.S),
        (
            "context_overflow",
            "the input does not fit into the context of {model} ({text}): shorten it or raise num_ctx",
        ),
    ),
    (
        re.compile(r"model .*not found|try pulling", re.I | re.S),
        ("model_missing", "model {model} is not pulled: ollama pull {model}"),
    ),
    (re.compile(r"server busy|too many requests|pending requests|overloaded", re.I), _BUSY),
    (re.compile(r"does not support", re.I), ("unsupported", "{text}: choose a model that does")),
    (
        re.compile(r"more system memory|out of memory|failed to allocate|insufficient memory", re.I),
        ("out_of_memory", "{model} does not fit into memory ({text}): choose a smaller model or lower num_ctx"),
    ),
)
_BY_STATUS = {
    401: _REFUSED,
    403: _REFUSED,
    404: ("unreachable", "what answers at {server} is no Ollama server ({text}): check the address"),
    429: _BUSY,
    503: _BUSY,
}


def explain(body: Any, *, status: int | None, model: str, server: str) -> ModelError:
    """The error for an HTTP error body, or for the value of `error` in a line of a stream (then `status` is None)."""
    text = error_text(body)
    kind, advice = next((meaning for pattern, meaning in _BY_TEXT if pattern.search(text)), ("", ""))
    if not kind:
        fallback = "bad_request" if status and 400 <= status < 500 else "server_error"
        kind, advice = _BY_STATUS.get(status or 0, (fallback, "the Ollama server at {server} failed: {text}"))
    return ModelError(advice.format(model=model or "the model", server=server, text=text), kind=kind, status=status)


def error_text(body: Any) -> str:
    """The sentence inside an error body; Ollama may wrap llama-server's JSON as a string in its own."""
    while True:
        if isinstance(body, dict):
            body = body.get("error") or body.get("message") or body.get("detail")
        elif isinstance(body, str | bytes) and body.lstrip()[:1] in ("{", b"{"):
            try:
                body = from_json(body)
            except ValueError:
                break
        else:
            break
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body or "")
    return " ".join(text.split())[:_LONGEST_TEXT] or "no reason given"


def from_transport(error: httpx.HTTPError, *, server: str) -> ModelError:
    """The error for a connection that could not be made, or broke."""
    reason = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        message = f"no Ollama server answers at {server}: start it with `ollama serve` ({reason})"
        return ModelError(message, kind="unreachable")
    return ModelError(f"the connection to the Ollama server at {server} broke: {reason}", kind="stream_cut")


def silent(server: str, path: str, seconds: float) -> ModelError:
    """The error for a server that keeps us waiting."""
    found = f"the Ollama server at {server} sent nothing for {seconds:g} s ({path})"
    message = f"{found}; a large model on a slow machine needs a longer limit"
    return ModelError(message, kind="timeout")


def bad_stream(server: str, found: str) -> ModelError:
    """The error for an answer that is not in Ollama's format."""
    return ModelError(f"the server at {server} sent {found}; is it an Ollama server?", kind="bad_stream")
