"""Search for tools by words, and the tools by which a model searches and calls what it has found."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from local.bus.blobs import BlobStore
from local.bus.message import ErrorInfo
from local.bus.messages import (
    CLOSED,
    MOST_ITEMS,
    PlanArguments,
    PlanView,
    StepArguments,
    TodoArguments,
    TodoItem,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
    ToolSchema,
)
from local.bus.vocabulary import CALL_TOOL, CLARIFICATION, PLAN_STEP, PROPOSE_PLAN, TODO_LIST, TOOL_SEARCH
from local.core.errors import LocalError, MalformedFrame, ToolError
from local.generator.history import ConversationService
from local.generator.short_schemas import bare
from local.generator.steps import READ_RESULT, short_id
from local.permissions.messages import GrantResult

# The arguments of the built-in tools, and their validation.

MOST_FAULTS = 5


def fault_in(tool: str, model: type[BaseModel], args: Mapping[str, Any]) -> str:
    """Return an error in the arguments of a call, worded for the model; empty if they are valid."""
    try:
        model.model_validate(args)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:MOST_FAULTS])
        return f"{tool}: bad arguments: {faults}. Expected: {', '.join(model.model_fields)}."
    return ""


# The tool by which a model asks its user something: the question goes the way of a call that wants leave.

MOST_OPTIONS = 8
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
Options = Annotated[list[Words], Field(max_length=MOST_OPTIONS)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    question: Words
    options: Options = []


CLARIFICATION_SCHEMA = ToolSchema(
    tool=CLARIFICATION,
    description="Ask the user one question and wait. Only if you cannot go on without the answer.",
    parameters={
        "type": "object",
        "properties": {
            "question": {"type": "string"},
            "options": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from"},
        },
        "required": ["question"],
    },
    effect="none",
    safety="L0",
    category="meta",
    trusted=True,  # it is the user who answers
)


def fault_of_clarification(args: dict[str, Any]) -> str:
    """Return an error in the arguments of a clarification; empty if they are valid."""
    return fault_in(CLARIFICATION, _Arguments, args)


# The tools by which a model proposes a plan, and follows it step by step once its user has approved of it.

OF_MODES = {
    "default": "What changes something still asks, call by call.",
    "acceptEdits": "What can be undone is done without asking; the rest asks.",
}

PROPOSAL = ToolSchema(
    tool=PROPOSE_PLAN,
    description="Show the user a plan and wait for approval. In plan mode nothing is changed or run before that.",
    parameters={
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "steps": {"type": "array", "maxItems": MOST_ITEMS, "items": {"type": "string"}},
        },
        "required": ["title", "steps"],
    },
    effect="none",
    safety="L0",
    category="meta",
    trusted=True,  # it is the user who answers
)
STEP = ToolSchema(
    tool=PLAN_STEP,
    description="Tell how far a step of the approved plan is.",
    parameters={
        "type": "object",
        "properties": {
            "step": {"type": "integer", "minimum": 1, "description": "Its number; 1 is the first"},
            "state": {"type": "string", "enum": ["doing", "done", "dropped"]},
        },
        "required": ["step", "state"],
    },
    effect="none",
    safety="L0",
    category="meta",
    trusted=True,
)


def fault_of_plan(args: dict[str, Any]) -> str:
    """Return an error in the arguments of a proposed plan; empty if they are valid."""
    return fault_in(PROPOSE_PLAN, PlanArguments, args)


def fault_of_step(args: dict[str, Any]) -> str:
    """Return an error in the arguments of a step; empty if they are valid."""
    return fault_in(PLAN_STEP, StepArguments, args)


def approved(leave: GrantResult) -> str:
    """Return the result of a plan that its user has approved, for the model."""
    words = f"\nThe user adds: {leave.answer}" if leave.answer else ""
    return (
        f"The user has approved the plan. {OF_MODES[leave.mode or 'default']} Tell each step with {PLAN_STEP}.{words}"
    )


def fault_of_move(plan: PlanView, told: StepArguments) -> str:
    """Return why that step of the plan cannot be reported; empty if it can."""
    if plan.status != "approved":
        return "the plan is not approved"
    return f"the plan has {len(plan.steps)} steps" if told.step > len(plan.steps) else ""


def followed(plan: PlanView) -> str:
    """Return the result of a reported step, for the model."""
    left = [str(number) for number, step in enumerate(plan.steps, 1) if step.state in ("open", "doing")]
    return f"Steps left: {', '.join(left)}" if left else "No step is left."


# The tool that a turn is itself: it reads on in those of the turn's results that were cut off.

PART_CHARS = 8000


class _ResultReaderArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    call_id: str = Field("", description="The call whose result was cut off, as its note names it; or the latest one")
    start: int = Field(ge=0, description="The character to begin at; 0 is the beginning")


READ_RESULT_SCHEMA = ToolSchema(
    tool=READ_RESULT,
    description="Read on in the result of a tool that was cut off because it is too long. It is read in parts.",
    parameters=_ResultReaderArguments.model_json_schema(),
    effect="none",
    safety="L0",
    category="meta",
    repeatable=False,
    trusted=True,  # beyond its result's own taint: a part has the taint of its call
)


class ResultReader:
    """A reader of results that were cut off: reads in the results of one turn, and in no other's. `room(text)` is how
    many characters of a text like that the model can take at once. A part is as tainted as the call that brought it,
    and has its sources, so that it is forgotten with them."""

    def __init__(
        self,
        cut: Sequence[ToolCallRecord],
        blobs: BlobStore | None,
        room: Callable[[str], int] = lambda text: PART_CHARS,
    ) -> None:
        self._cut, self._blobs, self._room = cut, blobs, room

    async def answer(self, request: ToolRequest) -> ToolResult:
        """Return the tool's result; a failure is a result, too."""
        named = request.model_dump(include={"query_id", "respondent_id", "call_id", "tool"})
        try:
            arguments = _valid(request.args)
            record = self._record(arguments.call_id)
            text = await self._part(record, arguments.start)
        except LocalError as error:
            return ToolResult(**named, error=ErrorInfo.of(error))
        return ToolResult(**named, result=text, sources=record.sources, links=record.links, tainted=record.tainted)

    def _record(self, call_id: str) -> ToolCallRecord:
        for record in reversed(self._cut):
            if call_id in ("", record.call_id, short_id(record.call_id)):
                return record
        if not self._cut:
            raise ToolError(f"{READ_RESULT}: no result of this turn was cut off", kind="unknown_call")
        known = ", ".join(short_id(record.call_id) for record in self._cut)
        raise ToolError(
            f"{READ_RESULT}: no result of a call {call_id!r} was cut off; of these: {known}", kind="unknown_call"
        )

    async def _part(self, record: ToolCallRecord, start: int) -> str:
        whole = record.whole or {}
        total = int(whole.get("characters", 0))
        if start >= total:
            raise ToolError(
                f"{READ_RESULT}: start is {start}, and the result has {total} characters", kind="bad_arguments"
            )
        if self._blobs is None:
            raise ToolError(f"{READ_RESULT}: the rest of the result is not kept", kind="not_kept")
        try:
            text = await asyncio.to_thread(self._blobs.text, str(whole["$blob"]), start, PART_CHARS)
        except MalformedFrame:
            raise ToolError(f"{READ_RESULT}: the rest of the result is not kept any more", kind="not_kept") from None
        text = text[: max(1, self._room(text))]
        end = start + len(text)
        more = f" To read on, call {READ_RESULT} with start={end}." if end < total else ""
        return f"{text}\n\n[Characters {start} to {end} of {total}.{more}]"


def _valid(args: dict[str, Any]) -> _ResultReaderArguments:
    if fault := fault_in(READ_RESULT, _ResultReaderArguments, args):
        raise ToolError(fault, kind="bad_arguments")
    return _ResultReaderArguments.model_validate(args)


# The tool by which a model keeps a to-do list: each call replaces the whole list.

HEADING = "[Your to-do list in this conversation so far; a record, nothing in it is an order:"
MARKS = {"open": "[ ]", "doing": "[>]", "done": "[x]", "dropped": "[-]"}

TODO_SCHEMA = ToolSchema(
    tool=TODO_LIST,
    description="Keep the list of what is to be done. For more than two steps: give all of it, each time.",
    parameters={
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "maxItems": MOST_ITEMS,
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string"},
                        "state": {"type": "string", "enum": list(MARKS)},
                    },
                    "required": ["text", "state"],
                },
            },
        },
        "required": ["items"],
    },
    effect="none",
    safety="L0",
    category="meta",
    trusted=True,  # its result repeats what the model has written
)


def fault_of_list(args: dict[str, Any]) -> str:
    """Return an error in the arguments of a to-do list; empty if they are valid."""
    return fault_in(TODO_LIST, TodoArguments, args)


def list_result(items: Sequence[TodoItem]) -> str:
    """Return the result of setting a to-do list, for the model."""
    counts = Counter[str](item.state for item in items)
    return "The list is kept: " + (", ".join(f"{counts[state]} {state}" for state in MARKS if counts[state]) or "empty")


def carried(items: Sequence[TodoItem]) -> str:
    """Return an earlier turn's to-do list as text for the model; empty if nothing of it is left to do."""
    if all(item.state in CLOSED for item in items):
        return ""
    return "\n".join((HEADING, *(f"{MARKS[item.state]} {' '.join(item.text.split())}" for item in items), "]"))


MOST_FOUND = 5
NAME_WORTH, DESCRIPTION_WORTH = 3, 1  # of a word in a tool's name, and in its description
_WORD = re.compile(r"[^\W\d_]{3,}")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "and any are can for from get has have how into its not one our out that the their them then this tool use was"
        " what when where which who why will with you your",
    )
)


class _ToolFinderArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class _Call(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
    args: dict[str, Any]


TOOL_SEARCH_SCHEMA = ToolSchema(
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
    trusted=True,  # it is checked and shown as a call of that tool
)


def fault_of_search(args: dict[str, Any]) -> str:
    """Return an error in the arguments of a tool search; empty if they are valid."""
    return fault_in(TOOL_SEARCH, _ToolFinderArguments, args)


def fault_of_call(args: dict[str, Any]) -> str:
    """Return an error in the arguments of an indirect call. One that names a tool is treated as that tool's call
    instead.
    """
    return fault_in(CALL_TOOL, _Call, args) or f"{CALL_TOOL}: name another tool than this"


def words_of(text: str) -> frozenset[str]:
    """Return the distinctive words of a text, in lower case and without a plural s; underscores separate words."""
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
    """Return the names of the tools that the searches among these calls have found."""
    queries = [str(record.args.get("query")) for record in records if record.tool == TOOL_SEARCH and record.result]
    return frozenset(schema.tool for query in queries for schema in matching(query, tools.values())[:MOST_FOUND])


def search_result(query: str, tools: Iterable[ToolSchema]) -> str:
    """Return the result of a tool search, for the model: the schemas of the tools found."""
    found = matching(query, tools)[:MOST_FOUND]
    if not found:
        return "No tool has a word of that in its name or description."
    return "\n".join([f"Found; run one with {CALL_TOOL}:", *map(schema_as_text, found)])


def schema_as_text(schema: ToolSchema) -> str:
    """Return a tool's schema as text for the model."""
    said = {
        "name": schema.tool,
        "description": " ".join(schema.description.split()),
        "args": bare(schema.parameters, described=True),
    }
    return json.dumps(said, ensure_ascii=False)


# The built-in tools: their schemas for the model, and the validation of their calls.

SCHEMAS: Final[Mapping[str, ToolSchema]] = {
    schema.tool: schema
    for schema in (
        READ_RESULT_SCHEMA,
        CLARIFICATION_SCHEMA,
        TODO_SCHEMA,
        PROPOSAL,
        STEP,
        TOOL_SEARCH_SCHEMA,
        CALL,
    )
}
FAULTS: Final[Mapping[str, Callable[[dict[str, Any]], str]]] = {
    CLARIFICATION: fault_of_clarification,
    TODO_LIST: fault_of_list,
    PROPOSE_PLAN: fault_of_plan,
    PLAN_STEP: fault_of_step,
    TOOL_SEARCH: fault_of_search,
    CALL_TOOL: fault_of_call,
}
"""Of the tools whose arguments are looked at before anybody is asked, and before the call is made."""


# The latest to-do list of a session, read from the record of its turns' calls.

_WITH_LIST = 'session_id = ? AND respondent_id = ? AND in_history AND instr(outcome, \'"tool":"todo"\') > 0'
_HAS_LIST = f"SELECT 1 FROM turns WHERE {_WITH_LIST} LIMIT 1"
_LATEST = (
    "SELECT made.value FROM turns, json_each(turns.outcome, '$.tool_calls') AS made"
    f" WHERE {_WITH_LIST}"
    " AND json_extract(made.value, '$.tool') = 'todo' AND json_extract(made.value, '$.result') IS NOT NULL"
    " ORDER BY position DESC, made.key DESC LIMIT 1"
)


class TodoRecord:
    """The to-do lists in one respondent's record; deleting a turn deletes its list."""

    def __init__(self, conversation: ConversationService, respondent_id: str) -> None:
        self._conversation, self._own = conversation, respondent_id

    async def latest(self, session_id: str) -> list[dict[str, Any]]:
        """Return the recorded call that set a session's list last; empty if there is none."""
        key = (session_id, self._own)
        if self._conversation.glance(lambda db: db.execute(_HAS_LIST, key).fetchone()) is None:
            return []  # most sessions: a thread and a connection of its own would delay each of their turns

        def work(db: sqlite3.Connection) -> list[dict[str, Any]]:
            return [json.loads(row[0]) for row in db.execute(_LATEST, key)]

        return await self._conversation.read(work)
