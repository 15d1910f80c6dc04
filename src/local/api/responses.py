"""OpenAI's responses, which newer clients use instead of chat completions: the same question in another form.

A request becomes a `ChatRequest`, so that both routes ask in the same way. No response is kept here: the client sends
the whole conversation each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic_core import to_json

from local.api.http import RequestRefused, openai_error, sse
from local.api.openai import (
    MAX_FUNCTIONS,
    Answer,
    CalledFunction,
    ChatMessage,
    ChatRequest,
    ChosenFunction,
    ChosenTool,
    ClientFunction,
    ClientTool,
    ImagePart,
    ImageUrl,
    Json,
    JsonSchemaForm,
    MadeCall,
    ResponseFormat,
    TextPart,
    Tokens,
    refuse_unknown,
)
from local.bus.messages import ResponseGeneration, UsageInfo
from local.core.errors import LocalError

# The request.


class Content(BaseModel):
    """A piece of a message's content: text, or a picture within its `data:` URL."""

    type: Literal["input_text", "output_text", "text", "refusal", "input_image"]
    text: str = ""
    refusal: str = ""
    image_url: str = ""


class MessageItem(BaseModel):
    """One message of the conversation."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Content]


class CallItem(BaseModel):
    """A call of one of the client's functions, which the model has made."""

    type: Literal["function_call"]
    call_id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    arguments: str = ""


class CallOutputItem(BaseModel):
    """The result of such a call."""

    type: Literal["function_call_output"]
    call_id: str = Field(min_length=1)
    output: str | list[Content]


class ReasoningItem(BaseModel):
    """A model's earlier reasoning in a request. It is accepted and put into no prompt."""

    type: Literal["reasoning"]


def _type_of(item: Any) -> str:
    return str(item.get("type", "message")) if isinstance(item, dict) else "message"


Item = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[CallOutputItem, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(_type_of),
]


class FunctionTool(BaseModel):
    """A function that the client runs."""

    type: Literal["function"]
    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str | None = None
    parameters: Json | None = None
    strict: bool | None = None


class HostedTool(BaseModel):
    """A tool that OpenAI runs itself. The model is not offered it."""

    type: Literal[
        "web_search",
        "web_search_preview",
        "file_search",
        "code_interpreter",
        "image_generation",
        "computer_use_preview",
    ]


class ChosenResponseFunction(BaseModel):
    """The one function that is to be called."""

    type: Literal["function"]
    name: str


class TextFormat(BaseModel):
    """The form of the answer: any text, any JSON object, or that of a JSON Schema."""

    type: Literal["text", "json_object", "json_schema"]
    name: str = "reply"
    schema_: Json | None = Field(None, alias="schema")
    strict: bool | None = None


class TextOptions(BaseModel):
    """The options of the answer's text."""

    model_config = ConfigDict(extra="allow")

    format: TextFormat | None = None
    verbosity: Literal["medium"] | None = None


class ReasoningOptions(BaseModel):
    """How much the model thinks. A `summary` is not made: the thinking itself is sent."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    summary: str | None = None


class ResponsesRequest(BaseModel):
    """The body of POST /v1/responses. The fields of the last group concern bookkeeping of a provider; they would change
    nothing."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(min_length=1)
    input: str | list[Item]
    instructions: str | None = None
    stream: bool | None = None

    tools: list[Annotated[FunctionTool | HostedTool, Field(discriminator="type")]] | None = Field(
        None, max_length=MAX_FUNCTIONS
    )
    tool_choice: Literal["none", "auto", "required"] | ChosenResponseFunction | None = None
    parallel_tool_calls: bool | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    max_output_tokens: Tokens = None
    temperature: Annotated[float | None, Field(ge=0, le=2, allow_inf_nan=False)] = None
    top_p: Annotated[float | None, Field(gt=0, le=1, allow_inf_nan=False)] = None

    background: Literal[False] | None = None
    top_logprobs: Literal[0] | None = None

    client_metadata: Json | None = None
    include: list[str] | None = None
    metadata: Json | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    stream_options: Json | None = None
    truncation: Literal["auto", "disabled"] | None = None
    user: str | None = None


def as_chat(asked: ResponsesRequest) -> ChatRequest:
    """Return the same request as one of chat completions. Raises `RequestRefused`."""
    if (asked.model_extra or {}).get("previous_response_id"):
        text = "previous_response_id: no response is kept here; send the whole conversation as input"
        raise RequestRefused("invalid", text, "previous_response_id")
    refuse_unknown(asked)
    if asked.text is not None:
        refuse_unknown(asked.text)
    messages = list(_messages(asked))
    roles = [message.role for message in messages]
    if roles[-1:] not in (["user"], ["tool"]) or "user" not in roles:
        text = "input: the last item must be a user's message, or the output of a call that follows one"
        raise RequestRefused("invalid", text, "input")
    choice: Any = asked.tool_choice
    if isinstance(choice, ChosenResponseFunction):
        choice = ChosenTool(type="function", function=ChosenFunction(name=choice.name))
    return ChatRequest(
        model=asked.model,
        messages=messages,
        stream=asked.stream,
        tools=[_tool(tool) for tool in asked.tools or () if isinstance(tool, FunctionTool)] or None,
        tool_choice=choice,
        parallel_tool_calls=asked.parallel_tool_calls,
        response_format=_form(asked.text.format) if asked.text and asked.text.format else None,
        max_completion_tokens=asked.max_output_tokens,
        temperature=asked.temperature,
        top_p=asked.top_p,
        reasoning_effort=asked.reasoning.effort if asked.reasoning else None,
    )


def _messages(asked: ResponsesRequest) -> Iterator[ChatMessage]:
    if asked.instructions:
        yield ChatMessage(role="system", content=asked.instructions)
    if isinstance(asked.input, str):
        yield ChatMessage(role="user", content=asked.input)
        return
    calls: list[MadeCall] = []  # of one message: they follow each other
    for number, item in enumerate(asked.input):
        if isinstance(item, CallItem):
            calls.append(MadeCall(id=item.call_id, function=CalledFunction(name=item.name, arguments=item.arguments)))
            continue
        if calls:
            yield ChatMessage(role="assistant", tool_calls=calls)
            calls = []
        if isinstance(item, MessageItem):
            yield ChatMessage(role=item.role, content=_content(item.content, f"input.{number}.content"))
        elif isinstance(item, CallOutputItem):
            content = _content(item.output, f"input.{number}.output")
            yield ChatMessage(role="tool", tool_call_id=item.call_id, content=content)
    if calls:
        yield ChatMessage(role="assistant", tool_calls=calls)


def _content(content: str | list[Content], where: str) -> str | list[TextPart | ImagePart]:
    if isinstance(content, str):
        return content
    parts = list[TextPart | ImagePart]()
    for number, each in enumerate(content):
        if each.type != "input_image":
            parts.append(TextPart(type="text", text=each.text or each.refusal))
        elif each.image_url.startswith("data:"):
            parts.append(ImagePart(type="image_url", image_url=ImageUrl(url=each.image_url)))
        else:
            at = f"{where}.{number}.image_url"
            raise RequestRefused("invalid", f"{at}: expected a data: URL in base64; no other is fetched", at)
    return parts


def _tool(tool: FunctionTool) -> ClientTool:
    return ClientTool(type="function", function=ClientFunction(**tool.model_dump(exclude={"type"})))


def _form(asked: TextFormat) -> ResponseFormat:
    if asked.type != "json_schema":
        return ResponseFormat(type=asked.type)
    if asked.schema_ is None:
        raise RequestRefused("invalid", "text.format: schema is missing", "text.format")
    return ResponseFormat(type=asked.type, json_schema=JsonSchemaForm(name=asked.name, schema=asked.schema_))


# The answer, whole and streamed.


class ModelResponse(Answer):
    """One response: its items (thinking, messages, calls), in the order in which they came."""

    def __init__(self, query_id: str, request: ChatRequest, created: int, model: str) -> None:
        super().__init__(request)
        self._query_id, self._created, self._model = query_id, created, model
        self._output: list[Json] = []
        self._is_open = False  # whether more text of the last item may come
        self._number = 0  # of the next event

    def whole(self, response: ResponseGeneration) -> Json:
        """The answer as one object."""
        self.check(response)
        for kind, text in (("reasoning", response.thinking), ("content", response.answer)):
            if text:
                self.delta({kind: text})
        self.end(response)
        return self._object(response)

    def begin(self) -> bytes:
        """The first events of a stream."""
        head = {**self._object(None), "status": "in_progress"}
        return self._event("response.created", response=head) + self._event("response.in_progress", response=head)

    def delta(self, delta: Json) -> bytes:
        """A piece of the thinking or of a message."""
        [(kind, text)] = delta.items()
        item_type, part_type = _ITEMS[kind]
        said = b""
        if not self._is_open or self._output[-1]["type"] != item_type:
            said += self._close() + self._open(item_type, part_type)
        self._output[-1]["content"][0]["text"] += text
        return said + self._text_event("delta", delta=text)

    def end(self, response: ResponseGeneration) -> bytes:
        """Return the end of the last item, the calls that the client is to make, and the whole response."""
        said = [self._close()]
        for call in self.calls(response):
            function = call["function"]
            item = {
                "type": "function_call", "id": self._id("fc"), "call_id": call["id"], "status": "completed", **function
            }  # fmt: skip
            place: Json = {"output_index": len(self._output)}
            self._output.append(item)
            begun = {**item, "status": "in_progress", "arguments": ""}
            said.append(self._event("response.output_item.added", **place, item=begun))
            place_of_item = {**place, "item_id": item["id"]}
            said.append(
                self._event("response.function_call_arguments.delta", **place_of_item, delta=function["arguments"])
            )
            said.append(self._event("response.function_call_arguments.done", **place_of_item, **function))
            said.append(self._event("response.output_item.done", **place, item=item))
        whole = self._object(response)
        return b"".join(said) + self._event(f"response.{whole['status']}", response=whole)

    def failed(self, error: LocalError) -> bytes:
        """The last event of a stream that has failed."""
        told = openai_error(error)["error"]
        fault = {"code": told["code"], "message": told["message"]}
        return self._event("response.failed", response={**self._object(None), "status": "failed", "error": fault})

    def _open(self, item_type: str, part_type: str) -> bytes:
        self._is_open = True
        place: Json = {"output_index": len(self._output)}
        item: Json = {"type": item_type, "id": self._id(item_type[:3]), "status": "in_progress"}
        part: Json = {"type": part_type, "text": ""}
        if item_type == "reasoning":
            item["summary"] = []
        else:
            item["role"] = "assistant"
            part |= {"annotations": [], "logprobs": []}
        self._output.append({**item, "content": [part]})
        added = self._event("response.output_item.added", **place, item={**item, "content": []})
        return added + self._event(
            "response.content_part.added", **place, item_id=item["id"], content_index=0, part={**part}
        )

    def _close(self) -> bytes:
        if not self._is_open:
            return b""
        self._is_open = False
        item = self._output[-1]
        item["status"] = "completed"
        part, place = item["content"][0], {"output_index": len(self._output) - 1}
        return (
            self._text_event("done", text=part["text"])
            + self._event("response.content_part.done", **place, item_id=item["id"], content_index=0, part=part)
            + self._event("response.output_item.done", **place, item=item)
        )

    def _text_event(self, end: str, **fields: Any) -> bytes:
        item = self._output[-1]
        name = f"response.{item['content'][0]['type']}.{end}"
        if item["type"] == "message":
            fields["logprobs"] = []
        return self._event(name, output_index=len(self._output) - 1, item_id=item["id"], content_index=0, **fields)

    def _object(self, response: ResponseGeneration | None) -> Json:
        asked, cut_off = self.request, response is not None and response.cut_off
        return {
            "id": f"resp_{self._query_id}", "object": "response", "created_at": self._created,
            "status": "incomplete" if cut_off else "completed", "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut_off else None,
            "instructions": None, "max_output_tokens": asked.max_completion_tokens, "metadata": {},
            "model": (response.model if response is not None else "") or self._model, "output": self._output,
            "parallel_tool_calls": asked.parallel_tool_calls is not False, "previous_response_id": None,
            "reasoning": {"effort": asked.reasoning_effort, "summary": None}, "store": False,
            "temperature": asked.temperature, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
            "top_p": asked.top_p, "truncation": "disabled", "usage": response and _usage(response.usage),
        }  # fmt: skip

    def _id(self, kind: str) -> str:
        return f"{kind}_{self._query_id}_{len(self._output)}"

    def _event(self, event_type: str, /, **fields: Any) -> bytes:
        event = sse(event_type, to_json({"type": event_type, "sequence_number": self._number, **fields}))
        self._number += 1
        return event


_ITEMS = {"content": ("message", "output_text"), "reasoning": ("reasoning", "reasoning_text")}


def _usage(usage: UsageInfo) -> Json:
    return {
        "input_tokens": usage.prompt_tokens, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.completion_tokens, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }  # fmt: skip
