"""Finds tools by words; and the tools by which a model does so, and calls what it has found."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

from local.agents.answering.arguments import fault_in
from local.agents.answering.short_schemas import bare
from local.protocol.messages import ToolCallRecord, ToolSchema
from local.protocol.turn_tools import CALL_TOOL, TOOL_SEARCH

MOST_FOUND = 5
NAME_WORTH, DESCRIPTION_WORTH = 3, 1  # of a word that stands there
_WORD = re.compile(r"[^\W\d_]{3,}")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "and any are can for from get has have how into its not one our out that the their them then this tool use was"
        " what when where which who why will with you your",
    )
)


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class _Call(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
    args: dict[str, Any]


SCHEMA = ToolSchema(
    tool=TOOL_SEARCH,
    description=f"Find further tools by what they do. It tells their arguments; run one with {CALL_TOOL}.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    effect="none",
    safety="L0",
    category="meta",
    trusted=True,  # descriptions that the model could be shown as well
)


CALL = ToolSchema(
    tool=CALL_TOOL,
    description=f"Run a tool that {TOOL_SEARCH} has found.",
    parameters={
        "type": "object",
        "properties": {"name": {"type": "string"}, "args": {"type": "object"}},
        "required": ["name", "args"],
    },
    effect="none",
    safety="L0",
    category="meta",
    trusted=True,  # it is a call of that tool, as which it is judged and told
)


def fault_of(args: dict[str, Any]) -> str:
    """What is wrong with the arguments of such a search; empty if nothing is."""
    return fault_in(TOOL_SEARCH, _Arguments, args)


def fault_of_call(args: dict[str, Any]) -> str:
    """What is wrong with the arguments of such a call; one that names a tool is never asked about, as it is that
    tool's call."""
    return fault_in(CALL_TOOL, _Call, args) or f"{CALL_TOOL}: name another tool than this"


def words_of(text: str) -> frozenset[str]:
    """The words of a text that say something, in lower case and without a plural s; underscores part words."""
    return frozenset(word.removesuffix("s") for word in _WORD.findall(text.lower()) if word not in _COMMON)


def matching(query: str, tools: Iterable[ToolSchema]) -> list[ToolSchema]:
    """The tools with words of the query, the best first, and of equals in the order of their names."""
    asked, tools = words_of(query), list(tools)
    worth = {
        schema.tool: NAME_WORTH * len(asked & words_of(schema.tool))
        + DESCRIPTION_WORTH * len(asked & words_of(schema.description))
        for schema in tools
    }
    found = (schema for schema in tools if worth[schema.tool])
    return sorted(found, key=lambda schema: (-worth[schema.tool], schema.tool))


def found_by(records: Iterable[ToolCallRecord], tools: Mapping[str, ToolSchema]) -> frozenset[str]:
    """The names of the tools of which the searches among these calls have told."""
    queries = [str(record.args.get("query")) for record in records if record.tool == TOOL_SEARCH and record.result]
    return frozenset(schema.tool for query in queries for schema in matching(query, tools.values())[:MOST_FOUND])


def told(query: str, tools: Iterable[ToolSchema]) -> str:
    """What the model reads of a search: the schemas of what was found."""
    found = matching(query, tools)[:MOST_FOUND]
    if not found:
        return "No tool has a word of that in its name or description."
    return "\n".join([f"Found; run one with {CALL_TOOL}:", *map(schema_as_text, found)])


def schema_as_text(schema: ToolSchema) -> str:
    """A tool as a model is told of it in a text."""
    said = {
        "name": schema.tool,
        "description": " ".join(schema.description.split()),
        "args": bare(schema.parameters, described=True),
    }
    return json.dumps(said, ensure_ascii=False)
