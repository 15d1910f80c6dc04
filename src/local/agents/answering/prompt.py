"""What the model is told before the conversation: one function makes it, for turns and for whoever wants to see it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from local.models.chat import Json
from local.protocol.messages import ToolSchema

TOOLS_HEADING = "About the tools:"
FACTS_HEADING = "What the user has told of themselves; use it only where it matters:"
WRITES = "changes something outside this conversation: call it only if the user has asked for that, and not twice"


def compose(
    instructions: str,
    today: date,
    history: Sequence[Json],
    *,
    tools: Iterable[ToolSchema] = (),
    facts: Sequence[str] = (),
) -> tuple[Json, ...]:
    """The system message and the history. A caller's own system messages come after ours.

    The system message is the `instructions`, the guidance that `tools` give, the session's `facts`, which must be the
    user's own words, and the date: what changes most often comes last, so that servers find the rest in their cache.
    """
    sections = (
        instructions.strip(),
        _listed(TOOLS_HEADING, [line for tool in tools if (line := guidance(tool))]),
        _listed(FACTS_HEADING, facts),
        f"Today is {today:%A}, {today.isoformat()}.",
    )
    return ({"role": "system", "content": "\n\n".join(filter(None, sections))}, *history)


def guidance(tool: ToolSchema) -> str:
    """What the instructions have to say of a tool beyond its own description, which the model gets with its schema."""
    return f"{tool.tool} {WRITES}." if tool.effect == "write" else ""


def _listed(heading: str, lines: Sequence[str]) -> str:
    return "\n".join((heading, *(f"- {' '.join(line.split())}" for line in lines))) if lines else ""
