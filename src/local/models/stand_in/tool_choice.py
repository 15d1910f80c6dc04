"""Finds an offered tool whose words are in the question, and fills its arguments from the question."""

from __future__ import annotations

import re
from typing import Any

from local.models.stand_in.conversation import Conversation, OfferedTool, ToolUse
from local.models.stand_in.own_work import OWN
from local.models.stand_in.quoting import first_url

Json = dict[str, Any]

# These have rules of their own in the brain.
KNOWN = frozenset(
    {"web_search", "web_fetch", "search_memory", "memory_write", "memory_edit", "compare_answers"}
    | {"request_clarification"}
    | OWN
)
# These are called by their whole names alone: what is said of tasks, lists and messages asks for no agent.
_BY_WHOLE_NAME = frozenset(
    ("spawn_agent", "delegate_task", "list_agents", "terminate_agent", "send_message", "check_inbox", "emit_event")
) | {"wait_for_event"}
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and any are as at be by can could do does for from get give has have how i in is it its me my of on one "
        "or our out please tell that the their them there this to tool up use user want was we what when where which "
        "who why will with would you your about into made make needed",
    )
)
_DEEDS = frozenset(("delete", "edit", "list", "read", "remove", "send", "shell", "stat", "write"))
_MIN_LETTERS = 3


def named_tool(conversation: Conversation) -> OfferedTool | None:
    """The first tool that the question calls by its whole name, such as git_status; a name of one word could be any."""
    names = re.findall(r"\w+", conversation.question)
    found = next((name for name in names if "_" in name and name in conversation.tools), None)
    return conversation.tools[found] if found else None


def matching_tool(conversation: Conversation, *, by_name_only: bool) -> OfferedTool | None:
    """The first tool with a word of its name in the question or, unless `by_name_only`, two of its description. Of one
    whose name says a deed, as delete_file, that has to be there, too: "file" alone asks for no deletion, and "delete"
    alone for that of no file.
    """
    asked = words(conversation.question)
    tools = [tool for name, tool in conversation.tools.items() if name not in KNOWN | _BY_WHOLE_NAME]
    others = [tool for tool in tools if words(tool.name) & _DEEDS <= asked]
    for tool in others:
        named = words(tool.name)
        if asked & (named - _DEEDS or named):
            return tool
    if not by_name_only:
        for tool in others:
            if len(asked & words(tool.description)) > 1:
                return tool
    return None


def words(text: str) -> set[str]:
    """The words that carry meaning, in lower case and without a plural s; underscores and camelCase part words."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", text)
    plain = (word.lower() for word in re.findall(r"[^\W\d_]+", parted))
    return {word.removesuffix("s") for word in plain if len(word) >= _MIN_LETTERS and word not in _COMMON}


def call(tool: OfferedTool, question: str) -> ToolUse:
    """A call with every required argument, and optional ones only where the question holds a value for them."""
    properties: dict[str, Json] = tool.parameters.get("properties") or {}
    required = tool.parameters.get("required") or []
    numbers = [float(number) for number in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])", question)]
    arguments: Json = {}
    for name, schema in properties.items():
        value = _value(schema, question, numbers)
        if value is None and name in required:
            value = _otherwise(name, schema, question)
        if value is not None:
            arguments[name] = value
    return ToolUse(tool.name, arguments)


def _type(schema: Json) -> str:
    kind = schema.get("type", "string")
    return str(next((k for k in kind if k != "null"), "null") if isinstance(kind, list) else kind)


def _value(schema: Json, question: str, numbers: list[float]) -> Any:
    """What the question says for this argument, or None. A number is used once."""
    if choices := schema.get("enum"):
        return next((c for c in choices if re.search(rf"\b{re.escape(str(c))}\b", question, re.I)), None)
    if _type(schema) in ("integer", "number") and numbers:
        number = numbers.pop(0)
        return int(number) if _type(schema) == "integer" or number.is_integer() else number
    return None


def _otherwise(name: str, schema: Json, question: str) -> Any:
    """A value of the right type for a required argument that the question does not name."""
    if "default" in schema:
        return schema["default"]
    if choices := schema.get("enum"):
        return choices[0]
    match _type(schema):
        case "string" if name == "url" and (url := first_url(question)):
            return url
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "array":
            return [_otherwise(name, schema.get("items") or {}, question)]
        case "object":
            return {}
    return question
