"""What is asked, and a model that answers by rule: it calls the tools that the query names, then says what it saw."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from local.bus.messages import ToolSchema
from local.models.chat import ContentDelta, Delta, Done, Json, ThinkingDelta, ToolCall, Usage

PLANS: dict[str, tuple[tuple[str, ...], ...]] = {  # by word in the query: the rounds of tool calls
    "plain": (),
    "look": (("lookup",),),
    "both": (("lookup", "lookup"),),
    "effect": (("effect",),),
    "mixed": (("lookup", "effect"),),
    "twice": (("effect",), ("effect",)),
}
OFFERED = {
    name: ToolSchema(tool=name, description=name, parameters={}, effect=effect)
    for name, effect in (("lookup", "read"), ("effect", "write"))
}


def plan_of(query: str) -> tuple[tuple[str, ...], ...]:
    """Which tools a query "1.2 mixed" or "1.2 mixed poison0" makes the model call."""
    return PLANS[query.split()[1]]


def is_poison(query: str, rounds: int | None = None) -> bool:
    """Whether a query kills the process that works on it, in any round or in the given one."""
    return f"poison{'' if rounds is None else rounds}" in query


def rounds_of(messages: Sequence[Json]) -> int:
    """How many of its messages of calls the model gets back."""
    return sum("tool_calls" in message for message in messages)


def say(messages: Sequence[Json], random: Random) -> list[Delta]:
    """The next message of the model, never quite the same twice; its answer names the queries before."""
    *before, query = (message["content"] for message in messages if message["role"] == "user")
    plan, rounds = plan_of(query), rounds_of(messages)
    if rounds < len(plan):
        calls = [ToolCall(tool, {"nonce": random.random()}) for tool in plan[rounds]]
        return [*calls, Done(Usage())]
    return [ThinkingDelta(str(random.random())), ContentDelta(answer_to(query, before)), Done(Usage())]


def answer_to(query: str, before: Sequence[str]) -> str:
    """What the model says in the end."""
    return f"{query} after {' and '.join(before)}"
