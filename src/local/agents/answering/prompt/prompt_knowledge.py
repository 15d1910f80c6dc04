"""What a respondent knows by now that goes into its prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from local.agents.answering.prompt.prompt_inputs import SkillLine
from local.protocol.messages import ToolSchema


@dataclass(frozen=True, slots=True)
class PromptKnowledge:
    """`offered` gives the tools that there are, `mode` that of the gatekeeper, empty where none lives, `skills` those
    that can be read; `workspace` is the folder that tools work in."""

    offered: Callable[[], Mapping[str, ToolSchema]]
    mode: Callable[[], str] = str
    workspace: str = ""
    skills: Callable[[], Sequence[SkillLine]] = tuple
