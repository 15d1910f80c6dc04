"""The schemas of tools for the prompt: in full, or short for models that read slowly. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from local.bus.messages import ToolSchema
from local.bus.vocabulary import CLARIFICATION, PLAN_STEP, PROPOSE_PLAN, TODO_LIST
from local.generator.context import ToolFunction
from local.generator.steps import READ_RESULT
from local.models.chat import Json
from local.models.settings import Tier
from local.skills.messages import READ_SKILL

# The tools that a model of each size is offered, in order: one table. No I/O.

_SMALL = ("search_memory", "web_search", "web_fetch", "read_file", "list_files", "write_file")
_MID = (
    *_SMALL, "edit_file", "search_code", "shell_exec", "cron_add", CLARIFICATION, PROPOSE_PLAN, PLAN_STEP,
    TODO_LIST,
)  # fmt: skip
_LARGE = (
    "search_memory", "memory_write", "memory_edit", "web_search", "web_fetch",
    "read_file", "list_files", "file_stats", "write_file", "edit_file", "delete_file",
    "search_code", "find_symbol", "get_structure", "ast_query",
    "shell_exec", "shell_script", "shell_output", "shell_stop",
    "git_status", "git_diff", "git_log", "git_commit",
    "cron_add", "cron_list", "cron_remove",
    "delegate_task", "spawn_agent", "list_agents", "terminate_agent", "send_message", "check_inbox", "emit_event",
    "wait_for_event", "compare_answers", READ_SKILL,
    READ_RESULT, CLARIFICATION, PROPOSE_PLAN, PLAN_STEP, TODO_LIST,
)  # fmt: skip

# A small model that has the tool for questions calls tools for plain questions more often, and asks nobody. So it is
# offered the tool where its user wants to be asked, in the languages that this table knows.
_WANTS_QUESTIONS = re.compile(
    r"\bask(?:ing)? (?:me|us)\b|\bfrage? (?:mich|uns)\b|\bdemandez?[- ](?:moi|nous)\b|\bpreg[uú]nt[ae](?:me|nos)\b"
    r"|\bpergunt[ae][- ](?:me|nos)\b|\bchiedi(?:mi|ci)\b",
    re.IGNORECASE,
)


def wants_questions(query: str) -> bool:
    """Whether a user requests a question of the model: "Ask me which colour I like"."""
    return _WANTS_QUESTIONS.search(query) is not None


TABLE: Final[Mapping[Tier, tuple[str, ...]]] = {Tier.SMALL: _SMALL, Tier.MID: _MID, Tier.LARGE: _LARGE}
ARGUMENTS: Final[Mapping[Tier, Mapping[str, tuple[str, ...]]]] = {
    Tier.SMALL: {
        "search_memory": ("query",),
        "web_fetch": ("url",),
        "read_file": ("path",),
        "list_files": ("path",),
    },
    Tier.MID: {
        "search_memory": ("query",),
        "list_files": ("path", "pattern"),
        "search_code": ("pattern", "path", "files"),
        "shell_exec": ("command", "background"),
        "cron_add": ("prompt", "schedule"),
    },
    Tier.LARGE: {},
}
"""The arguments that a model is told of, where that is not all of them."""
OURS: Final = frozenset(_LARGE)
"""Tools of other names are the owner's own, or those of MCP servers: the owner has added them on purpose."""

MOST_CHARACTERS = 200  # of a description that has no first sentence
DEEPEST = 6  # level of a schema that is shown; below it a value is of any type
_SENTENCE = re.compile(r"\s*(.+?[.!?])(?=\s+[^a-z\s]|\s*$)", re.DOTALL)
_KEPT: Final = ("enum", "const")


_made: dict[tuple[str, Tier], tuple[ToolSchema, ToolFunction]] = {}  # the latest of each tool, as all turns need them


def as_function(schema: ToolSchema, tier: Tier = Tier.LARGE) -> ToolFunction:
    """Return a tool's schema for a model of that tier; always the same bytes."""
    made_of, function = _made.get((schema.tool, tier), (None, None))
    if function is None or made_of is not schema:
        function = _function_of(schema, tier)
        _made[schema.tool, tier] = (schema, function)
    return function


def _function_of(schema: ToolSchema, tier: Tier) -> ToolFunction:
    description, parameters = schema.description, schema.parameters
    if tier is not Tier.LARGE:
        description = first_sentence(description)
        parameters = bare(parameters)
    if wanted := ARGUMENTS[tier].get(schema.tool):
        properties = {name: told for name, told in parameters["properties"].items() if name in wanted}
        parameters = {**parameters, "properties": properties}
    told = {"name": schema.tool, "description": description, "parameters": parameters}
    return ToolFunction({"type": "function", "function": told})


def first_sentence(text: str) -> str:
    """The first sentence of a text, in one line."""
    text = " ".join(text.split())
    found = _SENTENCE.match(text)
    return (found[1] if found else text)[:MOST_CHARACTERS]


def bare(parameters: Json, *, described: bool = False) -> Json:
    """Return a JSON Schema of arguments with only types, choices and required names: of several types the first.
    `described`: with the first sentence of each argument's description, and all types.
    """
    return {"type": "object", "properties": {}, **_bare(parameters, parameters, described, DEEPEST)}


def _bare(schema: Any, root: Json, described: bool, levels: int) -> Json:
    if not isinstance(schema, dict) or levels == 0:
        return {}
    if isinstance(reference := schema.get("$ref"), str):
        target = _resolved(reference, root)
        return _bare({**target, **{key: schema[key] for key in schema if key != "$ref"}}, root, described, levels - 1)
    told: Json = {}
    choices = [each for each in schema.get("anyOf") or schema.get("oneOf") or () if not _is_null(each)]
    is_one = len(choices) == 1 or not described
    for part in (*(choices[:1] if is_one else ()), *(schema.get("allOf") or ())):
        told |= _bare(part, root, described, levels - 1)
    if not is_one and choices:
        told["anyOf"] = [_bare(choice, root, False, levels - 1) for choice in choices]
    if kind := _type(schema.get("type")):
        told["type"] = kind
    told |= {key: schema[key] for key in _KEPT if key in schema}
    if described and isinstance(words := schema.get("description"), str) and words.strip():
        told["description"] = first_sentence(words)
    if isinstance(items := schema.get("items"), dict):
        told["items"] = _bare(items, root, described, levels - 1)
    if isinstance(properties := schema.get("properties"), dict):
        told["properties"] = {name: _bare(each, root, described, levels - 1) for name, each in properties.items()}
    if isinstance(required := schema.get("required"), list) and required:
        told["required"] = required
    return told


def _type(named: Any) -> Any:
    """Return the one type that is not null."""
    if isinstance(named, list):
        named = [each for each in named if each != "null"]
        return named[0] if len(named) == 1 else named
    return named


def _is_null(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "null"


def _resolved(reference: str, root: Json) -> Json:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
