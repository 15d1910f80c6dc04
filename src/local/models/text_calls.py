"""A tool call that a model wrote as text instead of making it. No I/O."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_core import from_json

from local.models.chat import Json, ToolCall

# Nobody writes a longer call as text, and reading it costs.
_LONGEST_CONTENT = 32_000
# How much of the content must be the call. What explains a call, or shows one in passing, is an answer.
_NEARLY_ALL = 0.8


def find_text_call(content: str, tools: Sequence[Json]) -> ToolCall | None:
    """The call that `content` is, or None if it is an answer.

    Accepted only if the tool is among `tools` (as in `ChatModel.chat`), the arguments fit its schema, and the call is
    nearly all of the content: a call that was not meant does more harm than one that has to be asked for again.
    """
    content = content.strip()
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools}
    if len(content) > _LONGEST_CONTENT or not any(name in content for name in schemas):
        return None
    for written, (name, arguments) in written_calls(content):
        name = name.removeprefix("functions.")
        nearly_all = len(written) >= _NEARLY_ALL * len(content)
        if nearly_all and name in schemas and fits(arguments, schemas[name]):
            return ToolCall(name, arguments)
    return None


Named = tuple[str, Json]

# What may stand around a call. An end that is missing was cut off with the answer.
_WRAPPERS = (
    re.compile(r"<\|tool_call>(.*?)(?:<tool_call\|>|\Z)", re.S),
    re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.S),
    re.compile(r"```[a-z_]*(.*?)(?:```|\Z)", re.S),
)
_NAME_KEYS = ("name", "tool", "tool_name", "function")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input")

_GEMMA_CALL = re.compile(r"call:\s*([\w.-]+)\s*(\{.*\})\s*", re.S)
_GEMMA_TOKEN = re.compile(r'<\|"\|>(?P<text>.*?)<\|"\|>|"(?:[^"\\]|\\.)*"|(?<=[{,])\s*(?P<key>\w+)\s*(?=:)', re.S)


def written_calls(content: str) -> Iterator[tuple[str, Named]]:
    """Each way to read a call in `content`: the part of it that is the call, and the tool's name and arguments."""
    braces = content[content.find("{") : content.rfind("}") + 1]
    for written, text in (*_unwrapped(content), (braces, braces), (content, content)):
        for candidate in (text, *(inner for _, inner in _unwrapped(text))):
            if named := _read_json(candidate) or _read_gemma(candidate) or _read_python(candidate):
                yield written, named


def _unwrapped(text: str) -> list[tuple[str, str]]:
    matches = (wrapper.search(text) for wrapper in _WRAPPERS)
    return [(match[0], match[1].strip()) for match in matches if match]


def _read_json(text: str) -> Named | None:
    try:
        return _named(from_json(text))
    except ValueError:
        return None


def _named(value: Any) -> Named | None:
    """{"name": …, "arguments": {…}} in its variants, alone in a list, in {"tool_calls": […]} or {"function": {…}}."""
    if isinstance(value, list):
        return _named(value[0]) if len(value) == 1 else None
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
    return (name, arguments) if name and isinstance(arguments, dict) else None


def _read_gemma(text: str) -> Named | None:
    """Gemma 4's own: call:name{key:<|"|>text<|"|>,count:3,list:[1,2]}; texts unescaped, keys without quotes."""
    match = _GEMMA_CALL.fullmatch(text)
    if not match:
        return None
    try:
        arguments = from_json(_GEMMA_TOKEN.sub(_gemma_token_as_json, match[2]))
    except ValueError:
        return None
    return match[1], arguments


def _gemma_token_as_json(match: re.Match[str]) -> str:
    text = match["text"] if match["text"] is not None else match["key"]
    return match[0] if text is None else json.dumps(text)


def _read_python(text: str) -> Named | None:
    """name(key="value"), also as print(name(…)), api.name(…) or [name(…)]: literal keyword arguments only."""
    if not text.endswith((")", "]")):
        return None
    try:
        node: ast.AST = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if isinstance(node, ast.List) and len(node.elts) == 1:
        node = node.elts[0]
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
    """Whether `value` is what `schema` asks for: type, enum, const, properties, required, additionalProperties, items,
    anyOf, oneOf (as anyOf), allOf and local `$ref`s. Keywords that are not known here are taken as satisfied.
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
