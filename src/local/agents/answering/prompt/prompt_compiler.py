"""Compiles the system prompt: the sections that a model is told, each with its origin and what it costs. No I/O."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache

from local.agents.answering.context.token_budget import TokenMeter, size_of
from local.agents.answering.prompt.prompt_inputs import PromptInputs
from local.agents.answering.prompt.section_table import SECTIONS, skill_line
from local.models.chat import Json
from local.models.tool_selection import Tier
from local.protocol.context_block import ContextItem, Kind

KEPT = 64  # prompts: of each mode, profile and set of tools that is in use
_KINDS: tuple[Kind, ...] = ("date", "folder", "permissions")
_RANK = {tier: rank for rank, tier in enumerate(Tier)}


@dataclass(frozen=True, slots=True)
class PromptSection:
    """One section as the model is told it. `place` is `system` for the system message, which is the same in each turn
    of a conversation, and `question` for the block before the question. `tokens` are estimated, as for the model's
    window."""

    name: str
    least: Tier
    origin: str
    text: str
    tokens: int
    place: str = "system"

    def as_json(self) -> Json:
        """All of it."""
        return asdict(self)


@lru_cache(KEPT)
def compile_prompt(inputs: PromptInputs) -> tuple[PromptSection, ...]:
    """The sections that a model of that tier is told, in order, without those that have nothing to say."""
    meter = TokenMeter()
    rules = (rule for rule in SECTIONS if _RANK[rule.least] <= _RANK[inputs.tier])
    texts = ((rule, rule.text(inputs)) for rule in rules)
    return tuple(
        PromptSection(rule.name, rule.least, rule.origin(inputs), text, meter.tokens(size_of(text)), rule.place)
        for rule, text in texts
        if text
    )


@lru_cache(KEPT)
def system_text(inputs: PromptInputs) -> str:
    """The system message."""
    return "\n\n".join(section.text for section in compile_prompt(inputs) if section.place == "system")


@lru_cache(KEPT)
def environment_items(inputs: PromptInputs) -> tuple[ContextItem, ...]:
    """What may change within a conversation, for the block before the question."""
    items = [
        ContextItem(kind=kind, key=kind, text=section.text)
        for section in compile_prompt(inputs)
        for kind in _KINDS
        if section.name == kind
    ]
    items += [ContextItem(kind="skill", key=each.name, text=skill_line(each)) for each in inputs.skills]
    return tuple(items)


def as_json(model: str, inputs: PromptInputs) -> Json:
    """The prompt that this model is told, for a person: its sections, and what they cost together."""
    sections = compile_prompt(inputs)
    return {
        "model": model,
        "tier": inputs.tier,
        "mode": inputs.mode or None,
        "tokens": sum(section.tokens for section in sections),
        "sections": [section.as_json() for section in sections],
    }
