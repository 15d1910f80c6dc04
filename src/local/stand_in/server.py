"""The stand-in: a scripted server with Ollama's protocol, and two routes to control it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import math
import re
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any
from uuid import uuid4

import uvicorn
import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from local.core.errors import ConfigError, LocalError
from local.stand_in import rules
from local.stand_in.rules import AssistantMessage, Conversation, Task, ToolUse, obey, read, task_of

# A chat request in Ollama's form, parsed once and trusted afterwards.


class OllamaRefusal(LocalError):
    """An error that becomes HTTP `status` with Ollama's error body; the message is Ollama's own wording where it has
    one.
    """

    kind = "refused"

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def model_missing(name: str) -> OllamaRefusal:
    """Return Ollama's message about a missing model."""
    return OllamaRefusal(404, f"model '{name}' not found")


Json = dict[str, Any]

_THINK_LEVELS = ("high", "medium", "low")
_MOST_TOP_LOGPROBS = 20


@dataclass(frozen=True, slots=True)
class OllamaRequest:
    """The fields of POST /api/chat; `think` is None if it was left out."""

    model: str
    messages: tuple[Json, ...] = ()
    tools: tuple[Json, ...] = ()
    options: Json | None = None
    think: bool | str | None = None
    stream: bool = True
    truncate: bool = True
    format: Json | str | None = None
    logprobs: bool = False
    top_logprobs: int = 0
    keep_alive: Any = None

    def option(self, name: str, default: int) -> int:
        """A whole number among the options; a `OllamaRefusal` 400 if it is something else."""
        return whole_number(self.options or {}, name, default)


def whole_number(options: Json, name: str, default: int) -> int:
    """A field as a whole number, `default` if it is missing; a `OllamaRefusal` 400 if it is something else."""
    value = options.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise OllamaRefusal(400, f'option "{name}" must be of type integer')
    return int(value)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def parse_json(body: bytes) -> Json:
    """The JSON object in a request body; `OllamaRefusal` 400 in the words of Go's decoder."""
    text = body.decode("utf-8", "replace")
    if not text.strip():
        raise OllamaRefusal(400, "missing request body")
    try:
        value = json.loads(text, parse_constant=_no_constant)
        if "\\ud" in text.lower():
            # As Go does: half a surrogate pair, which no answer could carry, becomes the replacement character.
            paired = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
            value = json.loads(paired.decode("utf-16", "replace"))
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(text.rstrip())
        found = "unexpected EOF" if at_end else f"invalid character {text[error.pos]!r} looking for beginning of value"
        raise OllamaRefusal(400, found) from None
    except RecursionError:
        raise OllamaRefusal(400, "exceeded max depth") from None
    except ValueError:
        raise OllamaRefusal(400, "invalid number literal") from None
    if not isinstance(value, dict):
        raise OllamaRefusal(400, f"json: cannot unmarshal {_kind(value)} into Go value of type api.ChatRequest")
    return value


def parse_chat(body: Json) -> OllamaRequest:
    """Check the shape of a chat request; `OllamaRefusal` 400 names the field."""
    for message in objects(body, "messages"):
        for name, kind in (("role", str), ("content", str), ("thinking", str), ("tool_calls", list)):
            checked_field(message, f"messages.{name}", kind)
        message["role"] = str(message.get("role", "")).lower()
        message["content"] = message.get("content") or ""
        _check_calls(message)
    for tool in objects(body, "tools"):
        function = checked_field(tool, "tools.function", dict) or {}
        if not isinstance(function.get("name"), str):
            raise _mismatch(function.get("name"), "tools.function.name", "string")
        parameters = checked_field(function, "tools.function.parameters", dict) or {}
        checked_field(parameters, "tools.function.parameters.properties", dict)
    return OllamaRequest(
        model=checked_field(body, "model", str) or "",
        messages=tuple(body.get("messages") or ()),
        tools=tuple(body.get("tools") or ()),
        options=checked_field(body, "options", dict),
        think=_think(body.get("think")),
        stream=checked_field(body, "stream", bool) is not False,
        truncate=checked_field(body, "truncate", bool) is not False,
        format=_format(body.get("format")),
        logprobs=checked_field(body, "logprobs", bool) is True,
        top_logprobs=_top_logprobs(body),
        keep_alive=body.get("keep_alive"),
    )


def _check_calls(message: Json) -> None:
    for call in message.get("tool_calls") or ():
        if not isinstance(call, dict):
            raise _mismatch(call, "messages.tool_calls", "api.ToolCall")
        function = checked_field(call, "messages.tool_calls.function", dict) or {}
        checked_field(function, "messages.tool_calls.function.name", str)
        checked_field(function, "messages.tool_calls.function.arguments", dict)


def objects(body: Json, name: str) -> list[Json]:
    """The list of objects in that field, empty if it is missing; a `OllamaRefusal` 400 if it is something else."""
    values = checked_field(body, name, list) or []
    for value in values:
        if not isinstance(value, dict):
            raise _mismatch(value, name, "object")
    return list(values)


def checked_field(body: Json, path: str, kind: type) -> Any:
    """Return the value that `path` ends in, None if it is missing; raises `OllamaRefusal` 400 if it is not of that
    type.
    """
    value = body.get(path.rpartition(".")[2])
    if value is not None and not isinstance(value, kind):
        raise _mismatch(value, path, kind.__name__)
    return value


def _top_logprobs(body: Json) -> int:
    number = checked_field(body, "top_logprobs", int) or 0
    if not 0 <= number <= _MOST_TOP_LOGPROBS:
        raise OllamaRefusal(400, f"top_logprobs must be between 0 and {_MOST_TOP_LOGPROBS}")
    return int(number)


def _think(value: Any) -> bool | str | None:
    if value is None or isinstance(value, bool) or value in _THINK_LEVELS:
        return value  # type: ignore[no-any-return]  # narrowed by the test above
    raise OllamaRefusal(
        400, f'invalid think value: {json.dumps(value)} (must be "high", "medium", "low", true, or false)'
    )


def _format(value: Any) -> Json | str | None:
    if value in (None, ""):
        return None
    if value == "json" or isinstance(value, dict):
        return value  # type: ignore[no-any-return]  # narrowed by the test above
    raise OllamaRefusal(400, f'invalid format: {json.dumps(value)}; expected "json" or a valid JSON Schema object')


def _mismatch(value: Any, path: str, wanted: str) -> OllamaRefusal:
    return OllamaRefusal(
        400, f"json: cannot unmarshal {_kind(value)} into Go struct field ChatRequest.{path} of type {wanted}"
    )


def _kind(value: Any) -> str:
    names = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


# Counts tokens and cuts a conversation to the context, as Ollama does.

CHARS_PER_TOKEN = 4
MARKUP_TOKENS = 4
DEFAULT_CONTEXT = 4096
OVERFLOW = "the input length exceeds the context length"


@dataclass(frozen=True, slots=True)
class FittedPrompt:
    """A prompt cut to the context window, and its number of tokens."""

    messages: tuple[Json, ...]
    tools: tuple[Json, ...]
    tokens: int


def count(text: str) -> int:
    """Tokens in a text."""
    return -(-len(text) // CHARS_PER_TOKEN)


def fit(messages: Sequence[Json], tools: Sequence[Json], context: int, *, truncate: bool) -> FittedPrompt:
    """Cut the conversation to `context` tokens; with truncate false, too long a one is a `OllamaRefusal` 400."""
    tool_tokens = sum(count(json.dumps(tool)) for tool in tools)
    costs = [_cost(message) for message in messages]
    whole = tool_tokens + sum(costs)
    if whole <= context:
        return FittedPrompt(tuple(messages), tuple(tools), whole)
    if not truncate:
        raise OllamaRefusal(400, OVERFLOW)
    system = list(
        accumulate((c if m["role"] == "system" else 0 for m, c in zip(messages, costs, strict=True)), initial=0)
    )
    dropped = list(accumulate(costs, initial=0))
    for index in range(len(messages)):
        start = _block_start(messages, index)
        tokens = whole - dropped[start] + system[start]
        if tokens <= context or index == len(messages) - 1:
            break
    if tokens > context:
        return _front_cut(messages[-1], context)
    kept = [m for m in messages[:start] if m["role"] == "system"] + list(messages[start:])
    return FittedPrompt(tuple(kept), tuple(tools), tokens)


def _cost(message: Json) -> int:
    calls = message.get("tool_calls")
    text = len(message.get("content") or "") + len(message.get("thinking") or "")
    return MARKUP_TOKENS + -(-text // CHARS_PER_TOKEN) + (count(json.dumps(calls)) if calls else 0)


def _block_start(messages: Sequence[Json], index: int) -> int:
    start = index
    while start > 0 and messages[start]["role"] == "tool":
        start -= 1
    return start if messages[start].get("tool_calls") else index


def _front_cut(last: Json, context: int) -> FittedPrompt:
    # Not even the last message fits: Ollama's runner then cuts the front half away, system text and tools included.
    tail = str(last.get("content") or "")[-(context // 2) * CHARS_PER_TOKEN :]
    return FittedPrompt(({**last, "content": tail},), (), MARKUP_TOKENS + count(tail))


# A digit is a separate token, as it is for the models that grade.
_TOKEN = re.compile(r"\d|[^\W\d]+|\s+|[^\w\s]|_")


def logprobs_of(text: str, alternatives: int) -> list[Json]:
    """Return one entry for each token; joined, the tokens are the text. `alternatives` 0 leaves them out."""
    entries = (
        {"token": token, "logprob": 0.0, "bytes": list(token.encode("utf-8", "replace"))}
        for token in _TOKEN.findall(text)
    )
    return [entry | ({"top_logprobs": [entry]} if alternatives else {}) for entry in entries]


# A reply cut into the chunks in which it is sent, and the time they take.


@dataclass(frozen=True, slots=True)
class ChunkedReply:
    """A reply as chunks in sending order: all thinking, all content, then the calls. Delays are seconds."""

    thinking: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    calls: tuple[ToolUse, ...] = ()
    first_delay: float = 0.0
    chunk_delay: float = 0.0
    reason: str = "stop"

    def messages(self) -> Iterator[Json]:
        """Ollama's `message` of each chunk."""
        for text in self.thinking:
            yield {"role": "assistant", "content": "", "thinking": text}
        for text in self.content:
            yield {"role": "assistant", "content": text}
        for index, call in enumerate(self.calls):
            entry = call.as_message(f"call_{uuid4().hex[:8]}", index)
            yield {"role": "assistant", "content": "", "tool_calls": [entry]}

    @property
    def tokens(self) -> int:
        """Return the number of generated tokens, by the rule in `tokens`; a call costs as much as its JSON."""
        return count("".join(self.thinking + self.content)) + sum(
            count(repr(call.arguments)) + 1 for call in self.calls
        )

    def without_thinking(self) -> ChunkedReply:
        """The reply to a request that turned thinking off."""
        return replace(self, thinking=())

    def limited(self, tokens: int) -> ChunkedReply:
        """Cut after that many tokens, as the option num_predict does; calls that come too late are lost."""
        if tokens < 0 or self.tokens <= tokens:
            return self
        left, kept = tokens * CHARS_PER_TOKEN, []
        for chunks in (self.thinking, self.content):
            text = "".join(chunks)[:left]
            left -= len(text)
            kept.append(split(text, len(chunks[0])) if chunks else ())
        return replace(self, thinking=kept[0], content=kept[1], calls=(), reason="length")


def deliver(reply: AssistantMessage, chunk_chars: int, chunk_delay: float) -> ChunkedReply:
    """Cut a reply into chunks of `chunk_chars` characters."""
    thinking, content = split(reply.thinking, chunk_chars), split(reply.content, chunk_chars)
    return ChunkedReply(thinking, content, reply.calls, chunk_delay=chunk_delay)


def split(text: str, size: int) -> tuple[str, ...]:
    """Pieces of `size` characters, the last one shorter; none for an empty text."""
    size = max(size, 1)
    return tuple(text[start : start + size] for start in range(0, len(text), size))


# Plays stories/scripts/*.yaml: exact replies to known questions, filled with tools' real results.

_PLACEHOLDER = re.compile(r"\{(question|first_url|(?:title|snippet|url|result|memory):(\d+))\}")


class _Unfilled(LookupError):
    """The signal that no result fills a placeholder."""


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


Expression = Annotated[str, AfterValidator(_expression)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScriptedCall(_Strict):
    """A scripted tool call; its text arguments may contain placeholders."""

    name: str
    arguments: dict[str, Any] = {}


class ScriptedReply(_Strict):
    """One scripted assistant message."""

    thinking: str | tuple[str, ...] = ""
    content: str | tuple[str, ...] = ""
    tool_calls: tuple[ScriptedCall, ...] = ()


class ScriptedTurn(_Strict):
    """The scripted replies to one question."""

    user: Expression
    history: Expression = ""
    task: Task = Task.TALK
    options: dict[str, Any] = {}
    replies: tuple[ScriptedReply, ...] = Field(min_length=1)

    def fits(self, conversation: Conversation, task: Task, options: Mapping[str, Any]) -> bool:
        """Whether this turn is about the conversation's last question, and for such a task with these options."""
        said = "\n".join(f"{exchange.question}\n{exchange.answer}" for exchange in conversation.earlier)
        asked = re.search(self.user, conversation.question, re.I)
        known = not self.history or re.search(self.history, said, re.I)
        return bool(task is self.task and asked and known and self.options.items() <= options.items())


class Script(_Strict):
    """The script of one story; delays are seconds."""

    story: str
    turns: tuple[ScriptedTurn, ...]
    chunk_chars: int = Field(16, gt=0)
    chunk_delay_seconds: float = Field(0.0, ge=0)
    first_delay_seconds: float = Field(0.0, ge=0)

    def play(
        self, conversation: Conversation, task: Task = Task.TALK, options: Mapping[str, Any] = MappingProxyType({})
    ) -> ChunkedReply | None:
        """The reply due now, or None if this script does not know the question or cannot fill its reply."""
        turn = next((turn for turn in self.turns if turn.fits(conversation, task, options)), None)
        if turn is None or (conversation.results and all(result.failed for result in conversation.results)):
            return None
        reply = turn.replies[min(conversation.rounds, len(turn.replies) - 1)]
        if any(call.name not in conversation.tools for call in reply.tool_calls):
            return None
        try:
            return self._delivery(reply, conversation)
        except _Unfilled:
            return None

    def _delivery(self, reply: ScriptedReply, conversation: Conversation) -> ChunkedReply:
        def chunks(text: str | Sequence[str]) -> tuple[str, ...]:
            if isinstance(text, str):
                return split(_fill(text, conversation), self.chunk_chars)
            return tuple(_fill(chunk, conversation) for chunk in text)

        def arguments(values: Mapping[str, Any]) -> dict[str, Any]:
            return {key: _fill(v, conversation) if isinstance(v, str) else v for key, v in values.items()}

        calls = tuple(ToolUse(call.name, arguments(call.arguments)) for call in reply.tool_calls)
        thinking, content = chunks(reply.thinking), chunks(reply.content)
        return ChunkedReply(thinking, content, calls, self.first_delay_seconds, self.chunk_delay_seconds)


def _fill(text: str, conversation: Conversation) -> str:
    return _PLACEHOLDER.sub(lambda found: _filling(found[1], int(found[2] or 1), conversation), text)


def _filling(name: str, number: int, conversation: Conversation) -> str:
    results = [result.content for result in conversation.results if not result.failed]
    match name.partition(":")[0]:
        case "question":
            return conversation.question
        case "first_url":
            value = next(filter(None, map(rules.first_url, results)), None)
        case "result":
            value = rules.sentences(results[number - 1]) if 0 < number <= len(results) else None
        case "memory":
            memories = next((found for text in reversed(results) if (found := rules.memories(text))), [])
            value = memories[number - 1].said if 0 < number <= len(memories) else None
        case field:
            hits = next((hits for text in reversed(results) if (hits := rules.hits(text))), [])
            value = next((str(getattr(hit, field)) for hit in hits if hit.number == number), None)
    if not value:
        raise _Unfilled(name)
    return value


def parse(text: str, source: str) -> Script:
    """Read a script from YAML or JSON text; `ConfigError` names `source`, the place and the error."""
    try:
        return Script.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: not valid YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(f"{source}: {place}: {first['msg']}") from None


def load(path: Path) -> Script:
    """Read a script file; `ConfigError` if it cannot be read or is not a script."""
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None


# The models that the stand-in reports, described as Ollama describes its own.

KEEP_ALIVE = timedelta(minutes=5)
RELEASED = "2026-04-02T12:00:00Z"


@dataclass(frozen=True, slots=True)
class Model:
    """One model as /api/tags and /api/show describe it; `size` is bytes."""

    name: str
    family: str
    capabilities: tuple[str, ...]
    context_length: int
    embedding_length: int
    parameter_size: str
    size: int

    @property
    def digest(self) -> str:
        """64 hexadecimal digits, the same in every run."""
        return hashlib.sha256(self.name.encode()).hexdigest()

    @property
    def details(self) -> Json:
        """Ollama's ModelDetails."""
        return {
            "parent_model": "",
            "format": "gguf",
            "family": self.family,
            "families": [self.family],
            "parameter_size": self.parameter_size,
            "quantization_level": "Q4_K_M",
        }

    def listed(self) -> Json:
        """The entry in /api/tags."""
        return {
            "name": self.name,
            "model": self.name,
            "modified_at": RELEASED,
            "size": self.size,
            "digest": self.digest,
            "details": self.details,
        }

    def shown(self) -> Json:
        """The body of /api/show."""
        return {
            "license": "",
            "modelfile": f'# Modelfile generated by "ollama show"\nFROM {self.name}\n',
            "parameters": "",
            "template": "{{ .Prompt }}",
            "details": self.details,
            "model_info": {
                "general.architecture": self.family,
                f"{self.family}.context_length": self.context_length,
                f"{self.family}.embedding_length": self.embedding_length,
            },
            "capabilities": list(self.capabilities),
            "modified_at": RELEASED,
        }

    def running(self, expires_at: datetime) -> Json:
        """The entry in /api/ps."""
        rest = {"size_vram": 0, "expires_at": expires_at.isoformat(), "context_length": self.context_length}
        return self.listed() | rest


def _gemma(tag: str, context_length: int, embedding_length: int, size: int) -> Model:
    capabilities = ("completion", "vision", "tools", "thinking")
    return Model(f"gemma4:{tag}", "gemma4", capabilities, context_length, embedding_length, tag.upper(), size)


CATALOGUE = (
    _gemma("e2b", 131_072, 1536, 7_200_000_000),
    _gemma("e4b", 131_072, 2560, 9_600_000_000),
    _gemma("12b", 262_144, 3840, 8_100_000_000),
    _gemma("26b", 262_144, 2816, 18_000_000_000),
    _gemma("31b", 262_144, 5376, 20_000_000_000),
    Model("tinyllama:latest", "llama", ("completion",), 2048, 2048, "1B", 637_000_000),
    Model("nomic-embed-text:latest", "nomic-bert", ("embedding",), 2048, 768, "137M", 274_000_000),
)


def full_name(name: str) -> str:
    """A name with its tag: `tinyllama` is `tinyllama:latest`; case does not matter."""
    lower = name.lower()
    return lower if ":" in lower else f"{lower}:latest"


class Library:
    """The models of the server: which are pulled and which are in memory."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        wanted = {full_name(name) for name in names}
        self._present = {model.name: model for model in CATALOGUE if not wanted or model.name in wanted}
        self._used: dict[str, datetime] = {}

    def find(self, name: str) -> Model:
        """Return the model of that name; raises `Refusal` 404 if it is not pulled."""
        try:
            return self._present[full_name(name)]
        except KeyError:
            raise model_missing(name) from None

    def pull(self, name: str) -> Model | None:
        """Make a model of the catalogue present; None if no such model exists."""
        model = next((model for model in CATALOGUE if model.name == full_name(name)), None)
        if model:
            self._present[model.name] = model
        return model

    def delete(self, name: str) -> None:
        """Forget a model; `Refusal` 404 if it is not pulled."""
        self._used.pop(self._present.pop(self.find(name).name).name, None)

    def use(self, model: Model, now: datetime) -> None:
        """Count a model as loaded from `now` on."""
        self._used[model.name] = now

    def unload(self, model: Model) -> None:
        """Count a model as loaded no longer."""
        self._used.pop(model.name, None)

    def listed(self) -> list[Json]:
        """The entries of /api/tags."""
        return [model.listed() for model in self._present.values()]

    def running(self, now: datetime) -> list[Json]:
        """Return the entries of /api/ps: those used in the last five minutes."""
        expiries = {name: used + KEEP_ALIVE for name, used in self._used.items()}
        return [self._present[name].running(expiry) for name, expiry in expiries.items() if expiry > now]


# Replies in the form of a JSON Schema: the facts in a user's text, or the smallest valid value.

_REST = r"[^,;]+?)(?:,? (?:and|but) (?:i|my) .*|[,;].*)?$"  # of the sentence, without the next one
_VALUE, _THING = r"(?P<value>" + _REST, r"(?P<thing>" + _REST
_OF_OTHERS = "the {thing}"  # a fact only if the user asks to remember it
# The first form that fits a sentence yields its fact; in a slot, {} is the part named by the form. Facts of which a
# person can have several at a time have a slot each, or the next one would replace them.
_FORMS = tuple(
    (re.compile(form if "?P<value>" in form else form + _VALUE, re.I), slot)
    for form, slot in (
        (r"^i (?P<what>take|drink|like|eat|want) my (?P<thing>\w+(?: \w+)??) (?=\w)", "how I {what} my {thing}"),
        (r"^i live (?:in|at|near|on) ", "where I live"),
        (r"^i work (?:in|at|for) ", "where I work"),
        (r"^i work as (?:an? )?", "what I work as"),
        (r"^i(?: am|'m) (?:(?:\w+ly|very|so) )?allergic to ", "allergies"),
        (r"^i(?: have|'ve got| have got| suffer from) an? (?:\w+ )??(?P<value>[\w-]+) allergy", "allergies"),
        (r"^i(?: am|'m) called ", "my name"),
        (r"^i (?P<value>prefer|like|love|hate|dislike) " + _THING, "how I feel about {thing}"),
        (r"^my favou?rite (?P<thing>\w+(?: \w+)?) is ", "my favourite {thing}"),
        (r"^my (?P<thing>\w+(?: \w+){0,3}?) is (?:called|named) ", "my {thing}'s name"),
        (r"^my (?P<thing>\w+(?: \w+){0,3}?) (?:is|are) ", "my {thing}"),
        (r"^the (?P<thing>\w+(?: \w+){0,3}?) (?:is|are) ", _OF_OTHERS),
    )
)
_REMEMBER = re.compile(r"^(?:please )?(?:remember|note|keep in mind)(?: that|:)? ", re.I)
_FILLER = re.compile(r"\b(?:actually|now|by the way|just so you know|these days)\b,? ?", re.I)
_UNSURE = re.compile(r"\b(?:i think|maybe|perhaps|probably|possibly|might)\b,? ?", re.I)
_NO_MORE = re.compile(r"\bno longer ", re.I)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
_EXCHANGE = re.compile(r"^\[(?P<number>\d+)\] The user said:\n(?P<said>.*)", re.M)
_DREAMS = 3
_SOUL = re.compile(r"The assistant's soul, as it reads now:\n(?P<lines>(?:>.*\n?)*)")
_QUOTED = re.compile(r"^> ?(.*)$", re.M)
_REMIND_ME = re.compile(r"^remind me (?:to )?", re.I)
_IS_DONE = re.compile(r"\bthe goal is reached\b", re.I)
_FROM_NOW_ON = re.compile(r"from now on\b", re.I)
NOTHING = "(nothing)"
_THANKS = re.compile(r"^\s*(?:thanks|thank you|great|well done|wrong|that is (?:wrong|right))\b", re.I)


def classify(text: str, schema: Json) -> Json:
    """Return the facts in a user's words, in the form that `schema` describes; none if no form fits."""
    facts = [fact for sentence in _SENTENCE_END.split(text) if (fact := _fact(sentence.strip()))]
    said = {"intent": _intent(text, facts), "entities": list(dict.fromkeys(_NAME.findall(text)))[:10], "facts": facts}
    shaped: Json = _shaped(said, schema, schema)
    return shaped


def dream(text: str) -> Json:
    """Return the user's statements in the first exchanges that are shown, each with its number."""
    found = list(_EXCHANGE.finditer(text))[:_DREAMS]
    said = [(each["said"].strip(" |>"), int(each["number"])) for each in found]
    dreams = [{"text": f"The user said: {words}", "sources": [number]} for words, number in said]
    return {"dreams": dreams, "soul": _soul(text), "skill": {"name": "", "description": "", "instructions": ""}}


def thought(text: str) -> Json:
    """Return the user's statement in the last exchange that is shown."""
    said = [each["said"].strip(" |>") for each in _EXCHANGE.finditer(text)]
    return {"thought": f"The user said: {said[-1]}" if said else ""}


def check(text: str) -> Json:
    """Return a remark once for a goal that begins with “Remind me”; one that the user reports as done is reached."""
    goal, *before = _QUOTED.findall(text) or [""]
    wanted = _REMIND_ME.sub("", goal)
    is_done = any(_IS_DONE.search(each["said"]) for each in _EXCHANGE.finditer(text))
    is_said = wanted != goal and before[:1] == [NOTHING]
    return {"has_something_to_say": is_said, "text": f"You wanted to {wanted}" if is_said else "", "is_done": is_done}


def _soul(text: str) -> str:
    """Return the soul with the user's new wish, if any."""
    wanted = [said for each in _EXCHANGE.finditer(text) if _FROM_NOW_ON.match(said := each["said"].strip(" >"))]
    now = _SOUL.match(text)
    lines = [line.removeprefix(">").strip() for line in now["lines"].splitlines()] if now else []
    return "\n".join([*(line for line in lines if line != NOTHING), *wanted]) if wanted else ""


def _fact(sentence: str) -> Json | None:
    if sentence.endswith("?"):
        return None
    told, to_remember = _REMEMBER.subn("", sentence)
    sure, unsure = _UNSURE.subn("", _FILLER.sub("", told).rstrip(".! "))
    holds, no_more = _NO_MORE.subn("", sure)
    for form, slot in _FORMS:
        if (found := form.match(holds)) and (to_remember or slot != _OF_OTHERS):
            named = {name: text.lower() for name, text in found.groupdict().items() if name != "value"}
            fact = {"slot": slot.format(**named), "value": found["value"].strip()}
            return fact | {"certain": not unsure, "retracts": bool(no_more)}
    return None


def _intent(text: str, facts: list[Json]) -> str:
    if facts:
        return "statement"
    if text.rstrip().endswith("?"):
        return "question"
    return "feedback" if _THANKS.match(text) else "other"


def _shaped(value: Any, schema: Any, root: Json) -> Any:
    """The value with the keys that the schema has, and the smallest values of those that it requires besides."""
    schema = resolve(schema["$ref"], root) if "$ref" in schema else schema
    if isinstance(value, list):
        return [_shaped(item, schema.get("items") or {}, root) for item in value]
    properties = schema.get("properties")
    if not isinstance(value, Mapping) or not isinstance(properties, Mapping):
        return value
    known = {key: _shaped(value[key], properties[key], root) for key in properties if key in value}
    return smallest(schema, root) | known


_MAX_DEPTH = 20


def smallest(schema: Any, root: Json | None = None, depth: int = 0) -> Any:
    """A minimal value valid for the schema: required properties only; `pattern` and `not` are not looked at."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    root = schema if root is None else root
    if "$ref" in schema:
        return smallest(resolve(schema["$ref"], root), root, depth + 1)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return smallest(schema[key][0], root, depth + 1)
    if schema.get("allOf"):
        merged = {key: value for part in schema["allOf"] for key, value in part.items()}
        return smallest({**merged, **{k: v for k, v in schema.items() if k != "allOf"}}, root, depth + 1)
    return _of_type(schema, root, depth)


def resolve(reference: str, root: Json) -> Any:
    """Return the target of a local `$ref`."""
    node: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        node = node.get(part.replace("~1", "/").replace("~0", "~")) if part and isinstance(node, dict) else node
    return node


def _of_type(schema: Json, root: Json, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties") or {}
            return {name: smallest(properties.get(name, {}), root, depth + 1) for name in schema.get("required", ())}
        case "array":
            return [smallest(schema.get("items", {}), root, depth + 1) for _ in range(schema.get("minItems", 0))]
        case "integer" | "number" as numeric:
            return _number(schema, whole=numeric == "integer")
        case "boolean":
            return False
        case "null":
            return None
    return "-" * schema.get("minLength", 0)


def _number(schema: Json, *, whole: bool) -> float:
    if "exclusiveMinimum" in schema:
        above = float(schema["exclusiveMinimum"])
        return math.floor(above) + 1 if whole else above + 1e-6
    low: float = schema.get("minimum", min(0, schema.get("maximum", 0)))
    return math.ceil(low) if whole else low


# The model itself: takes a chat request, chooses the reply, and streams it in chunks.


@dataclass(frozen=True, slots=True)
class StandInSettings:
    """The settings of the stand-in. `models` are the names present at start (none named: the whole catalogue);
    `served_at_once` 0 means no limit. `latency_seconds` passes before the first token of each answer,
    `chunk_delay_seconds` between two chunks of `chunk_chars` characters.
    """

    models: tuple[str, ...] = ()
    scripts: tuple[Path, ...] = ()
    latency_seconds: float = 0.0
    chunk_delay_seconds: float = 0.0
    chunk_chars: int = 16
    served_at_once: int = 0


# Between so many chunks the event loop gets a turn, so that a client that left is noticed and others are served.
_CHUNKS_AT_A_TURN = 4


class StandIn:
    """One model server with its models and scripts. `ConfigError` if a script of the settings is invalid."""

    def __init__(self, settings: StandInSettings) -> None:
        self.settings = settings
        self.library = Library(settings.models)
        self.scripts: dict[str, Script] = {}
        self.is_obedient = False  # to whatever it reads
        self._place = asyncio.Semaphore(settings.served_at_once) if settings.served_at_once else nullcontext()
        for path in settings.scripts:
            self.add_script(load(path))

    def add_script(self, script: Script) -> None:
        """Play this script too; it takes the place of one for the same story."""
        self.scripts[script.story] = script

    def check(self, request: OllamaRequest) -> Model:
        """Return the requested model, if it can do what is requested; else raise the `OllamaRefusal` of Ollama."""
        if not request.model:
            raise OllamaRefusal(400, "model is required")
        model = self.library.find(request.model)
        if request.think and "thinking" not in model.capabilities:
            raise OllamaRefusal(400, f'"{request.model}" does not support thinking')
        if "completion" not in model.capabilities:
            raise OllamaRefusal(400, f'"{request.model}" does not support chat')
        if request.tools and "tools" not in model.capabilities:
            raise OllamaRefusal(400, f"registry.ollama.ai/library/{model.name} does not support tools")
        return model

    def prompt(self, request: OllamaRequest, model: Model) -> FittedPrompt:
        """Return the part that fits into the context of the request; raises `OllamaRefusal` 400 if it does not fit and
        must not be cut.
        """
        context = min(request.option("num_ctx", DEFAULT_CONTEXT), model.context_length)
        return fit(request.messages, request.tools, max(context, 1), truncate=request.truncate)

    def decide(self, request: OllamaRequest, model: Model, prompt: FittedPrompt) -> ChunkedReply:
        """Return the reply: a script's, else that of the rules for such a task."""
        conversation = read(prompt.messages, prompt.tools)
        task = task_of(request.format, conversation.question)
        delivery = self._scripted(conversation, task, request)
        if delivery is None:
            ordered = obey(prompt.messages, conversation.tools) if self.is_obedient and task is Task.TALK else None
            delivery = self._deliver(ordered or _reply(task, request, conversation))
        if "thinking" not in model.capabilities or request.think is False:
            delivery = delivery.without_thinking()
        return delivery.limited(request.option("num_predict", -1))

    def _scripted(self, conversation: Conversation, task: Task, request: OllamaRequest) -> ChunkedReply | None:
        for script in self.scripts.values():
            if delivery := script.play(conversation, task, request.options or {}):
                slowest = max(delivery.chunk_delay, self.settings.chunk_delay_seconds)
                return replace(delivery, chunk_delay=slowest)
        return None

    def _deliver(self, reply: AssistantMessage) -> ChunkedReply:
        return deliver(reply, self.settings.chunk_chars, self.settings.chunk_delay_seconds)

    async def speak(
        self, request: OllamaRequest, prompt: FittedPrompt, delivery: ChunkedReply
    ) -> AsyncGenerator[Json, None]:
        """Ollama's chat chunks: waits for a place in the queue, then for the first token, then streams."""
        asked = time.perf_counter_ns()
        async with self._place:
            placed = time.perf_counter_ns()
            if delay := self.settings.latency_seconds + delivery.first_delay:
                await asyncio.sleep(delay)
            first = time.perf_counter_ns()
            for number, message in enumerate(delivery.messages()):
                yield chunk(request.model, message) | _logprobs(request, message)
                if delivery.chunk_delay or number % _CHUNKS_AT_A_TURN == 0:
                    await asyncio.sleep(delivery.chunk_delay)
            last = time.perf_counter_ns()
            yield chunk(request.model, {"role": "assistant", "content": ""}) | {
                "done": True,
                "done_reason": delivery.reason,
                "total_duration": last - asked,
                "load_duration": placed - asked,
                "prompt_eval_count": prompt.tokens,
                "prompt_eval_duration": first - placed,
                "eval_count": delivery.tokens,
                "eval_duration": last - first,
            }


def chunk(model: str, message: Json) -> Json:
    """One chunk of /api/chat that is not the last."""
    return {"model": model, "created_at": now().isoformat().replace("+00:00", "Z"), "message": message, "done": False}


def now() -> datetime:
    """The time that goes into answers, UTC."""
    return datetime.now(UTC)


def _reply(task: Task, request: OllamaRequest, conversation: Conversation) -> AssistantMessage:
    match task, request.format:
        case Task.CLASSIFICATION, dict() as schema:
            said = json.dumps(classify(conversation.question, schema), ensure_ascii=False)
        case Task.DREAM, _:
            said = json.dumps(dream(conversation.question), ensure_ascii=False)
        case Task.THOUGHT, _:
            said = json.dumps(thought(conversation.question), ensure_ascii=False)
        case Task.CHECK, _:
            said = json.dumps(check(conversation.question), ensure_ascii=False)
        case Task.TITLE, _:
            said = json.dumps({"title": rules.conversation_title(conversation.question)}, ensure_ascii=False)
        case Task.JUDGEMENT, wanted:
            said = rules.judge(conversation.question, wanted)
        case Task.JSON, dict() as schema:
            said = json.dumps(smallest(schema))
        case Task.JSON, _:
            said = json.dumps({"answer": rules.reply(replace(conversation, tools={})).content})
        case _:
            return rules.reply(conversation)
    return AssistantMessage(f"This is a {task}, no talk; a rule answers it in the form that is asked for.", said)


def _logprobs(request: OllamaRequest, message: Json) -> Json:
    text = message.get("thinking") or message["content"]
    return {"logprobs": logprobs_of(text, request.top_logprobs)} if request.logprobs and text else {}


# The common part of every route: read the JSON body, word refusals.

_CLIENT_CLOSED = 499
_log = logging.getLogger(__name__)

Handler = Callable[[StandIn, Json], Response | Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


def ollama_error(refusal: OllamaRefusal) -> Response:
    """Ollama's error body."""
    return JSONResponse({"error": str(refusal)}, refusal.status)


def endpoint(stand_in: StandIn, handle: Handler) -> Endpoint:
    """A Starlette endpoint around a handler of JSON bodies."""

    async def respond(request: Request) -> Response:
        try:
            response = handle(stand_in, parse_json(await request.body()))
            return await response if isinstance(response, Awaitable) else response
        except OllamaRefusal as refusal:
            return ollama_error(refusal)
        except ClientDisconnect:
            return Response(status_code=_CLIENT_CLOSED)
        except Exception as error:  # noqa: BLE001  # a bug here must not look like a broken connection to the client
            _log.error("%s failed: %r", request.url.path, error)
            return ollama_error(OllamaRefusal(500, "internal error of the stand-in"))

    return respond


async def merged(chunks: AsyncGenerator[Json, None]) -> Json:
    """All chunks of an answer as one, merged as Ollama does for `stream` false."""
    thinking, content, calls, logprobs = "", "", [], []
    async with aclosing(chunks) as parts:
        async for part in parts:
            thinking += part["message"].get("thinking", "")
            content += part["message"]["content"]
            calls += part["message"].get("tool_calls", [])
            logprobs += part.get("logprobs", [])
    message = {"role": "assistant", "content": content}
    said = {"thinking": thinking, "tool_calls": calls}
    whole = part | {"message": message | {key: value for key, value in said.items() if value}}
    return whole | ({"logprobs": logprobs} if logprobs else {})


def json_line(value: object) -> bytes:
    """A line of NDJSON."""
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


# POST /api/embed and /api/embeddings: vectors without a model.


def embed(stand_in: StandIn, body: Json) -> Response:
    """Return one vector for each text of `input`, in order."""
    return JSONResponse(embedded(stand_in, body))


def embedded(stand_in: StandIn, body: Json) -> Json:
    """The body of /api/embed's answer; `OllamaRefusal` for a bad input, an unfit model or a text that is too long."""
    started = time.perf_counter_ns()
    texts = _texts(body.get("input"))
    model = _embedder(stand_in, body)
    options = body.get("options")
    wanted = whole_number(options if isinstance(options, dict) else {}, "num_ctx", model.context_length)
    limit = max(min(wanted, model.context_length), 1)
    if body.get("truncate") is False and any(count(text) > limit for text in texts):
        raise OllamaRefusal(400, OVERFLOW)
    texts = [text[: limit * CHARS_PER_TOKEN] for text in texts]
    dimensions = whole_number(body, "dimensions", 0) or DIMENSIONS
    return {
        "model": body["model"],
        "embeddings": [vector_of(text, dimensions) for text in texts],
        "total_duration": time.perf_counter_ns() - started,
        "load_duration": 0,
        "prompt_eval_count": sum(map(count, texts)),
    }


def embeddings(stand_in: StandIn, body: Json) -> Response:
    """The older form of the route: one `prompt`, one vector."""
    _embedder(stand_in, body)
    prompt = body.get("prompt") or ""
    return JSONResponse({"embedding": vector_of(str(prompt)) if prompt else []})


def _texts(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) and given else given or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise OllamaRefusal(400, "invalid input type")
    return texts


def _embedder(stand_in: StandIn, body: Json) -> Model:
    name = body.get("model")
    if not isinstance(name, str) or not name:
        raise OllamaRefusal(400, "model is required")
    model = stand_in.library.find(name)
    if "embedding" not in model.capabilities:
        raise OllamaRefusal(501, "this model does not support embeddings")
    stand_in.library.use(model, now())
    return model


DIMENSIONS = 768


def vector_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A deterministic vector of length one (all zeros for a text without words); shape (`dimensions`,).

    Feature hashing (Weinberger et al. 2009): each word adds or subtracts one at a position that its hash names.
    """
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        digest = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest())
        vector[digest % DIMENSIONS] += 1.0 if digest >> 63 else -1.0
    vector = vector[:dimensions]
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else vector


# Ollama's HTTP API under /api (shapes: Ollama's docs/api.md, server/routes.go and api/types.go).

VERSION = "0.32.0"
NDJSON = "application/x-ndjson"
JSON = "application/json; charset=utf-8"


def ollama_routes(stand_in: StandIn) -> list[Route]:
    """Every route of the API."""

    async def tags(_: Request) -> Response:
        return JSONResponse({"models": stand_in.library.listed()})

    async def running(_: Request) -> Response:
        return JSONResponse({"models": stand_in.library.running(now())})

    async def version(_: Request) -> Response:
        return JSONResponse({"version": VERSION})

    async def alive(_: Request) -> Response:
        return PlainTextResponse("Ollama is running")

    handlers: dict[str, Handler] = {
        "/api/chat": chat,
        "/api/generate": generate,
        "/api/embed": embed,
        "/api/embeddings": embeddings,
        "/api/show": show,
        "/api/pull": pull,
    }
    return [
        Route("/", alive),
        Route("/api/tags", tags),
        Route("/api/ps", running),
        Route("/api/version", version),
        Route("/api/delete", endpoint(stand_in, delete), methods=["DELETE"]),
        *(Route(path, endpoint(stand_in, handler), methods=["POST"]) for path, handler in handlers.items()),
    ]


async def chat(stand_in: StandIn, body: Json) -> Response:
    """POST /api/chat: NDJSON chunks, or one object with `stream` false."""
    request = parse_chat(body)
    if not request.messages:
        return _loaded(stand_in, request, {"message": {"role": "assistant", "content": ""}})
    return await _answer(stand_in, request, lambda part: part)


async def generate(stand_in: StandIn, body: Json) -> Response:
    """POST /api/generate: a chat of one question, worded as `response`."""
    prompt = body.get("prompt") or ""
    system = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    messages = [*system, {"role": "user", "content": prompt}]
    request = parse_chat({key: value for key, value in body.items() if key != "tools"} | {"messages": messages})
    if not prompt:
        return _loaded(stand_in, request, {"response": ""})
    return await _answer(stand_in, request, _as_response)


async def _answer(stand_in: StandIn, request: OllamaRequest, shape: Callable[[Json], Json]) -> Response:
    model = stand_in.check(request)
    prompt = stand_in.prompt(request, model)
    chunks = stand_in.speak(request, prompt, stand_in.decide(request, model, prompt))
    stand_in.library.use(model, now())
    if not request.stream:
        return JSONResponse(shape(await merged(chunks)))

    async def lines() -> AsyncGenerator[bytes, None]:
        async with aclosing(chunks) as parts:
            async for part in parts:
                yield json_line(shape(part))

    return StreamingResponse(lines(), media_type=NDJSON)


def _loaded(stand_in: StandIn, request: OllamaRequest, said: Json) -> Response:
    model, reason = stand_in.check(request), "unload" if request.keep_alive in (0, "0", "0s", "0m") else "load"
    if reason == "unload":
        stand_in.library.unload(model)
    else:
        stand_in.library.use(model, now())
    answer = chunk(request.model, {}) | {"done": True, "done_reason": reason}
    del answer["message"]
    return JSONResponse(answer | said)


def _as_response(part: Json) -> Json:
    message = part["message"]
    thinking = {"thinking": message["thinking"]} if message.get("thinking") else {}
    rest = {key: value for key, value in part.items() if key != "message"}
    return rest | {"response": message["content"]} | thinking | ({"context": []} if part["done"] else {})


def show(stand_in: StandIn, body: Json) -> Response:
    """POST /api/show: a model's capabilities."""
    return JSONResponse(stand_in.library.find(_name(body)).shown())


def delete(stand_in: StandIn, body: Json) -> Response:
    """DELETE /api/delete: forget a model."""
    stand_in.library.delete(_name(body))
    return Response()


def pull(stand_in: StandIn, body: Json) -> Response:
    """POST /api/pull: progress lines; a model that is in no catalogue is an error."""
    steps = list(_pulling(stand_in, _name(body)))
    if body.get("stream") is False:
        failure = steps[-1].get("error")
        return ollama_error(OllamaRefusal(500, failure)) if failure else JSONResponse(steps[-1])
    return Response(b"".join(map(json_line, steps)), media_type=NDJSON)


def _pulling(stand_in: StandIn, name: str) -> Iterable[Json]:
    yield {"status": "pulling manifest"}
    model = stand_in.library.pull(name)
    if model is None:
        yield {"error": "pull model manifest: file does not exist"}
        return
    layer = {"status": f"pulling {model.digest[:12]}", "digest": f"sha256:{model.digest}", "total": model.size}
    yield from (layer | {"completed": model.size * quarter // 4} for quarter in range(1, 5))
    yield from ({"status": status} for status in ("verifying sha256 digest", "writing manifest", "success"))


def _name(body: Json) -> str:
    name = body.get("model") or body.get("name")
    if not isinstance(name, str):
        raise OllamaRefusal(400, "model is required")
    return name


TICK_SECONDS = 1.0


def create_app(settings: StandInSettings) -> Starlette:
    """The ASGI application; its model is `app.state.stand_in`. `ConfigError` for a bad script."""
    stand_in = StandIn(settings)
    routes = [*ollama_routes(stand_in), *control_routes(stand_in)]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_allowed})
    app.state.stand_in = stand_in
    return app


async def _not_found(_: Request, __: Exception) -> Response:
    return PlainTextResponse("404 page not found", 404)


async def _not_allowed(_: Request, __: Exception) -> Response:
    return PlainTextResponse("405 method not allowed", 405)


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to the program around it, and checks for its end once a second instead of
    ten times.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = asyncio.Event()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # which renews the Date header
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._stopping.wait()

    def stop(self) -> None:
        """Begin to shut down."""
        self.should_exit = True
        self._stopping.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def serve(settings: StandInSettings, sock: socket.socket, stop: asyncio.Event | None = None) -> None:
    """Serve on a bound socket until `stop` is set (without one: until cancelled); answers under way are broken off."""
    await serve_app(create_app(settings), sock, stop)


async def serve_app(app: ASGIApp, sock: socket.socket, stop: asyncio.Event | None = None) -> None:
    """`serve` for an application that is made already."""
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        # Accepted sockets inherit it. asyncio sets it only where the protocol number is given, which `create_server`
        # does not do, and without it each answer on a kept connection waits 40 ms for a delayed acknowledgement.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",  # failures are logged in `endpoint`
        access_log=False,
        server_header=False,
        headers=[("server", "local2-stand-in")],
        timeout_graceful_shutdown=0,
    )
    server = _Server(config)
    stopping = asyncio.create_task(_stop_when(stop or asyncio.Event(), server))
    try:
        await server.serve(sockets=[sock])
    finally:
        stopping.cancel()
        sock.close()


async def _stop_when(stop: asyncio.Event, server: _Server) -> None:
    await stop.wait()
    server.stop()


_NO_CONTENT = 204


def control_routes(stand_in: StandIn) -> list[Route]:
    """Every control route."""
    return [
        Route("/stand_in/script", partial(_script, stand_in), methods=["POST", "DELETE"]),
        Route("/stand_in/obedience", partial(_obedience, stand_in), methods=["POST", "DELETE"]),
    ]


async def _script(stand_in: StandIn, request: Request) -> Response:
    """Play a script, or stop playing it."""
    if request.method == "DELETE":
        stand_in.scripts.clear()
        return Response(status_code=_NO_CONTENT)
    try:
        added = parse((await request.body()).decode("utf-8", "replace"), "script")
    except ConfigError as error:
        return JSONResponse({"error": str(error)}, 400)
    stand_in.add_script(added)
    return JSONResponse({"story": added.story, "turns": len(added.turns)})


async def _obedience(stand_in: StandIn, request: Request) -> Response:
    """Obey whatever is read, or no longer."""
    stand_in.is_obedient = request.method == "POST"
    return Response(status_code=_NO_CONTENT)
