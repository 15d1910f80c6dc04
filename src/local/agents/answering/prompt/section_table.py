"""The sections of the system prompt, one row for each, in the order in which they stand. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from local.agents.answering.prompt.prompt_inputs import PromptInputs, ToolLine
from local.models.tool_selection import Tier
from local.protocol.skill_messages import READ_SKILL

TOOLS_HEADING = "About the tools:"
ROUTING_HEADING = "Instead of a shell command, use the tool that is made for it:"
PERMISSIONS_HEADING = "What you may do:"
INSTRUCTIONS_HEADING = (
    "Standing instructions of the user. What stands above comes before them, and so does what the user asks now; where"
    " two of them conflict, the first counts."
)
SKILLS_HEADING = (
    f"Skills, each a text that says how something is done; read the one that a task needs with {READ_SKILL} before you"
    " begin:"
)
SOUL_HEADING = "Your character, and what the user wants you to know of themselves:"
CUSTOM_HEADING = "Your part in this conversation:"
WRITES = "changes something outside this conversation; call it only if the user has asked for that, and not twice"
MOST_SKILL_CHARACTERS = 1024  # of a description, as the open format has it

# What becomes of calls of each level; where no gatekeeper has said what holds, nothing is said of it.
_READS = "Tools that only read run at once."
_ASKS = "needs the user's leave for each call: ask for nothing else than the task needs, and accept a denial"
_AT_ONCE = "runs at once"
_NEVER = "is not run in this conversation: work out what is to be done, and tell it instead"
_PLANNED = "is only run once the user has approved a plan, and asks then: look round, and propose one (propose_plan)"
OF_MODES: dict[str, tuple[str, str]] = {  # L1 and L2
    "default": (_ASKS, _ASKS),
    "plan": (_PLANNED, _PLANNED),
    "acceptEdits": (_AT_ONCE, _ASKS),
    "dontAsk": (_NEVER, _NEVER),
    "bypassPermissions": (_AT_ONCE, _AT_ONCE),
}
_FOLDER_CATEGORIES = frozenset({"read", "write", "search", "shell", "git"})


@dataclass(frozen=True, slots=True)
class SectionRule:
    """A section: the least model that it is told to, where its text is from, and the text, empty for none."""

    name: str
    least: Tier
    origin: Callable[[PromptInputs], str]
    text: Callable[[PromptInputs], str]


def _role(inputs: PromptInputs) -> str:
    return inputs.role.text.strip()


def _soul(inputs: PromptInputs) -> str:
    return f"{SOUL_HEADING}\n{inputs.soul.text.strip()}" if inputs.soul else ""


def _custom(inputs: PromptInputs) -> str:
    return f"{CUSTOM_HEADING}\n{inputs.custom.text.strip()}" if inputs.custom and inputs.custom.text.strip() else ""


def _instructions(inputs: PromptInputs) -> str:
    texts = [f"[{text.origin}]\n{text.text.strip()}" for text in inputs.instructions if text.text.strip()]
    return "\n".join([INSTRUCTIONS_HEADING, *texts]) if texts else ""


def _effects(inputs: PromptInputs) -> str:
    names = ", ".join(tool.name for tool in inputs.tools if tool.effect == "write")
    return listed(TOOLS_HEADING, [f"{names}: {WRITES}."] if names else [])


def _routing(inputs: PromptInputs) -> str:
    if not any(tool.category == "shell" for tool in inputs.tools):
        return ""  # there is no shell that anything could be done with instead
    return listed(ROUTING_HEADING, [f"{tool.name} for {tool.replaces}" for tool in inputs.tools if tool.replaces])


def _permissions(inputs: PromptInputs) -> str:
    levels = OF_MODES.get(inputs.mode)
    if levels is None:
        return ""
    words = dict(zip(("L1", "L2"), levels, strict=True))  # of levels with the same word, one line
    said = (
        (_named(inputs.tools, [each for each in words if words[each] == word]), word) for word in dict.fromkeys(levels)
    )
    lines = [f"{names}: {word}." for names, word in said if names]
    return listed(PERMISSIONS_HEADING, [_READS, *lines]) if lines else ""


def _named(tools: Sequence[ToolLine], levels: Sequence[str]) -> str:
    return ", ".join(tool.name for tool in tools if tool.safety in levels)


def _skills(inputs: PromptInputs) -> str:
    lines = [f"{skill.name}: {' '.join(skill.description.split())[:MOST_SKILL_CHARACTERS]}" for skill in inputs.skills]
    return listed(SKILLS_HEADING, lines)


def _environment(inputs: PromptInputs) -> str:
    """The date comes last: what is looked for under taint takes the last line for public."""
    works = inputs.workspace and any(tool.category in _FOLDER_CATEGORIES for tool in inputs.tools)
    folder = f"You work in the folder {inputs.workspace}; the paths of files are below it.\n" if works else ""
    return f"{folder}Today is {inputs.today:%A}, {inputs.today.isoformat()}."


def listed(heading: str, lines: Sequence[str]) -> str:
    """Lines below a heading, each one line; nothing without any."""
    return "\n".join((heading, *(f"- {' '.join(line.split())}" for line in lines))) if lines else ""


def _said(origin: str) -> Callable[[PromptInputs], str]:
    return lambda _: origin


def _origins(inputs: PromptInputs) -> str:
    return ", ".join(text.origin for text in inputs.instructions)


# Of texts that conflict, the first counts; what changes most often stands last, so that servers find the rest in their
# cache.
SECTIONS: tuple[SectionRule, ...] = (
    SectionRule("role", Tier.WEAK, lambda inputs: inputs.role.origin, _role),
    SectionRule("custom", Tier.WEAK, lambda inputs: inputs.custom.origin if inputs.custom else "", _custom),
    SectionRule("instructions", Tier.WEAK, _origins, _instructions),
    SectionRule("soul", Tier.WEAK, lambda inputs: inputs.soul.origin if inputs.soul else "", _soul),
    SectionRule("tools", Tier.WEAK, _said("the tools"), _effects),
    SectionRule("routing", Tier.MID, _said("the tools"), _routing),
    SectionRule("permissions", Tier.MID, _said("gatekeeper.yaml, or the query's mode"), _permissions),
    SectionRule("skills", Tier.WEAK, _said("the skills"), _skills),
    SectionRule("environment", Tier.WEAK, _said("the system"), _environment),
)
