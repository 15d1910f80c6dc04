"""Tool calls that a model wrote as text instead of making them. No I/O.

Small models do this often: as JSON (alone, several in a row, in a list, with doubled braces from a faulty template,
with the last brace missing), in a code fence or between tags, after a sentence that announces it, as Python, or as
Gemma's own form; and often of tools that do not exist. What explains a call, and JSON that the user asked for, is an
answer.
"""

from __future__ import annotations

import ast
import json
import logging
import math
import re
import time
from abc import abstractmethod
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, NotRequired, TypedDict, TypeVar

import httpx
from pydantic_core import from_json

from local.core.errors import ModelError
from local.models.chat import Degraded, Delta, Done, Incapable, Json, ServerErrors, ToolCall, Usage
from local.models.http import AnswerStream, M, ModelHttp, StreamedAnswer, Wait, encoded

# The time limit of a model's first token, if its server reports no progress. No I/O and no clock.

_TIMES = 4.0  # times the earlier duration, because a busy machine is slower
_AFTER_A_TIMEOUT = 2.0
_MOST_SECONDS = 3600.0
_FADES = 0.98  # of the slowest that is remembered, with every call


class FirstTokenLimit:
    """The times of one model in earlier calls: seconds to load, and seconds for each byte of a request that it read.

    A limit that was too short is doubled for the next call, until one succeeds.
    """

    def __init__(self) -> None:
        self._load = self._per_byte = self._at_least = 0.0

    def seconds(self, size: int) -> float:
        """Return how long the model may be silent after a request of `size` bytes; 0 while nothing is known."""
        return min(max(_TIMES * (self._load + size * self._per_byte), self._at_least), _MOST_SECONDS)

    def learn(self, size: int, usage: Usage) -> None:
        """Learn from a successful call, with the server's times for loading and reading."""
        self._at_least = 0.0
        self._load = max(usage.durations.get("load", 0.0), self._load * _FADES)
        read = usage.durations.get("prompt_eval", 0.0)
        self._per_byte = max(read / size if size else 0.0, self._per_byte * _FADES)

    def in_vain(self, seconds: float) -> None:
        """Note that the model gave no sign of life for that long."""
        self._at_least = seconds * _AFTER_A_TIMEOUT


# The common part of all clients of model servers: requests, streamed answers, and refused optional fields.

log = logging.getLogger(__name__)

K = TypeVar("K")

# How many alternatives to each token are asked for: the five scores and as many others.
TOP_LOGPROBS = 10
LOGPROBS: Json = {"logprobs": True, "top_logprobs": TOP_LOGPROBS}

# After the model's last word, how long the usage and the end may take that some servers send and others do not.
_TRAILER_SECONDS = 1.0
# Passing a sign of life on costs a timer for each call in line; so many within its limit are enough.
_SIGNS_IN_A_LIMIT = 20
_REFUSALS = (400, 403, 422)  # OpenAI's own is 403 for the probabilities of some models
_FORMAT, _LOGPROBS, _PROGRESS = "a form of the reply", "token probabilities", "a wish for progress"
_IN_WORDS = "a grammar against calls"
_WORDS = {
    _LOGPROBS: ("logprob",),
    _FORMAT: ("format", "schema", "grammar"),
    _PROGRESS: ("progress",),
    _IN_WORDS: ("grammar", "tool_choice"),
}
_WHERE_KNOWN = frozenset({_PROGRESS, _IN_WORDS})  # fields that only the servers get that are known to take them


class ConnectionLimits(TypedDict):
    """The time limits of a client. `first_token_seconds` limits the silence before a chat answer (while the model is
    loaded, or the prompt is read by a server that reports no progress); it grows with the model's earlier times, see
    `FirstTokenLimit`. `between_tokens_seconds` limits each later silence (comments that keep the connection alive are
    silence, too), `timeout_seconds` every other request. `limit` names the setting behind them, for the message of an
    error.
    """

    first_token_seconds: float
    between_tokens_seconds: float
    timeout_seconds: float
    limit: NotRequired[str]
    transport: NotRequired[httpx.AsyncBaseTransport | None]


class ModelClient(Generic[K]):
    """The base of the clients: a `ChatModel` on one server. A subclass implements its API; `K` is its description of a
    model.
    """

    chat_path: ClassVar[str]

    def __init__(
        self,
        errors: ServerErrors,
        headers: Mapping[str, str],
        *,
        first_token_seconds: float,
        between_tokens_seconds: float,
        timeout_seconds: float,
        limit: str = "",
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._errors = errors = replace(errors, limit=limit)
        self._http = ModelHttp(errors, headers=headers, transport=transport)
        self._first_token_seconds = first_token_seconds
        self._between_tokens_seconds = between_tokens_seconds
        self._timeout_seconds = timeout_seconds
        self._known: dict[str, K] = {}
        self._refused: defaultdict[str, set[str]] = defaultdict(set)
        self._incapable = set[Incapable]()  # notes already emitted
        self._first_limits: defaultdict[str, FirstTokenLimit] = defaultdict(FirstTokenLimit)
        self._unheard: defaultdict[str, set[Wait]] = defaultdict(set)  # calls of a model without a sign of life yet
        self._passed_on: defaultdict[str, float] = defaultdict(lambda: -math.inf)  # when a sign of life was, by model

    async def chat(
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
        """See `ChatModel.chat`. What the model or its server cannot do is left out, with a `Degraded`."""
        known = await self._look(model)
        body, notes = self._request(known, messages, tools=tools, think=think, options=options)
        words = self._in_words(known, think=think) if in_words and format is None else {}  # a server takes one grammar
        wishes = {"form": self._form(format), "progress": self._progress(known), "words": words}
        optional = OptionalFields(self._refused[model], logprobs=logprobs, **wishes)
        for note in (*notes, *optional.notes):
            if note not in self._incapable:
                yield note
        self._incapable.update(note for note in notes if isinstance(note, Incapable))
        stream: AnswerStream | None = None
        while stream is None:
            asked = body | optional.fields
            log.debug("%s is sent: %s", self.chat_path, _AsJson(asked))
            content = encoded(asked)
            wait = Wait(self._errors, self.chat_path, self._first_seconds(model, len(content)))
            self._unheard[model].add(wait)
            try:
                async with self._http.stream(self.chat_path, content, model=model, wait=wait) as answer:
                    optional.accepted()
                    stream = self._answer(model, answer.content_type)
                    while not stream.done:
                        for delta in await self._read(stream, answer):
                            if isinstance(delta, Done):
                                self._first_limits[model].learn(len(content), delta.usage)
                            yield delta
                        if stream.heard:
                            self._sign_of_life(model, wait)
                    await answer.drain()
            except ModelError as error:
                if error.kind == "timeout" and wait in self._unheard[model]:
                    self._first_limits[model].in_vain(wait.seconds)
                left_out = optional.refused(error) if stream is None else None
                if left_out is None:
                    # The model may have been removed or replaced by one with other capabilities.
                    self._known.pop(model, None)
                    raise
                yield left_out
            finally:
                self._unheard[model].discard(wait)

    def _first_seconds(self, model: str, size: int) -> float:
        return max(self._first_token_seconds, self._first_limits[model].seconds(size))

    def _sign_of_life(self, model: str, wait: Wait) -> None:
        """Note a sign of life of the model: calls that wait in its queue while it serves another may wait longer."""
        unheard = self._unheard[model]
        unheard.discard(wait)
        now = time.monotonic()
        if now - self._passed_on[model] < self._first_token_seconds / _SIGNS_IN_A_LIMIT:
            return
        self._passed_on[model] = now
        for other in unheard:
            other.allow(max(other.seconds, self._first_token_seconds))

    async def _read(self, stream: AnswerStream, answer: StreamedAnswer) -> Iterator[Delta]:
        """Yield the deltas of the next part."""
        if stream.heard:
            stream.heard = False
            answer.allow(_TRAILER_SECONDS if stream.finished else self._between_tokens_seconds)
        data = await (answer.rest() if stream.finished else answer.read())
        log.debug("%s has answered: %s", self.chat_path, data)
        return stream.feed(data) if data else stream.end()

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    @abstractmethod
    async def _look(self, model: str) -> K:
        """Return the description of a model, requested once."""

    @abstractmethod
    def _request(
        self,
        known: K,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json],
        think: bool,
        options: Mapping[str, Any] | None,
    ) -> tuple[Json, list[Degraded]]:
        """Return the body of a chat request for this model's capabilities, and what had to be left out."""

    @abstractmethod
    def _form(self, schema: Json | None) -> Json:
        """The fields that ask for a reply which follows a JSON Schema; none without a schema."""

    def _progress(self, known: K) -> Json:
        """The fields that ask for the progress of reading the prompt, where the server knows them."""
        return {}

    def _in_words(self, known: K, *, think: bool) -> Json:
        """The fields that keep the model from writing a call, where the server knows such; none for one that thinks,
        since its thoughts begin like a call.
        """
        return {}

    @abstractmethod
    def _answer(self, model: str, content_type: str) -> AnswerStream:
        """Return the reader of an answer. Raises `ModelError(kind="bad_stream")` for a content type that the server
        does not use.
        """

    async def _call(self, method: str, path: str, answer: type[M], body: Json | None = None) -> M:
        model = str((body or {}).get("model", ""))
        return await self._http.call(method, path, answer, body, model=model, seconds=self._timeout_seconds)


class OptionalFields:
    """The optional fields of one call: the form of the reply, the probabilities of its tokens, and those that are
    dropped only by a refusal that names them: the progress of reading the prompt, and a grammar against calls.

    `fields` are those that are still requested. Servers differ in which of them they know, and refuse the others: the
    call is then repeated without them, and `learned`, which all calls of one model share, remembers it if that has
    helped. A server that ignores an unknown field is not noticed.
    """

    def __init__(
        self, learned: set[str], *, form: Json, logprobs: bool, progress: Json | None = None, words: Json | None = None
    ) -> None:
        wanted = {_LOGPROBS: LOGPROBS if logprobs else {}, _FORMAT: form}
        wanted |= {_PROGRESS: progress or {}, _IN_WORDS: words or {}}
        self._wanted: dict[str, Json] = {name: fields for name, fields in wanted.items() if fields}
        self._learned = learned
        self._dropped = self._wanted.keys() & learned
        self.notes = [_note(name) for name in self._wanted if name in learned and name not in _WHERE_KNOWN]

    @property
    def fields(self) -> Json:
        """The fields of the request."""
        left = [fields for name, fields in self._wanted.items() if name not in self._dropped]
        return {key: value for fields in left for key, value in fields.items()}

    def refused(self, error: ModelError) -> Degraded | None:
        """Return the field to leave out from now on because of that refusal; None if the failure is unrelated to these
        fields.
        """
        left = [name for name in self._wanted if name not in self._dropped]
        if not left or error.status not in _REFUSALS:
            return None
        text = str(error).lower()
        named = [name for name in left if any(word in text for word in _WORDS[name])]
        if not named and (error.status == 403 or _WHERE_KNOWN.issuperset(left)):
            return None
        name = (named or left)[0]
        self._dropped.add(name)
        return _note(name)

    def accepted(self) -> None:
        """Note that the server has accepted the request with the remaining fields."""
        self._learned |= self._dropped


class _AsJson:
    """A request as JSON, made only if a log line really shows it."""

    def __init__(self, body: Json) -> None:
        self._body = body

    def __str__(self) -> str:
        return json.dumps(self._body, ensure_ascii=False)


def _note(name: str) -> Degraded:
    return Degraded(f"the model's server does not take {name}; it answers without")


# A longer text is never a call, and reading it costs time.
_LONGEST_CONTENT = 32_000
# The share of the content that must be calls. Content that explains a call, or shows one in passing, is an answer.
_NEARLY_ALL = 0.8
_ANNOUNCEMENT = 300  # characters before a call that may announce it, if nothing follows it
_MOST_VALUES = 40
Named = tuple[str, Json]

_NAME_KEYS = ("name", "tool", "tool_name", "function")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input")
_FORMAL_KEYS = frozenset({*_NAME_KEYS, "arguments", "parameters", "args", "type", "id"})
_TAGS = r"</?(?:tool_calls?|function_calls?|json|tools?)>|<\|tool_call>|<tool_call\|>"
_DECORATION = re.compile(rf"{_TAGS}|```[A-Za-z_]*")
_ENDS = (
    *("```", "<tool_call|>", "</tool_call>", "</tool_calls>", "</function_call>", "</function_calls>"),
    *("</json>", "</tool>", "</tools>"),
)
_TEXT_OR_DOUBLED = re.compile(r'("(?:[^"\\]|\\.)*")|\{\{|\}\}')
_ASKS_FOR_JSON = re.compile(r"json|yaml|schema|payload|(?:tool|function)s?.?call|call.{0,12}(?:tool|function)", re.I)
_DECODER = json.JSONDecoder(strict=False)  # line ends in texts are read


def asks_for_json(question: str) -> bool:
    """Whether the answer to a question may well look like a call."""
    return _ASKS_FOR_JSON.search(question) is not None


def find_text_calls(
    content: str, tools: Sequence[Json], question: str = "", *, among_words: bool = False
) -> list[ToolCall]:
    """Return the calls that `content` consists of, in order; none if it is an answer.

    `tools` (as in `ChatModel.chat`) may be called. Calls of others are found, too, if their form leaves no doubt,
    unless the `question` asks for JSON or for a call to be shown: then only calls of `tools` with fitting arguments,
    and hardly any other words, are calls. `among_words`: calls of `tools` with fitting arguments count wherever they
    are, as small models talk around them.
    """
    content = content.strip()
    if not content or len(content) > _LONGEST_CONTENT:
        return []
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools}
    is_strict = asks_for_json(question)
    for named, is_alone in _readings(content, may_announce=not is_strict):
        calls = [ToolCall(name.removeprefix("functions."), arguments) for name, arguments, _ in named]
        fitting = all(call.name in schemas and fits(call.arguments, schemas[call.name]) for call in calls)
        formal = all(is_formal for *_, is_formal in named)
        if (fitting and is_alone) or ((fitting or formal) and not is_strict):
            return calls
    if not among_words or is_strict:
        return []
    named = _calls_among_words(_without_doubled_braces(content))
    calls = [ToolCall(name.removeprefix("functions."), arguments) for name, arguments, _ in named]
    return [call for call in calls if call.name in schemas and fits(call.arguments, schemas[call.name])]


Read = tuple[str, Json, bool]  # name, arguments, and whether it can be nothing but a call


def _readings(content: str, *, may_announce: bool) -> Iterator[tuple[list[Read], bool]]:
    """Yield each way to read all of `content` as calls, and whether there are no other words."""
    bare = _bare(content)
    for text in dict.fromkeys((bare, _without_doubled_braces(bare))):
        if (found := _json_calls(text)) is None:
            continue
        calls, before, after = found
        words = len(before) + len(after)
        is_announced = may_announce and len(before) <= _ANNOUNCEMENT and not after
        if words <= (1 - _NEARLY_ALL) * len(content) or is_announced:
            yield calls, not words
    if named := _read_gemma(bare) or _read_python(bare):
        yield [(*each, False) for each in named], True


def _bare(text: str) -> str:
    """The text without the tags and fences around it."""
    text = text.strip()
    while (match := _DECORATION.match(text)) is not None:
        text = text[match.end() :].lstrip()
    while end := next((end for end in _ENDS if text.endswith(end)), ""):
        text = text.removesuffix(end).rstrip()
    return text


def _without_doubled_braces(text: str) -> str:
    """Return the text with single braces, except within its quoted texts."""
    if re.search(r"\{\{\s*[\"{]", text) is None:
        return text
    return _TEXT_OR_DOUBLED.sub(lambda match: match[1] or match[0][0], text)


def _json_calls(text: str) -> tuple[list[Read], str, str] | None:
    """Return the calls in the JSON values of a text, the words before and between them, and those after; None if there
    are no calls, or if one of the values is not a call. The last call may be cut off if only calls precede it: then it
    is left out.
    """
    calls, words, at = list[Read](), list[str](), 0
    while (match := _OPENING.search(text, at)) is not None:
        if len(words) >= _MOST_VALUES:
            return None
        words.append(_words(text[at : match.start()]))
        read = _value_at(text, match.start())
        if read is None or (named := _named(read[0])) is None:
            is_end = read is None or read[1] > len(text)
            is_cut_off = calls and is_end and not any(words) and may_be_call(text[match.start() :])
            return (calls, "", "") if is_cut_off else None
        calls += named
        at = read[1]
    return (calls, " ".join(words).strip(), _words(text[at:]).strip(".}")) if calls else None


def _calls_among_words(text: str) -> list[Read]:
    """Return the calls in the JSON values of a text; other values are words."""
    calls, at = list[Read](), 0
    for _ in range(_MOST_VALUES):
        if (match := _OPENING.search(text, at)) is None:
            break
        read = _value_at(text, match.start())
        named = None if read is None else _named(read[0])
        calls += named or []
        at = match.end() if read is None or named is None else read[1]
    return calls


def _words(text: str) -> str:
    return _DECORATION.sub(" ", text).strip(" ,;\n")


_OPENING = re.compile(r"[{\[]")


def _value_at(text: str, start: int) -> tuple[Any, int] | None:
    """The JSON value that begins there, and where it ends: behind the text, if its last closing brace is missing."""
    for candidate in (text, f"{text.rstrip()}}}"):
        try:
            return _DECODER.raw_decode(candidate, start)
        except (ValueError, RecursionError):
            continue
    return None


def _named(value: Any) -> list[Read] | None:
    """{"name": …, "arguments": {…}} in its variants, several in a list, in {"tool_calls": […]} or {"function": {…}}."""
    if isinstance(value, list):
        each = [_named(one) for one in value]
        return [call for calls in each if calls for call in calls] if each and all(each) else None
    if not isinstance(value, dict):
        return None
    if nested := value.get("tool_calls") or value.get("tool_call"):
        return _named(nested)
    if isinstance(value.get("function"), dict):
        return _named(value["function"])
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in _ARGUMENT_KEYS if key in value), None)
    if isinstance(arguments, str):
        try:
            arguments = from_json(arguments)
        except ValueError:
            return None
    if not name or not isinstance(arguments, dict):
        return None
    return [(name.strip(), arguments, value.keys() <= _FORMAL_KEYS)]


# The possible beginnings of a call, for streamed text

_BEGINNINGS = ("<tool_call>", "<|tool_call>", "<function_call>", "<json>", "<tools>", "call:")
_FIRST_KEYS = (*_NAME_KEYS, "tool_calls", "tool_call", "type", "id", "arguments", "parameters")
_LATER_KEYS = (*_FIRST_KEYS, *_ARGUMENT_KEYS)
_FENCE = re.compile(r"```(?P<language>\w*)(?P<ends>\s+)?")
_FENCED = ("json", "tool_call", "tool_code", "python", "xml", "")


def may_be_call(text: str, names: Sequence[str] = ()) -> bool:
    """Whether more text may make a call of this beginning; `names` are those of the tools."""
    text = text.lstrip()
    if "```".startswith(text) or any(start.startswith(text) for start in _BEGINNINGS):
        return True
    if (fence := _FENCE.match(text)) is not None:
        if not fence["ends"]:
            return text == fence[0] and any(each.startswith(fence["language"]) for each in _FENCED)
        return fence["language"] in _FENCED and may_be_call(text[fence.end() :], names)
    if text.startswith(_BEGINNINGS):
        return True
    return _may_be_json_call(text, names) if text[0] in "{[" else _may_be_python_call(text, names)


def _may_be_json_call(text: str, names: Sequence[str]) -> bool:
    inner = text.lstrip("[{ \n\t\r")
    if not inner or (text.startswith("[") and _may_be_python_call(inner, names)):
        return True
    key, rest = _text_at(inner)
    if rest is None or key not in _FIRST_KEYS:
        return rest is None and key is not None and any(each.startswith(key) for each in _FIRST_KEYS)
    rest = rest.removeprefix(":").lstrip()
    if not rest:
        return True
    value, rest = _text_at(rest)
    if value is None:  # an object or a list, or a number
        return key not in ("name", "type", "id")
    if rest is None:
        return True
    if not rest.startswith(","):
        return not rest
    second, rest = _text_at(rest[1:].lstrip())
    if rest is None:
        return second is None or any(each.startswith(second) for each in _LATER_KEYS)
    return second in _LATER_KEYS


def _text_at(text: str) -> tuple[str | None, str | None]:
    """Return the quoted text at the beginning, and what follows; the second is None if it is unfinished, both if there
    is none.
    """
    if not text.startswith('"'):
        return None, None
    said, end, rest = text[1:].partition('"')
    return said, rest.lstrip() if end else None


def _may_be_python_call(text: str, names: Sequence[str]) -> bool:
    starts = (f"{around}{of}{name}(" for around in ("", "print(") for of in ("", *_MODULES) for name in names)
    return any(text.startswith(start) or start.startswith(text) for start in starts)


_MODULES = ("default_api.", "functions.")


_GEMMA_CALL = re.compile(r"call:\s*([\w.-]+)\s*(\{.*\})\s*", re.S)
_GEMMA_TOKEN = re.compile(r'<\|"\|>(?P<text>.*?)<\|"\|>|"(?:[^"\\]|\\.)*"|(?<=[{,])\s*(?P<key>\w+)\s*(?=:)', re.S)


def _read_gemma(text: str) -> list[Named] | None:
    """Gemma 4's own: call:name{key:<|"|>text<|"|>,count:3,list:[1,2]}; texts unescaped, keys without quotes."""
    match = _GEMMA_CALL.fullmatch(text)
    if not match:
        return None
    try:
        arguments = from_json(_GEMMA_TOKEN.sub(_gemma_token_as_json, match[2]))
    except ValueError:
        return None
    return [(match[1], arguments)]


def _gemma_token_as_json(match: re.Match[str]) -> str:
    text = match["text"] if match["text"] is not None else match["key"]
    return match[0] if text is None else json.dumps(text)


def _read_python(text: str) -> list[Named] | None:
    """name(key="value"), also as print(name(…)), api.name(…) or [name(…), other(…)]: literal keyword arguments only."""
    if not text.endswith((")", "]")):
        return None
    try:
        node: ast.AST = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    named = [_read_node(each) for each in (node.elts if isinstance(node, ast.List) else [node])]
    return [each for each in named if each] if named and all(named) else None


def _read_node(node: ast.AST) -> Named | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print" and node.args:
        node = node.args[0]
    if not isinstance(node, ast.Call) or node.args or any(keyword.arg is None for keyword in node.keywords):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    try:
        return name, {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def fits(value: Any, schema: Json, root: Json | None = None) -> bool:
    """Whether `value` matches `schema`: type, enum, const, properties, required, additionalProperties, items, anyOf,
    oneOf (as anyOf), allOf and local `$ref`s. Unknown keywords count as satisfied.
    """
    root = schema if root is None else root
    if "$ref" in schema:
        return fits(value, _resolve(str(schema["$ref"]), root), root)
    if not _has_type(value, schema.get("type")):
        return False
    if value not in schema.get("enum", (value,)) or value != schema.get("const", value):
        return False
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices and not any(fits(value, choice, root) for choice in choices):
        return False
    if not all(fits(value, part, root) for part in schema.get("allOf", ())):
        return False
    if isinstance(value, dict):
        return _fits_object(value, schema, root)
    items = schema.get("items", {})
    return not isinstance(value, list) or all(fits(item, items, root) for item in value)


def _has_type(value: Any, names: Any) -> bool:
    for name in [names] if isinstance(names, str) else names or ():
        # In Python True is a number, in JSON it is not.
        if isinstance(value, _TYPES.get(name, (object,))) and (name == "boolean" or not isinstance(value, bool)):
            return True
    return not names


def _fits_object(value: Json, schema: Json, root: Json) -> bool:
    properties = schema.get("properties", {})
    if any(key not in value for key in schema.get("required", ())):
        return False
    if schema.get("additionalProperties") is False and not properties.keys() >= value.keys():
        return False
    return all(fits(item, properties.get(key, {}), root) for key, item in value.items())


def _resolve(reference: str, root: Json) -> Json:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}
