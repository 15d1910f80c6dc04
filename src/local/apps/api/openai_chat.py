"""OpenAI's chat completions: the query that a request is. What is not honoured is refused."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from local.apps.api.errors import RequestRefused
from local.apps.api.openai_messages import ChatMessage, as_history, pictures_of
from local.apps.api.schema_fault import schema_fault
from local.protocol.messages import AnswerOptions

Json = dict[str, Any]
OURS = "local2:"  # before the name of a profile
REMEMBER = "local2:remember"
OWN_NAME = "local2"
DEFAULT_NAMES = (OWN_NAME, "default", REMEMBER)  # of the model that answers where nobody chooses
RECALL = ("search_memory",)
MAX_FUNCTIONS = 128
Penalty = Annotated[float | None, Field(ge=-2, le=2, allow_inf_nan=False)]
Tokens = Annotated[int | None, Field(ge=1, lt=2**31)]  # which every model server can count
Seed = Annotated[int | None, Field(ge=-(2**63), lt=2**63)]


class StreamOptions(BaseModel):
    """How to stream."""

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
        """The tool as the model is told of it."""
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
    """The form of the answer: any text, any JSON object, or what a JSON Schema says."""

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
    """What a request asks. `history` came before the question `text`, `continued` after it; `pictures` are its own."""

    text: str
    history: list[Json]
    continued: list[Json]
    pictures: list[bytes]
    options: AnswerOptions | None


def refuse_unknown(request: BaseModel) -> None:
    """Raise `RequestRefused` for a field that the request's model, which allows extra ones, does not have."""
    for name, value in (request.model_extra or {}).items():
        if value is not None:
            raise RequestRefused("invalid", f"{name[:100]}: not supported here; nothing is ignored, leave it out", name)


def profile_in(model: str) -> str | None:
    """The name of the profile that a model's name asks for, if it does."""
    return model.removeprefix(OURS) if model.startswith(OURS) and model != REMEMBER else None


def as_query(request: ChatRequest, profiles: Collection[str] = ()) -> ChatQuery:
    """The last message of the user as the query. Raises `RequestRefused` for what is not honoured."""
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
    """Raise `RequestRefused` for a schema that no model server could read, whatever comes of the query."""
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


def _options(request: ChatRequest) -> AnswerOptions | None:
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
        "remember": remember,
    }
    options = AnswerOptions(**given)
    return None if options == AnswerOptions() else options


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
