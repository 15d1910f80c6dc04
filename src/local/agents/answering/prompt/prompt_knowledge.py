"""What a respondent knows by now that goes into its prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from local.agents.answering.prompt.known_skills import KnownSkills
from local.protocol.messages import ToolSchema


@dataclass(frozen=True, slots=True)
class PromptKnowledge:
    """`offered` gives the tools that there are, `skills` those that can be read, `mode` that of the gatekeeper, empty
    where none lives; `workspace` is the folder that tools work in."""

    offered: Callable[[], Mapping[str, ToolSchema]]
    skills: KnownSkills
    mode: Callable[[], str] = str
    workspace: str = ""
