"""OpenAI's chat completions: a request as a query. Unsupported options are refused."""

from __future__ import annotations

import base64
import binascii
import json
import re
from array import array
from collections.abc import Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json, to_json

from local.api.http import KEEP_ALIVE, Chunks, RequestRefused, openai_error, schema_fault
from local.api.queries import batches
from local.bus.message import ErrorInfo
from local.bus.messages import AnswerOptions, ResponseGeneration, UsageInfo
from local.bus.vocabulary import MEMORY_TOOLS
from local.core.errors import LocalError
from local.models.client import fits
from local.queries.asker import LiveQuery
from local.queries.errors import QueryRefused
from local.queries.view import QueryEvent

# The messages of OpenAI's chat completions, and their conversion for our model clients.

Json = dict[str, Any]
_DATA_URL = re.compile(r"data:[\w.+/-]*;base64,")
EARLIER_PICTURE = "[a picture was here]"


class TextPart(BaseModel):
    """A piece of text."""

    type: Literal["text"]
    text: str


class ImageUrl(BaseModel):
    """The address of a picture."""

    url: str


class ImagePart(BaseModel):
    """A picture, within its `data:` URL."""

    type: Literal["image_url"]
    image_url: ImageUrl


class CalledFunction(BaseModel):
    """A function of the client, and its arguments as JSON."""

    name: str = Field(min_length=1)
    arguments: str = ""


class MadeCall(BaseModel):
    """A call in a message of the assistant."""

    id: str = Field(min_length=1)
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(BaseModel):
    """One message. "developer" is the newer word for "system"; a "tool" message is the result of one of the calls."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Annotated[TextPart | ImagePart, Field(discriminator="type")]] | None = None
    tool_calls: list[MadeCall] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """The text of the message."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content if isinstance(part, TextPart))
        return self.content or ""

    @property
    def picture_urls(self) -> list[str]:
        """The addresses of the message's pictures."""
        parts = self.content if isinstance(self.content, list) else []
        return [part.image_url.url for part in parts if isinstance(part, ImagePart)]


def as_history(messages: Sequence[ChatMessage]) -> list[Json]:
    """Return the messages in the form for later prompts, without pictures: those of `ChatModel`. Raises
    `RequestRefused` for a result without its call, and for arguments that are no JSON object.
    """
    told: list[Json] = []
    functions: dict[str, str] = {}
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        text = "\n".join((message.text, *(EARLIER_PICTURE for _ in message.picture_urls)))
        role = "system" if message.role == "developer" else message.role
        entry: Json = {"role": role, "content": text}
        if message.role == "tool":
            called = functions.get(message.tool_call_id or "")
            if called is None:
                fault = f"{where}.tool_call_id: no call {message.tool_call_id!r} precedes this result"
                raise RequestRefused("invalid", fault, f"{where}.tool_call_id")
            entry |= {"tool_name": called, "tool_call_id": message.tool_call_id}
        elif message.role == "assistant" and message.tool_calls:
            functions |= {call.id: call.function.name for call in message.tool_calls}
            entry["tool_calls"] = [_call(call, f"{where}.tool_calls") for call in message.tool_calls]
        told.append(entry)
    return told


def _call(call: MadeCall, where: str) -> Json:
    try:
        arguments = from_json(call.function.arguments.strip() or "{}")
    except ValueError as error:
        raise RequestRefused("invalid", f"{where}: the arguments of {call.id} are no JSON: {error}", where) from None
    if not isinstance(arguments, dict):
        raise RequestRefused("invalid", f"{where}: the arguments of {call.id} are no JSON object", where)
    return {"id": call.id, "function": {"name": call.function.name, "arguments": arguments}}


def pictures_of(message: ChatMessage) -> list[bytes]:
    """The pictures of a message. Raises `RequestRefused` for one that is not in the request itself."""
    return [_picture(url) for url in message.picture_urls]


def _picture(url: str) -> bytes:
    start = _DATA_URL.match(url)
    if start is None:
        raise RequestRefused(
            "invalid", "messages: a picture must be a data: URL in base64; no other is fetched", "messages"
        )
    try:
        return base64.b64decode(url[start.end() :], validate=True)
    except binascii.Error as error:
        raise RequestRefused("invalid", f"messages: a picture is no base64: {error}", "messages") from None


OURS = "local2:"  # before the name of a profile
REMEMBER = "local2:remember"
OWN_NAME = "local2"
DEFAULT_NAMES = (OWN_NAME, "default", REMEMBER)  # of the default model
RECALL = MEMORY_TOOLS[:1]
MAX_FUNCTIONS = 128
Penalty = Annotated[float | None, Field(ge=-2, le=2, allow_inf_nan=False)]
Tokens = Annotated[int | None, Field(ge=1, lt=2**31)]  # which every model server can count
Seed = Annotated[int | None, Field(ge=-(2**63), lt=2**63)]


class StreamOptions(BaseModel):
    """The options of a streamed completion."""

    include_usage: bool = False


class ClientFunction(BaseModel):
    """A function that the client runs. Arguments of a `strict` one fit its schema, or the query fails."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str | None = None
    parameters: Json | None = None
    strict: bool | None = None


class ClientTool(BaseModel):
    """A tool of the client."""

    type: Literal["function"]
    function: ClientFunction

    def as_function(self) -> Json:
        """Return the tool's schema for the model."""
        parameters = self.function.parameters or {"type": "object", "properties": {}}
        told = {"name": self.function.name, "description": self.function.description or "", "parameters": parameters}
        return {"type": "function", "function": told}


class ChosenFunction(BaseModel):
    """The name of a function."""

    name: str


class ChosenTool(BaseModel):
    """The one tool that is to be called."""

    type: Literal["function"]
    function: ChosenFunction


class JsonSchemaForm(BaseModel):
    """The JSON Schema that an answer follows."""

    name: str = "reply"
    description: str | None = None
    schema_: Json = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(BaseModel):
    """The form of the answer: any text, any JSON object, or that of a JSON Schema."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaForm | None = None

    def schema_of_answer(self) -> Json | None:
        """The JSON Schema that the answer follows, if there is one."""
        if self.type == "json_schema":
            if self.json_schema is None:
                raise RequestRefused("invalid", "response_format: json_schema is missing", "response_format")
            return self.json_schema.schema_
        return {"type": "object"} if self.type == "json_object" else None


class ChatRequest(BaseModel):
    """The body of POST /v1/chat/completions. The fields of the last group concern bookkeeping of a provider; they would
    change nothing."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(min_length=1)
    messages: list[ChatMessage] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    tools: list[ClientTool] | None = Field(None, max_length=MAX_FUNCTIONS)
    tool_choice: Literal["none", "auto", "required"] | ChosenTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None

    max_tokens: Tokens = None
    max_completion_tokens: Tokens = None
    stop: str | Annotated[list[str], Field(max_length=16)] | None = None
    seed: Seed = None
    temperature: Annotated[float | None, Field(ge=0, le=2, allow_inf_nan=False)] = None
    top_p: Annotated[float | None, Field(gt=0, le=1, allow_inf_nan=False)] = None
    frequency_penalty: Penalty = None
    presence_penalty: Penalty = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None

    n: Literal[1] | None = None
    logprobs: Literal[False] | None = None
    modalities: list[Literal["text"]] | None = None

    user: str | None = None
    metadata: Json | None = None
    store: bool | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return self.stream_options is not None and self.stream_options.include_usage


@dataclass(frozen=True, slots=True)
class ChatQuery:
    """The question in a request. `history` precedes its `text`, `continued` follows it; `pictures` belong to it."""

    text: str
    history: list[Json]
    continued: list[Json]
    pictures: list[bytes]
    options: AnswerOptions


def refuse_unknown(request: BaseModel) -> None:
    """Raise `RequestRefused` for a field that the request's model, which allows extra ones, does not have."""
    for name, value in (request.model_extra or {}).items():
        if value is not None:
            raise RequestRefused("invalid", f"{name[:100]}: not supported here; nothing is ignored, leave it out", name)


def profile_in(model: str) -> str | None:
    """The name of the profile that a model's name asks for, if it does."""
    return model.removeprefix(OURS) if model.startswith(OURS) and model != REMEMBER else None


def as_query(request: ChatRequest, profiles: Collection[str] = ()) -> ChatQuery:
    """Return the last message of the user as the query; without the tools of the memory, unless the client has the
    exchange remembered. Raises `RequestRefused` for options that are not supported.
    """
    refuse_unknown(request)
    profile = profile_in(request.model)
    if profile is not None and profile not in profiles:
        raise RequestRefused("not_found", f"there is no model {request.model[:80]}; see GET /v1/models", "model")
    messages = request.messages
    asked = next((at for at in reversed(range(len(messages))) if messages[at].role == "user"), -1)
    if asked < 0 or messages[-1].role not in ("user", "tool") or not messages[asked].text.strip():
        fault = "messages: the last one must be a user's and say something, or the result of a tool"
        raise RequestRefused("invalid", fault, "messages")
    told = as_history(messages)
    text, pictures = messages[asked].text, pictures_of(messages[asked])
    return ChatQuery(text, told[:asked], told[asked + 1 :], pictures, _options(request))


def _refuse_senseless(request: ChatRequest) -> None:
    """Raise `RequestRefused` for a schema that no model server could read."""
    for at, tool in enumerate(request.tools or ()):
        place, schema = f"tools.{at}.function.parameters", tool.function.parameters
        if schema and schema.get("type", "object") != "object":
            text = f"{place}.type: expected object: the arguments of {tool.function.name} have names"
            raise RequestRefused("invalid", text, f"{place}.type")
        if schema:
            _require_schema(schema, place)
    if request.response_format is not None and request.response_format.json_schema is not None:
        _require_schema(request.response_format.json_schema.schema_, "response_format.json_schema.schema")


def _require_schema(schema: Json, place: str) -> None:
    if (fault := schema_fault(schema)) is not None:
        at = f"{place}.{fault.place}"
        raise RequestRefused("invalid", f"{at}: {fault.text}", at)


def _options(request: ChatRequest) -> AnswerOptions:
    _refuse_senseless(request)
    functions = tuple(tool.as_function() for tool in request.tools or ())
    names = [function["function"]["name"] for function in functions]
    if len(set(names)) < len(names):
        raise RequestRefused("invalid", "tools: two have the same name", "tools")
    remember, form = request.model == REMEMBER, request.response_format
    stop = (request.stop,) if isinstance(request.stop, str) else request.stop
    effort = request.reasoning_effort
    given: Json = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "frequency_penalty": request.frequency_penalty,
        "presence_penalty": request.presence_penalty,
        "seed": request.seed,
        "stop": tuple(stop) if stop else None,
        "max_tokens": request.max_completion_tokens or request.max_tokens,
        "think": None if effort is None else effort != "none",
        "format": None if form is None else form.schema_of_answer(),
        "must_call": _must_call(request, names),
        "functions": () if request.tool_choice == "none" else functions,
        "one_call": request.parallel_tool_calls is False,
        "allow": (RECALL if remember else ()) if functions else None,
        "deny": () if remember else MEMORY_TOOLS,
        "remember": remember,
    }
    return AnswerOptions(**given)


def _must_call(request: ChatRequest, names: list[str]) -> str | None:
    choice = request.tool_choice
    if choice in (None, "auto", "none"):
        return None
    if not names:
        raise RequestRefused("invalid", "tool_choice: there are no tools to choose from", "tool_choice")
    if not isinstance(choice, ChosenTool):
        return "any"
    if choice.function.name not in names:
        fault = f"tool_choice: {choice.function.name[:100]!r} is not among the tools"
        raise RequestRefused("invalid", fault, "tool_choice")
    return choice.function.name


# An answer in OpenAI's words, whole and streamed.

DELTAS = {"token": "content", "thinking": "reasoning"}


class Answer:
    """An answer in the words of one of OpenAI's interfaces. `held` are the fragments that a stream does not send."""

    def __init__(self, request: ChatRequest) -> None:
        self.request = request
        self._strict = {
            tool.function.name: tool.function.parameters or {} for tool in request.tools or () if tool.function.strict
        }
        self._must_call = request.tool_choice not in (None, "auto", "none")
        self._form = None if request.response_format is None else request.response_format.schema_of_answer()
        # A message in the form of a call is not text, which is clear only at its end.
        self.held: Collection[str] = ("token",) if self._must_call or (request.tools and self._form) else ()

    def begin(self) -> bytes:
        """The beginning of a stream."""
        raise NotImplementedError

    def delta(self, delta: Json) -> bytes:
        """A piece of the answer: `content` or `reasoning`."""
        raise NotImplementedError

    def end(self, response: ResponseGeneration) -> bytes:
        """The end of a stream, with the calls that the client is to make."""
        raise NotImplementedError

    def failed(self, error: LocalError) -> bytes:
        """The end of a stream that has failed."""
        raise NotImplementedError

    def check(self, response: ResponseGeneration) -> None:
        """Raise `QueryRefused` for an answer without the call that the client requires, with arguments that a strict
        function refuses, or in another form than the one required. An answer that was cut off has no form.
        """
        for call in response.client_calls:
            if call.function in self._strict and not fits(call.arguments, self._strict[call.function]):
                fault = f"the model called {call.function}, which is strict, with arguments that its schema refuses"
                raise QueryRefused("bad_call", fault)
        if response.client_calls or response.cut_off or response.status == "cancelled":
            return
        model = response.model or "the model"
        if self._must_call:
            fault = (
                f"tool_choice requires a call, and {model} has answered without one: ask again, or use another model"
            )
            raise QueryRefused("no_call", fault)
        if self._form is not None and not _is_in_form(response.answer, self._form):
            fault = f"the answer of {model} does not follow response_format: ask again, or use another model"
            raise QueryRefused("bad_form", fault)

    def calls(self, response: ResponseGeneration) -> list[Json]:
        """The calls that the client is to make."""
        return [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.function, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in response.client_calls
        ]


def _is_in_form(answer: str, schema: Json) -> bool:
    try:
        return fits(from_json(answer.strip()), schema)
    except ValueError:
        return False


class Completion(Answer):
    """One completion. `created` is seconds since 1970; `model` is the name of the requested model. The end of a stream,
    and a whole answer, name the one that has answered.
    """

    def __init__(self, query_id: str, request: ChatRequest, created: int, model: str) -> None:
        super().__init__(request)
        self._head = {"id": f"chatcmpl-{query_id}", "created": created, "model": model}

    def whole(self, response: ResponseGeneration) -> Json:
        """The answer as one object. Raises as `check`."""
        self.check(response)
        calls = self.calls(response)
        message: Json = {"role": "assistant", "content": (response.answer or None) if calls else response.answer}
        if response.thinking:
            message["reasoning"] = response.thinking
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": finish_reason(response), "logprobs": None}
        self._answered_by(response)
        head = {**self._head, "object": "chat.completion", "system_fingerprint": response.model or None}
        return {**head, "choices": [choice], "usage": _usage(response.usage)}

    def begin(self) -> bytes:
        """The beginning of a message."""
        return self.delta({"role": "assistant", "content": ""})

    def delta(self, delta: Json, ended: str | None = None) -> bytes:
        """A piece of the answer."""
        return self._chunk(choices=[{"index": 0, "delta": delta, "finish_reason": ended}])

    def end(self, response: ResponseGeneration) -> bytes:
        """Return the calls that the client is to make, the reason of the end, and the usage."""
        self._answered_by(response)
        numbered = [{"index": index, **call} for index, call in enumerate(self.calls(response))]
        includes_usage = self.request.includes_usage
        return b"".join(
            [
                self.delta({"tool_calls": numbered}) if numbered else b"",
                self.delta({}, finish_reason(response)),
                self._chunk(choices=[], usage=_usage(response.usage)) if includes_usage else b"",
                b"data: [DONE]\n\n",
            ]
        )

    def failed(self, error: LocalError) -> bytes:
        """The error."""
        return _data(openai_error(error))

    def _answered_by(self, response: ResponseGeneration) -> None:
        """From here on name the model that has answered: where one could not, another did."""
        self._head["model"] = response.model or self._head["model"]

    def _chunk(self, **fields: Any) -> bytes:
        return _data({**self._head, "object": "chat.completion.chunk", **fields})


async def answer_chunks(query: LiveQuery, answer: Answer, keep_alive_seconds: float) -> Chunks:
    """Yield the answer as it is generated; content that is available together is one chunk."""
    said = _Said(answer)
    yield answer.begin()
    followed = batches(query, 0, tick_seconds=keep_alive_seconds)
    async with aclosing(followed):
        async for events in followed:
            if chunk := b"".join([said.written(event) for event in events]):
                yield chunk
            elif not events:
                yield KEEP_ALIVE
    try:
        response = await answer_to(query)
        answer.check(response)
    except LocalError as error:
        yield answer.failed(error)
        return
    rest = missing_text(said.content, response.answer)
    yield (answer.delta({"content": rest}) if rest else b"") + answer.end(response)


async def answer_to(query: LiveQuery) -> ResponseGeneration:
    """The answer, complete or cut short by a cancel. Raises `QueryRefused` for a turn that failed."""
    response = await query.outcome()
    if response.status == "failed":
        error = response.error or ErrorInfo(kind="failed", message="the turn failed")
        raise QueryRefused(error.kind, error.message)
    return response


def finish_reason(response: ResponseGeneration) -> str:
    """Why the answer ends, in OpenAI's words."""
    if response.client_calls:
        return "tool_calls"
    return "length" if response.cut_off else "stop"


class _Said:
    """The content that the client has received, which cannot be taken back."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._begun_again = False
        self.content = ""

    def written(self, event: QueryEvent) -> bytes:
        """A streamed fragment; nothing once the answer was begun again by a restarted generator."""
        self._begun_again = self._begun_again or event.kind == "snapshot"
        if self._begun_again or event.kind not in DELTAS or event.kind in self._answer.held:
            return b""
        text = from_json(event.payload)["text"]
        if event.kind == "token":
            self.content += text
        return self._answer.delta({DELTAS[event.kind]: text})


def missing_text(said: str, answer: str) -> str:
    """Return the text that has to follow `said` so that the client has the whole answer at the end."""
    if said.endswith(answer):  # `said` may begin with text before a tool call
        return ""
    return answer[len(said) :] if answer.startswith(said) else f"\n\n{answer}"


def _usage(usage: UsageInfo) -> Json:
    total = usage.prompt_tokens + usage.completion_tokens
    return {
        "prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens, "total_tokens": total,
    }  # fmt: skip


def _data(value: Json) -> bytes:
    return b"data: %s\n\n" % to_json(value)


# OpenAI's embeddings: the request, and vectors in its format.

MAX_TEXTS, MAX_CHARACTERS = 256, 200_000
BATCH = 16


class EmbeddingRequest(BaseModel):
    """The body of POST /v1/embeddings. The vectors are those of the memory's model, whatever `model` is; their length
    cannot be chosen.
    """

    model_config = ConfigDict(extra="allow")

    model: str = Field(min_length=1)
    input: str | list[str]
    encoding_format: Literal["float", "base64"] | None = None
    user: str | None = None

    def texts(self) -> list[str]:
        """Return the texts to embed. Raises `RequestRefused` for none, too many, and unsupported options."""
        refuse_unknown(self)
        texts = [self.input] if isinstance(self.input, str) else self.input
        if not texts or not all(text.strip() for text in texts):
            raise RequestRefused("invalid", "input: give a text that says something, or several", "input")
        if len(texts) > MAX_TEXTS or sum(map(len, texts)) > MAX_CHARACTERS:
            fault = f"input: at most {MAX_TEXTS} texts of {MAX_CHARACTERS:,} characters together"
            raise RequestRefused("invalid", fault, "input")
        return texts


def embeddings(request: EmbeddingRequest, model: str, vectors: Sequence[Sequence[float]]) -> Json:
    """The vectors as one object; `model` is the one that has made them. Its tokens are not counted."""
    as_text = request.encoding_format == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _base64(vector) if as_text else list(vector)}
        for index, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": 0, "total_tokens": 0}}


def _base64(vector: Sequence[float]) -> str:
    numbers = array("f", vector)
    if numbers.itemsize != 4:
        raise TypeError("a float of this machine has no four bytes")
    return base64.b64encode(numbers.tobytes()).decode()
