"""What a system prompt is compiled from: all of it can be compared, so that the same is compiled once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, Self

from local.instructions.sourced_text import SourcedText
from local.models.tool_selection import Tier
from local.protocol.messages import ToolSchema
from local.protocol.safety import Category, Safety


class SkillLine(NamedTuple):
    """What the model is told of a skill before it reads it."""

    name: str
    description: str
    origin: str = ""


class ToolLine(NamedTuple):
    """What the prompt needs to know of a tool."""

    name: str
    effect: str = "read"
    safety: Safety = "L0"
    category: Category = "data"
    replaces: str = ""

    @classmethod
    def of(cls, schema: ToolSchema) -> Self:
        """A tool as its schema tells of it."""
        return cls(schema.tool, schema.effect, schema.safety, schema.category, schema.replaces)


@dataclass(frozen=True, slots=True)
class PromptInputs:
    """`role` is the text of generator.yaml; `mode` what becomes of calls that need leave, where that is known;
    `workspace` the folder that tools work in."""

    role: SourcedText
    today: date
    tier: Tier = Tier.MID
    tools: tuple[ToolLine, ...] = ()
    mode: str = ""
    workspace: str = ""
    instructions: tuple[SourcedText, ...] = ()
    soul: SourcedText | None = None
    custom: SourcedText | None = None
    skills: tuple[SkillLine, ...] = ()
