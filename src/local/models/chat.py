"""The language-model side as the rest of the system sees it: messages in, typed deltas out."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, Protocol

import httpx
from pydantic_core import from_json

from local.core.errors import ModelBusy, ModelError

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of the model's thinking, in order."""

    text: str


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """A piece of the model's content, in order."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model requests. `id` is the server's and may be empty."""

    name: str
    arguments: Json
    id: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of one model call. Tokens are counted, durations are seconds, both as the server reports them. `server`
    is its name in the settings, where a model has several.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    durations: Mapping[str, float] = field(default_factory=dict)
    server: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """The model has finished this message; nothing follows. `reason` is the server's word (stop, length, …)."""

    usage: Usage
    reason: str = "stop"
    model: str = ""


@dataclass(frozen=True, slots=True)
class Degraded:
    """A note for a person: something was asked for and left out, because this model or server cannot do it."""

    note: str


@dataclass(frozen=True, slots=True)
class Incapable(Degraded):
    """The note that a model cannot do what each call asks of it. A client emits it once for each model."""

    @classmethod
    def of_thinking(cls, model: str) -> Incapable:
        """The note about a model that cannot think."""
        return cls(f"{model} cannot think aloud; it answers without")

    @classmethod
    def of_calling(cls, model: str) -> Incapable:
        """The note about a model that cannot call tools."""
        return cls(f"{model} cannot call tools; it answers without")


@dataclass(frozen=True, slots=True)
class AwayDelta(Degraded):
    """The note that no server answers: the call waits for one, up to its limit."""


@dataclass(frozen=True, slots=True)
class RestartDelta(AwayDelta):
    """The note that the server has died in the middle of its answer, which begins again: the earlier output is
    discarded.
    """


@dataclass(frozen=True, slots=True)
class TokenScore:
    """One generated token, and the natural logarithms of the probabilities of its alternatives."""

    text: str
    alternatives: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Some more of the generated tokens, those of thinking included. Only where asked for and where a server knows."""

    tokens: tuple[TokenScore, ...]


@dataclass(frozen=True, slots=True)
class ProgressDelta:
    """The model's progress with its prompt: `done` of `total` tokens, of which `cached` were read before. Only from
    servers that report it.
    """

    done: int
    total: int
    cached: int = 0


Delta = ThinkingDelta | ContentDelta | ToolCall | TokenScores | ProgressDelta | Degraded | Done


async def whole_reply(stream: AsyncGenerator[Delta, None]) -> tuple[str, Usage]:
    """Return the whole content of a message, and its tokens."""
    said, usage = list[str](), Usage()
    async with aclosing(stream):
        async for delta in stream:
            match delta:
                case ContentDelta(text):
                    said.append(text)
                case RestartDelta():
                    said.clear()
                case Done(used):
                    usage = used
    return "".join(said), usage


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A server's description of one model. `capabilities`: completion, tools, thinking, vision, embedding …;
    `parameters` are billions, None if the server does not report them.
    """

    name: str
    capabilities: frozenset[str]
    context_length: int | None = None
    parameters: float | None = None


class ChatModel(Protocol):
    """One model server. Every failure is a `ModelError` that says what to do; a stream without `Done` is one, too."""

    def chat(
        self,
        model: str,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json] = (),
        think: bool = False,
        options: Mapping[str, Any] | None = None,
        format: Json | None = None,
        logprobs: bool = False,
        in_words: bool = False,
    ) -> AsyncGenerator[Delta, None]:
        """Stream one assistant message, ending with `Done`. Wrap it in `contextlib.aclosing`: closing it closes the
        connection, which stops the model; a bare `break` leaves that to the garbage collector.

        `messages` are Ollama's: {"role": system|user|assistant|tool, "content": str, "thinking"?, "tool_calls"?
        [{"id"?, "function": {"name", "arguments": object}}], "tool_name"?, "tool_call_id"?}. `tools` are {"type":
        "function", "function": {"name", "description", "parameters": JSON Schema}}. `format` is a JSON Schema that the
        content follows; `logprobs` requests `TokenScores`. Both are left out, with a `Degraded`, if a server refuses
        them, and may be ignored by one that does not know them. `in_words` keeps the model from writing a call, where
        its server can do that.
        """
        ...

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order."""
        ...

    async def show(self, model: str) -> ModelInfo:
        """Return the server's description of a model; `ModelError(kind="model_missing")` if it does not have it."""
        ...

    async def load(self, model: str, options: Mapping[str, Any]) -> None:
        """Return when the server has the model in memory; at once where servers have no such thing. The `options` are
        those of the calls to come: a model loaded with others is loaded again."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


# The conversion of a model server's failures to a `ModelError` that says what to do about them. No I/O.

_LONGEST_TEXT = 300
_BUSY = ("overloaded", "rate_limit")


class ErrorClass(StrEnum):
    """The class of a failure, by what a caller can do about it, for all kinds of servers."""

    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    CONTEXT_OVERFLOW = "context_overflow"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    UNKNOWN = "unknown"


_CLASSES = {
    "timeout": ErrorClass.TIMEOUT,
    "rate_limit": ErrorClass.RATE_LIMIT,
    "context_overflow": ErrorClass.CONTEXT_OVERFLOW,
    **dict.fromkeys(
        ("unreachable", "stream_cut", "bad_stream", "bad_call", "overloaded", "server_error"), ErrorClass.TRANSIENT
    ),
    **dict.fromkeys(
        ("model_missing", "unsupported", "out_of_memory", "unauthorised", "quota", "filtered", "bad_request"),
        ErrorClass.PERMANENT,
    ),
}


def classify(error: ModelError) -> ErrorClass:
    """The class of a failure by its kind."""
    return _CLASSES.get(error.kind, ErrorClass.UNKNOWN)


@dataclass(frozen=True, slots=True)
class ErrorTemplate:
    """A kind of error, and a sentence with the placeholders {server}, {model} and {text}."""

    kind: str
    advice: str


@dataclass(frozen=True, slots=True)
class ServerErrors:
    """The errors of one server. `name` is its name, `kin` the expected kind, `start` what to do if it is away.

    The first of `by_text` that matches decides, then `by_status`. `secret` is removed from the server's text.
    """

    server: str
    name: str
    kin: str
    start: str
    by_text: Sequence[tuple[re.Pattern[str], ErrorTemplate]]
    by_status: Mapping[int, ErrorTemplate]
    secret: str = field(default="", repr=False)
    limit: str = ""  # the setting that limits the server's silence

    def explain(self, body: Any, *, status: int | None, model: str, retry_after: float | None = None) -> ModelError:
        """Return the error for an HTTP error body, or for an error in a stream under status 200 (then `status` is
        None).

        `retry_after` are the seconds for which the server does not want another request.
        """
        text = self.hidden(error_text(body))
        searched = f"{text} {error_codes(body)}"
        meaning = next((meaning for pattern, meaning in self.by_text if pattern.search(searched)), None)
        if meaning is None:
            kind = "bad_request" if status and 400 <= status < 500 else "server_error"
            fallback = ErrorTemplate(kind, f"the {self.name} at {{server}} failed: {{text}}")
            meaning = self.by_status.get(status or 0, fallback)
        message = meaning.advice.format(model=model or "the model", server=self.server, text=text)
        if meaning.kind in _BUSY:
            return ModelBusy(message, kind=meaning.kind, status=status, retry_after=retry_after)
        return ModelError(message, kind=meaning.kind, status=status)

    def from_transport(self, error: httpx.HTTPError | httpx.InvalidURL) -> ModelError:
        """The error for a connection that could not be made, or broke."""
        reason = str(error) or type(error).__name__
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
            return ModelError(f"no {self.name} answers at {self.server}: {self.start} ({reason})", kind="unreachable")
        return ModelError(f"the connection to the {self.name} at {self.server} broke: {reason}", kind="stream_cut")

    def silent(self, path: str, seconds: float) -> ModelError:
        """The error for a server that keeps us waiting."""
        found = f"no sign of life from the {self.name} at {self.server} for {seconds:g} s ({path})"
        advice = f"raise {self.limit}" if self.limit else "a large model on a slow machine needs a longer limit"
        return ModelError(f"{found}; {advice}", kind="timeout")

    def cut(self, model: str) -> ModelError:
        """The error for an answer that ended before the model had finished."""
        message = f"the {self.name} at {self.server} stopped in the middle of an answer of {model}"
        return ModelError(message, kind="stream_cut")

    def bad_stream(self, found: str) -> ModelError:
        """The error for an answer that is not in the server's format."""
        message = f"the server at {self.server} sent {self.hidden(found)}; is it {self.kin}?"
        return ModelError(message, kind="bad_stream")

    def hidden(self, text: str) -> str:
        """The text without the secret."""
        return text.replace(self.secret, "***") if self.secret else text


def error_text(body: Any) -> str:
    """The sentence inside an error body, however deep; servers pass on each other's bodies as strings in their own."""
    while True:
        if isinstance(body, list):
            body = body[0] if body else ""
        elif isinstance(body, dict):
            raw = _raw(body)
            body = next((body[key] for key in ("error", "message", "detail", "msg") if body.get(key)), "")
            if raw and isinstance(body, str):
                body = f"{body}: {error_text(raw)}"
        elif isinstance(body, str | bytes) and body.lstrip()[:1] in ("{", b"{", "[", b"["):
            try:
                body = from_json(body)
            except ValueError:
                break
        else:
            break
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body or "")
    return " ".join(text.split())[:_LONGEST_TEXT] or "no reason given"


def error_codes(body: Any) -> str:
    """The words for programs in an error body, `insufficient_quota` or `RESOURCE_EXHAUSTED`, parted by spaces."""
    error = error_object(body)
    return " ".join(word for key in ("code", "type", "status") if isinstance(word := error.get(key), str))


def error_object(body: Any) -> Mapping[str, Any]:
    """Return the object that describes the error in a body; empty if there is none."""
    if isinstance(body, str | bytes):
        try:
            body = from_json(body)
        except ValueError:
            return {}
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return {}
    inner = body.get("error")
    return inner if isinstance(inner, dict) else body


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the Retry-After header in seconds; a date counts from the server's own Date. None if there is none."""
    wish = headers.get("retry-after", "").strip()
    try:
        return max(0.0, float(wish))
    except ValueError:
        pass
    try:
        wait = parsedate_to_datetime(wish) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, wait.total_seconds())


def _raw(body: Mapping[str, Any]) -> Any:
    # OpenRouter reports "Provider returned error" and puts the provider's own text here.
    metadata = body.get("metadata")
    return metadata.get("raw") if isinstance(metadata, dict) else None


# The failures of Ollama and of OpenAI-compatible servers, one table for each kind. No I/O.

_OLLAMA_BUSY = ErrorTemplate("overloaded", "the Ollama server at {server} is busy ({text}): try again in a moment")
_OLLAMA_REFUSED = ErrorTemplate(
    "unauthorised", "the Ollama server at {server} refused access ({text}): check its key or sign in"
)

# Texts as Ollama 0.12 to 0.40 and the llama-server inside it write them.
_OLLAMA_BY_TEXT = (
    (
        # Not "context deadline exceeded", which is Go's word for a timeout.
        re.compile(r"exceed\w* .*context|longer than .*context|exceed_context_size", re.I | re.S),
        ErrorTemplate(
            "context_overflow",
            "the input does not fit into the context of {model} ({text}): shorten it or raise num_ctx",
        ),
    ),
    (
        re.compile(r"model .*not found|try pulling", re.I | re.S),
        ErrorTemplate("model_missing", "model {model} is not pulled: ollama pull {model}"),
    ),
    (re.compile(r"server busy|too many requests|pending requests|overloaded", re.I), _OLLAMA_BUSY),
    (re.compile(r"does not support", re.I), ErrorTemplate("unsupported", "{text}: choose a model that does")),
    (
        re.compile(r"more system memory|out of memory|failed to allocate|insufficient memory", re.I),
        ErrorTemplate(
            "out_of_memory", "{model} does not fit into memory ({text}): choose a smaller model or lower num_ctx"
        ),
    ),
)
_OLLAMA_BY_STATUS = {
    401: _OLLAMA_REFUSED,
    403: _OLLAMA_REFUSED,
    404: ErrorTemplate("unreachable", "what answers at {server} is no Ollama server ({text}): check the address"),
    429: _OLLAMA_BUSY,
    503: _OLLAMA_BUSY,
}


def ollama_errors(server: str) -> ServerErrors:
    """The errors of the Ollama server at that address."""
    return ServerErrors(
        server,
        name="Ollama server",
        kin="an Ollama server",
        start="start it with `ollama serve`",
        by_text=_OLLAMA_BY_TEXT,
        by_status=_OLLAMA_BY_STATUS,
    )


_OPENAI_BUSY = ErrorTemplate(
    "overloaded", "the model server at {server} is busy or still loading ({text}): try again in a moment"
)
_SLOW_DOWN = ErrorTemplate(
    "rate_limit", "the model server at {server} wants to be asked less often ({text}): wait and retry"
)
_OPENAI_REFUSED = ErrorTemplate(
    "unauthorised", "the model server at {server} refused access ({text}): check the API key"
)
_NO_CREDIT = ErrorTemplate(
    "quota", "the account at {server} has no credit left ({text}): add some or use another server"
)
_FILTERED = ErrorTemplate(
    "filtered", "the model server at {server} filters this ({text}): rephrase or use another model"
)
_GAVE_UP = ErrorTemplate("timeout", "the model server at {server} gave up waiting ({text}): try again")
_MOVED = ErrorTemplate("unreachable", "the model server is not at {server} ({text}): check the address")
_TOO_LONG = ErrorTemplate(
    "context_overflow",
    "the input does not fit into the context of {model} ({text}): shorten it, or start the server with a larger one",
)


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.I | re.S)


# The sentences and codes as the servers write them; the first that matches decides.
_OPENAI_BY_TEXT = (
    (_words("insufficient_quota", "insufficient credits", "requires more credits", "insufficient balance"), _NO_CREDIT),
    (
        _words(
            "context_length_exceeded",
            "exceed_context_size",
            r"maximum (context|model) length",
            r"exceed\w* (the |its )?(available |maximum )?context (size|length|window)",
            r"context size has been exceeded",
            r"input token count .*exceeds",
            r"max_tokens must be at least 1, got -",
            r"prompt is too long",
            r"input .*is too large to process",
        ),
        _TOO_LONG,
    ),
    (
        _words("support tool use", "requires --jinja", "enable-auto-tool-choice", "image input is not supported"),
        ErrorTemplate("unsupported", "{model} cannot do this at {server} ({text}): choose a model that can"),
    ),
    (
        _words(
            r"model .*(not found|does not exist|not exist)",
            "model_not_found",
            "not a valid model",
            "no endpoints found for",
            r"models/\S+ is not found",
        ),
        ErrorTemplate("model_missing", "{server} has no model {model} ({text}): choose one that it lists"),
    ),
    (_words(r"api key not valid", r"(invalid|incorrect|missing) api key", "invalid_api_key"), _OPENAI_REFUSED),
    (_words("content_filter", "content management policy", "input was flagged", "requires moderation"), _FILTERED),
    (
        _words("out of memory", "failed to allocate", "insufficient memory"),
        ErrorTemplate("out_of_memory", "{model} does not fit into memory ({text}): use a smaller model or context"),
    ),
    (_words("rate.?limit", "resource_exhausted", "too many requests"), _SLOW_DOWN),
    (_words("loading model", "overloaded", "at capacity", "unavailable_error"), _OPENAI_BUSY),
    (
        _words("does not support", "is not supported", "unsupported_"),
        ErrorTemplate("unsupported", "{text}: choose another"),
    ),
)
_OPENAI_BY_STATUS = {
    **dict.fromkeys((301, 302, 303, 307, 308, 404, 405), _MOVED),
    **dict.fromkeys((401, 403), _OPENAI_REFUSED),
    402: _NO_CREDIT,
    **dict.fromkeys((408, 504, 524), _GAVE_UP),
    413: _TOO_LONG,
    429: _SLOW_DOWN,
    **dict.fromkeys((502, 503, 529), _OPENAI_BUSY),
}


def openai_errors(server: str, api_key: str = "") -> ServerErrors:
    """Return the errors of the OpenAI-compatible server at that address; none of them shows the key."""
    return ServerErrors(
        server,
        name="model server",
        kin="an OpenAI-compatible server",
        start="start it or check the address",
        by_text=_OPENAI_BY_TEXT,
        by_status=_OPENAI_BY_STATUS,
        secret=api_key,
    )
