"""The tool by which a model asks its user something: the question goes the way of a call that wants leave."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from local.agents.answering.arguments import fault_in
from local.protocol.messages import ToolSchema
from local.protocol.turn_tools import CLARIFICATION

MOST_OPTIONS = 8
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
Options = Annotated[list[Words], Field(max_length=MOST_OPTIONS)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    question: Words
    options: Options = []


SCHEMA = ToolSchema(
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


def fault_of(args: dict[str, Any]) -> str:
    """What is wrong with the arguments of such a call; empty if nothing is."""
    return fault_in(CLARIFICATION, _Arguments, args)
