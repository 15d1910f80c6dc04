"""Any server that speaks OpenAI's chat API: llama-server, vLLM, OpenRouter, Google's endpoint, OpenAI itself."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import httpx
from pydantic import BaseModel
from pydantic_core import from_json

from local.core.errors import ModelError
from local.models.chat import (
    Degraded,
    Delta,
    Done,
    Incapable,
    Json,
    ModelInfo,
    ProgressDelta,
    ServerErrors,
    ThinkingDelta,
    ToolCall,
    Usage,
    error_object,
    openai_errors,
)
from local.models.client import ConnectionLimits, ModelClient
from local.models.http import AnswerStream, json_object, read_call, token_scores, unclear
from local.models.settings import authorisation

# The differences of OpenAI-compatible servers: how each is recognised, and its fields beyond OpenAI's own API. No I/O.

# Ollama's name of an option, which our agents use, to OpenAI's.
_OPTIONS = {name: name for name in ("temperature", "top_p", "seed", "stop", "presence_penalty", "frequency_penalty")}
_SAMPLERS = {"top_k": "top_k", "min_p": "min_p"}
_LIMIT = {"num_predict": "max_tokens"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The capabilities of one kind of server.

    `thinks` and `thinks_not` are the fields that turn thinking on and off; without them the server decides. The model's
    thinking is sent back under `thinking_keys`. `names_tools`: a tool message may carry the tool's name.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=lambda: _OPTIONS | _LIMIT)
    thinks: Json = field(default_factory=dict)
    thinks_not: Json = field(default_factory=dict)
    thinking_keys: tuple[str, ...] = ()
    names_tools: bool = False
    progress: Json = field(default_factory=dict)  # the fields that ask for the progress of reading the prompt
    in_words: Json = field(default_factory=dict)  # the fields that keep a model from writing a call


# A text that does not begin like a call, and contains no JSON whose first key is that of a call. The tools stay in the
# prompt. Small models write calls as text, so that `tool_choice` alone does not keep them from it.
_NO_CALL = r"""
root ::= " "? [^{<`[ \n] ([^{] | ("{" [ \t\n]*)+ ([^"{ \t\n] | "\"" key))*
key ::= [^nft] | "n" ([^a] | "a" [^m]) | "f" [^u] | "t" [^o]
"""
_ON: Json = {"chat_template_kwargs": {"enable_thinking": True}}
_OFF: Json = {"chat_template_kwargs": {"enable_thinking": False}}

# An unknown server gets only the oldest fields of OpenAI's API: strict servers refuse unknown ones.
UNKNOWN = Dialect("unknown")
OPENAI = Dialect("openai", options=_OPTIONS | {"num_predict": "max_completion_tokens"})
GOOGLE = Dialect("google", names_tools=True)
LLAMA_SERVER = Dialect(
    "llama-server",
    options=_OPTIONS | _LIMIT | _SAMPLERS | {"repeat_penalty": "repeat_penalty"},
    thinks=_ON,
    thinks_not=_OFF,
    thinking_keys=("reasoning_content",),
    names_tools=True,
    progress={"return_progress": True},
    in_words={"tool_choice": "none", "grammar": _NO_CALL},
)
VLLM = Dialect(
    "vllm",
    options=_OPTIONS | _LIMIT | _SAMPLERS | {"repeat_penalty": "repetition_penalty"},
    thinks=_ON,
    thinks_not=_OFF,
    # Renamed from the first to the second in 2025.
    thinking_keys=("reasoning_content", "reasoning"),
    names_tools=True,
)
OPENROUTER = Dialect(
    "openrouter",
    options=_OPTIONS | _LIMIT | _SAMPLERS | {"repeat_penalty": "repetition_penalty"},
    thinks={"reasoning": {"enabled": True}},
    thinks_not={"reasoning": {"enabled": False}},
    thinking_keys=("reasoning",),
)
OLLAMA = Dialect(
    "ollama",
    thinks={"reasoning_effort": "medium"},
    thinks_not={"reasoning_effort": "none"},
    thinking_keys=("reasoning",),
    names_tools=True,
)
_BY_OWNER = {
    "llamacpp": LLAMA_SERVER,
    "vllm": VLLM,
    "library": OLLAMA,
    "google": GOOGLE,
    "openai": OPENAI,
    "system": OPENAI,
    "openai-internal": OPENAI,
}


@dataclass(frozen=True, slots=True)
class Known:
    """A model as its server describes it; empty capabilities and context length are unknown ones."""

    info: ModelInfo
    dialect: Dialect


def find(listed: list[Json], model: str) -> Json | None:
    """Return the entry of /v1/models for that name; Google puts `models/` before it, Ollama `:latest` after it."""
    names = (model, f"models/{model}", f"{model}:latest")
    return next((entry for name in names for entry in listed if entry.get("id") == name), None)


def known(model: str, entry: Json, props: Json) -> Known:
    """Return the description of a model from its entry of /v1/models, and for llama-server from the body of /props."""
    if isinstance(entry.get("supported_parameters"), list):
        return _from_openrouter(model, entry)
    dialect = _BY_OWNER.get(str(entry.get("owned_by")), UNKNOWN)
    settings, meta = _object(props, "default_generation_settings"), _object(entry, "meta")
    lengths = (settings.get("n_ctx"), meta.get("n_ctx"), entry.get("max_model_len"), entry.get("context_length"))
    parameters = _first_number(meta.get("n_params"))
    size = None if parameters is None else parameters / 1e9
    return Known(ModelInfo(model, _llama_capabilities(props), _first_number(*lengths), size), dialect)


def _from_openrouter(model: str, entry: Json) -> Known:
    parameters = entry["supported_parameters"]
    offered = {"tools": "tools", "thinking": "reasoning"}
    capabilities = {"completion"} | {ours for ours, theirs in offered.items() if theirs in parameters}
    if "image" in (_object(entry, "architecture").get("input_modalities") or ()):
        capabilities.add("vision")
    length = _first_number(_object(entry, "top_provider").get("context_length"), entry.get("context_length"))
    return Known(ModelInfo(model, frozenset(capabilities), length), OPENROUTER)


def _llama_capabilities(props: Json) -> frozenset[str]:
    caps, template = _object(props, "chat_template_caps"), str(props.get("chat_template"))
    if not caps:
        return frozenset()
    has = {
        "completion": True,
        "tools": caps.get("supports_tools") is True,
        "vision": _object(props, "modalities").get("vision") is True,
        # Not reported anywhere, but a template cannot turn on or off what it does not mention.
        "thinking": any(word in template for word in ("enable_thinking", "reasoning_content", "<think>")),
    }
    return frozenset(capability for capability, there in has.items() if there)


def _object(body: Json, key: str) -> Json:
    value = body.get(key)
    return value if isinstance(value, dict) else {}


def _first_number(*values: object) -> int | None:
    return next((value for value in values if isinstance(value, int) and value > 0), None)


# The body of POST /v1/chat/completions, made of messages as our agents write them. No I/O.

# The first characters of each format in base64.
_IMAGE_TYPES = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}


@dataclass(frozen=True, slots=True)
class _Open:
    """A call that has no result yet."""

    their_id: str
    our_id: str
    tool: str


def to_openai(messages: Sequence[Json], dialect: Dialect) -> list[Json]:
    """Return the conversation in the form of /v1/chat/completions.

    Strict servers refuse a call without a result, a result without its call, and ids that are long (OpenAI: 40
    characters) or not nine letters and digits (Mistral). So each call gets an id made of its place in the conversation,
    its result the same; a call without a result gets a note, and a result whose call is gone becomes a user's text.
    """
    return list(_Translation(dialect).run(messages))


def _with_one_beginning(messages: Sequence[Json]) -> Sequence[Json]:
    """With the system messages at the beginning in one: the templates of many models take no second one."""
    count = next((at for at, each in enumerate(messages) if each.get("role") != "system"), len(messages))
    if count < 2:
        return messages
    text = "\n\n".join(str(each.get("content") or "") for each in messages[:count])
    return [{"role": "system", "content": text}, *messages[count:]]


class _Translation:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._calls = 0
        self._open: list[_Open] = []

    def run(self, messages: Sequence[Json]) -> Iterator[Json]:
        for message in _with_one_beginning(messages):
            role = message.get("role")
            if role == "tool":
                yield self._result(message)
                continue
            yield from self._unanswered()
            yield self._assistant(message) if role == "assistant" else _plain(message)
        yield from self._unanswered()

    def _assistant(self, message: Json) -> Json:
        translated = {"role": "assistant", "content": message.get("content") or ""}
        if thinking := message.get("thinking"):
            translated |= dict.fromkeys(self._dialect.thinking_keys, thinking)
        if calls := message.get("tool_calls"):
            translated["tool_calls"] = [self._call(call) for call in calls]
        return translated

    def _call(self, call: Json) -> Json:
        self._calls += 1
        function, our_id = call["function"], f"call{self._calls:05d}"
        self._open.append(_Open(str(call.get("id") or ""), our_id, function["name"]))
        arguments = json.dumps(function.get("arguments") or {})
        return {"id": our_id, "type": "function", "function": {"name": function["name"], "arguments": arguments}}

    def _result(self, message: Json) -> Json:
        tool, content = str(message.get("tool_name") or "a tool"), message.get("content") or ""
        call = self._taken(str(message.get("tool_call_id") or ""), tool)
        if call is None:
            return {"role": "user", "content": f"Result of {tool}: {content}"}
        return self._tool_message(call, content)

    def _taken(self, their_id: str, tool: str) -> _Open | None:
        """The call that a result belongs to: by its id, else by its tool, else the first of those still open."""
        by_id = [call for call in self._open if their_id and call.their_id == their_id]
        by_tool = [call for call in self._open if call.tool == tool]
        call = next(iter(by_id or by_tool or self._open), None)
        if call is not None:
            self._open.remove(call)
        return call

    def _unanswered(self) -> Iterator[Json]:
        for call in self._open:
            yield self._tool_message(call, "(no result)")
        self._open = []

    def _tool_message(self, call: _Open, content: str) -> Json:
        name = {"name": call.tool} if self._dialect.names_tools else {}
        return {"role": "tool", "tool_call_id": call.our_id, **name, "content": content}


def _plain(message: Json) -> Json:
    content = message.get("content") or ""
    images = message.get("images") or ()
    if not images:
        return {"role": message.get("role"), "content": content}
    parts: list[Json] = [{"type": "text", "text": content}] if content else []
    parts += [{"type": "image_url", "image_url": {"url": _image_url(image)}} for image in images]
    return {"role": message.get("role"), "content": parts}


def _image_url(image: str) -> str:
    if image.startswith(("data:", "https://", "http://")):
        return image
    kind = next((kind for start, kind in _IMAGE_TYPES.items() if image.startswith(start)), "image/png")
    return f"data:{kind};base64,{image}"


# The size of the context is set where the server is started; no request can change it.
_NOT_OURS = frozenset({"num_ctx"})


def chat_request(
    known: Known, messages: Sequence[Json], *, tools: Sequence[Json], think: bool, options: Mapping[str, Any] | None
) -> tuple[Json, list[Degraded]]:
    """Return the body for this model's and this server's capabilities, and what had to be left out.

    A server that does not report the model's capabilities is asked for everything. `options` have Ollama's names.
    """
    model, capabilities, dialect = known.info.name, known.info.capabilities, known.dialect
    body: Json = {
        "model": model,
        "messages": to_openai(messages, dialect),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    notes: list[Degraded] = []
    if not capabilities or "thinking" in capabilities:
        body |= dialect.thinks if think else dialect.thinks_not
    elif think:
        notes.append(Incapable.of_thinking(model))
    if tools and (not capabilities or "tools" in capabilities):
        body["tools"] = list(tools)
    elif tools:
        notes.append(Incapable.of_calling(model))
    given = {name: value for name, value in (options or {}).items() if name not in _NOT_OURS and value is not None}
    if unknown := sorted(given.keys() - dialect.options.keys()):
        notes.append(Degraded(f"the server of {model} has no option {', '.join(unknown)}; it answers without"))
    body |= {
        dialect.options[option]: value for option, value in given.items() if _wanted(option, value, dialect.options)
    }
    return body, notes


def _wanted(option: str, value: Any, known: Mapping[str, str]) -> bool:
    # A negative num_predict means no limit: the field is omitted.
    return option in known and not (option == "num_predict" and value < 0)


def response_format(schema: Mapping[str, Any] | None) -> Json:
    """OpenAI's field for a reply that follows a JSON Schema; none without a schema.

    `strict` is for schemas that it allows: every object names all its fields as required and allows no others.
    """
    if schema is None:
        return {}
    described = {"name": "reply", "strict": _is_strict(schema), "schema": dict(schema)}
    return {"response_format": {"type": "json_schema", "json_schema": described}}


def _is_strict(schema: Any) -> bool:
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        required, properties = schema.get("required", ()), schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(required) != set(properties):
            return False
    return all(map(_is_strict, schema.values()))


# The body of a streamed /v1/chat/completions, bytes in and deltas out. No I/O.

_END = b"[DONE]"
_FIELDS_WITHOUT_MEANING = (b"event", b"id", b"retry")
_FILTERED = frozenset({"content_filter", "safety", "prohibited_content"})
_MILLISECONDS = 1e3


class OpenAIStream(AnswerStream):
    """One assistant message, as server-sent events or, from a server that does not stream, as one JSON body."""

    def __init__(self, model: str, errors: ServerErrors, content_type: str) -> None:
        super().__init__(model, errors)
        self._whole = _is_whole(content_type, errors)
        self._body: list[bytes] = []
        self._calls = CallAssembler(model)
        self._usage: Json = {}
        self._timings: Json = {}
        self._reason = ""
        self._answers_as = ""

    def feed(self, data: bytes) -> Iterator[Delta]:
        """See `AnswerStream.feed`."""
        for line in self._lines.feed(data):
            if self._whole:
                self._body.append(line)
            elif payload := self._payload(line.strip()):
                yield from self._finish() if payload == _END else self._deltas(json_object(payload, self._errors))
            if self.done:
                return

    def end(self) -> Iterator[Delta]:
        """See `AnswerStream.end`."""
        if not self.finished:
            yield from self.feed(b"\n")
        if self._whole:
            yield from self._deltas(_first(b"\n".join(self._body), self._errors))
        if not self.finished:
            raise self._errors.cut(self._model)
        if not self.done:
            yield from self._finish()

    def _payload(self, line: bytes) -> bytes:
        """Return an event's data, empty for a line without any. Each line is an event: JSON needs no second one."""
        name, _, value = line.partition(b":")
        if name == b"data":
            return value.strip()
        if name == b"error":
            # llama-server before September 2025.
            return b'{"error":%s}' % value
        if line.startswith(b"{"):
            # An error passed on without its framing.
            return line
        if name and name not in _FIELDS_WITHOUT_MEANING:
            raise self._errors.bad_stream(f"a line that is no server-sent event: {line[:80]!r}")
        return b""

    def _deltas(self, chunk: Json) -> Iterator[Delta]:
        self._check(chunk)
        self._answers_as = str(chunk.get("model") or self._answers_as)
        self._usage = _dict(chunk, "usage") or self._usage
        self._timings = _dict(chunk, "timings") or self._timings
        read = _dict(chunk, "prompt_progress")
        if _number(read, "total") and "processed" in read:
            self.heard = True
            yield ProgressDelta(_number(read, "processed"), _number(read, "total"), _number(read, "cache"))
        for choice in self._items(chunk, "choices")[:1]:
            self._check(self._object(choice, "a choice"))
            yield from self._message(choice.get("delta") or choice.get("message") or {})
            yield from token_scores(choice.get("logprobs"), "content")
            if reason := choice.get("finish_reason"):
                self._stop(str(reason))

    def _message(self, message: Any) -> Iterator[Delta]:
        message = self._object(message, "a message")
        # Servers that have renamed the field send both.
        if thinking := self._text(message, "reasoning_content") or self._text(message, "reasoning"):
            self.heard = True
            yield ThinkingDelta(thinking)
        if content := self._text(message, "content") or self._text(message, "refusal"):
            self.heard = True
            yield from self._tags.feed(content)
        for fragment in self._items(message, "tool_calls"):
            self.heard = True
            self._calls.add(fragment)

    def _stop(self, reason: str) -> None:
        self.heard = True
        self.finished, self._reason = True, reason
        if reason.lower() in _FILTERED:
            raise self._errors.explain(f"content_filter: {reason}", status=None, model=self._model)
        if "malformed_function_call" in reason.lower():
            raise unclear(f"{self._model} made a tool call that its server could not read")
        if reason == "error":
            raise self._errors.explain("the model stopped with an error", status=None, model=self._model)

    def _finish(self) -> Iterator[Delta]:
        self.finished = self.done = True
        yield from self._tags.close()
        yield from self._calls.calls(self._reason)
        usage = Usage(
            _number(self._usage, "prompt_tokens"), _number(self._usage, "completion_tokens"), self._durations()
        )
        yield Done(usage, reason=self._reason or "stop", model=self._answers_as)

    def _durations(self) -> dict[str, float]:
        """Return the seconds by Ollama's names; only llama-server reports them."""
        names = {"prompt_eval": "prompt_ms", "eval": "predicted_ms"}
        told = {ours: self._timings[theirs] for ours, theirs in names.items() if theirs in self._timings}
        return {name: value / _MILLISECONDS for name, value in told.items() if isinstance(value, int | float)}

    def _check(self, part: Json) -> None:
        """Raise the error in a chunk or choice; vLLM once sent it without an envelope."""
        if not part.get("error") and part.get("object") != "error":
            return
        code = error_object(part).get("code")
        status = code if isinstance(code, int) and 400 <= code < 600 else None
        raise self._errors.explain(part, status=status, model=self._model)


def _is_whole(content_type: str, errors: ServerErrors) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in ("text/event-stream", "application/json"):
        raise errors.bad_stream(f"{content_type} instead of server-sent events")
    return kind == "application/json"


def _first(body: bytes, errors: ServerErrors) -> Json:
    """The object of a whole body; Google wraps an error in a list."""
    body = body.strip()
    return json_object(body[1:-1] if body.startswith(b"[") else body, errors)


def _dict(body: Json, key: str) -> Json:
    value = body.get(key)
    return value if isinstance(value, dict) else {}


def _number(body: Json, key: str) -> int:
    value = body.get(key)
    return value if isinstance(value, int) else 0


@dataclass(slots=True)
class _Slot:
    """A call so far."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""

    @property
    def is_complete(self) -> bool:
        try:
            return isinstance(from_json(self.arguments), dict)
        except ValueError:
            return False


class CallAssembler:
    """The tool calls of one answer while they come: it takes the fragments of `delta.tool_calls`, and gives the calls
    in the order of their index.

    OpenAI gives each call an index, and its id and name once. Others leave the index out (Google), give every call the
    index 0 (gateways in front of Gemini), repeat id and name in every fragment, or send arguments as an object.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._slots: list[_Slot] = []

    def add(self, fragment: Any) -> None:
        """Add one fragment. Raises `ModelError(kind="bad_call")` for one that belongs to no call."""
        function = fragment.get("function") if isinstance(fragment, dict) else None
        if not isinstance(fragment, dict) or not isinstance(function or {}, dict):
            raise unclear(f"{self._model} made a tool call that is no object: {fragment!r:.200}")
        part = _part(fragment, function or {})
        slot = self._slot(part, indexed=isinstance(fragment.get("index"), int))
        slot.id, slot.name = slot.id or part.id, slot.name or part.name
        slot.arguments += part.arguments

    def calls(self, reason: str) -> list[ToolCall]:
        """All calls; `reason` is why the model stopped. Raises `ModelError(kind="bad_call")` for an unclear one."""
        if reason == "length" and self._slots and not self._slots[-1].is_complete:
            name = self._slots[-1].name
            raise unclear(f"{self._model} reached its token limit within a call of {name}: raise num_predict")
        ordered = sorted(self._slots, key=lambda slot: slot.index)
        return [read_call(slot.name, slot.arguments, slot.id, self._model) for slot in ordered]

    def _slot(self, part: _Slot, *, indexed: bool) -> _Slot:
        """The call that a fragment continues, or a new one."""
        if indexed:
            slot = next((slot for slot in reversed(self._slots) if slot.index == part.index), None)
        else:
            same = [slot for slot in self._slots if part.id and slot.id == part.id]
            slot = same[-1] if same else self._slots[-1] if self._slots else None
            part.index = slot.index if slot else 0
        if slot is not None and not _begins_another(slot, part):
            return slot
        self._slots.append(_Slot(part.index))
        return self._slots[-1]


def _begins_another(slot: _Slot, part: _Slot) -> bool:
    if part.id and slot.id and part.id != slot.id:
        return True
    if not (part.name and slot.name):
        return False
    return part.name != slot.name or bool(part.arguments.strip() and slot.is_complete)


def _part(fragment: Json, function: Json) -> _Slot:
    index, arguments = fragment.get("index"), function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    name, call_id = str(function.get("name") or ""), str(fragment.get("id") or "")
    return _Slot(index if isinstance(index, int) else 0, call_id, name, arguments or "")


log = logging.getLogger(__name__)

_NO_LIST = (404, 405, 501)


class OpenAIModel(ModelClient[Known]):
    """A `ChatModel` on the server whose API begins at `base_url` (see `normalise_base_url`).

    `api_key` is sent as a bearer token and shown nowhere. Every failure is a `ModelError` of the kinds that
    `OllamaModel` has, or of rate_limit, quota or filtered; `ModelBusy` says when to retry. Raises `ConfigError` for an
    invalid key.
    """

    chat_path = "/chat/completions"

    def __init__(self, base_url: str, *, api_key: str = "", **limits: Unpack[ConnectionLimits]) -> None:
        headers = {"Accept": "text/event-stream, application/json", **authorisation(api_key)}
        super().__init__(openai_errors(base_url, api_key), headers, **limits)
        self._root = base_url.removesuffix("/v1")

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order."""
        if not texts:
            return []
        body = {"model": model, "input": list(texts), "encoding_format": "float"}
        entries = (await self._call("POST", "/embeddings", _Embeddings, body)).data
        if sorted(entry.index for entry in entries) != list(range(len(texts))):
            raise self._errors.bad_stream(f"{len(entries)} vectors for {len(texts)} texts")
        return [entry.embedding for entry in sorted(entries, key=lambda entry: entry.index)]

    async def show(self, model: str) -> ModelInfo:
        """Return the server's description of a model; empty capabilities and context length are unknown ones.

        Raises `ModelError(kind="model_missing")` if the server does not list it.
        """
        listed = (await self._call("GET", "/models", _Models)).data
        entry = find(listed, model)
        if entry is None:
            there = ", ".join(str(entry.get("id")) for entry in listed[:10]) or "none"
            raise self._errors.explain(f"model {model} not found among {there}", status=None, model=model)
        found = known(model, entry, {})
        if found.dialect is LLAMA_SERVER:
            found = known(model, entry, await self._props(model))
        self._known[model] = found
        return found.info

    async def load(self, model: str, options: Mapping[str, Any]) -> None:
        """The API has no word for it: a server has its models in memory, or loads them when they are asked."""

    async def models(self) -> list[str]:
        """The names of all models that the server offers."""
        return [str(entry.get("id")) for entry in (await self._call("GET", "/models", _Models)).data]

    async def listed(self) -> list[ModelInfo]:
        """Return the server's list of its models."""
        entries = (await self._call("GET", "/models", _Models)).data
        return [known(str(entry["id"]), entry, {}).info for entry in entries if entry.get("id")]

    async def _look(self, model: str) -> Known:
        """Return the description of a model. Lists may be incomplete or absent: only an answer shows whether the model
        exists.
        """
        if model not in self._known:
            try:
                await self.show(model)
            except ModelError as error:
                if error.kind != "model_missing" and error.status not in _NO_LIST:
                    raise
                self._known[model] = Known(ModelInfo(model, frozenset()), UNKNOWN)
        return self._known[model]

    async def _props(self, model: str) -> Json:
        """Return llama-server's description of itself; a gateway may block it, and then less is known."""
        path = str(httpx.URL(self._root + "/props", params={"model": model}))
        try:
            return (await self._call("GET", path, _Props)).model_dump()
        except ModelError as error:
            log.info("%s tells nothing about itself: %s", self._root, error)
            return {}

    def _request(
        self,
        known: Known,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json],
        think: bool,
        options: Mapping[str, Any] | None,
    ) -> tuple[Json, list[Degraded]]:
        return chat_request(known, messages, tools=tools, think=think, options=options)

    def _form(self, schema: Json | None) -> Json:
        return response_format(schema)

    def _progress(self, known: Known) -> Json:
        return known.dialect.progress

    def _in_words(self, known: Known, *, think: bool) -> Json:
        capabilities = known.info.capabilities
        thinks = think and (not capabilities or "thinking" in capabilities)
        return {} if thinks else known.dialect.in_words

    def _answer(self, model: str, content_type: str) -> AnswerStream:
        return OpenAIStream(model, self._errors, content_type)


class _Models(BaseModel):
    data: list[dict[str, Any]]


class _Props(BaseModel, extra="allow"):
    pass


class _Embedding(BaseModel):
    index: int
    embedding: list[float]


class _Embeddings(BaseModel):
    data: list[_Embedding]
