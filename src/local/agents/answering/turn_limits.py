"""How far one turn may go, and how far it has come: the one place that says when no more tools are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from local.agents.answering.steps import ModelStep, Step, ToolStep
from local.protocol.messages import AgentTask, TurnTotals

OUTPUT_BYTES = 2_000_000
TOO_MANY_CALLS = "too_many_calls"  # the kind of what was not made


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Steps are rounds of tool calls: `steps` where only tools are offered that read, else `acting_steps`. `calls` and
    `output_bytes`, of what tools have told, are for a whole turn, and so are `tokens`, which an agent's turn has."""

    steps: int = 5
    acting_steps: int = 20
    calls: int = 50
    output_bytes: int = OUTPUT_BYTES
    tokens: int | None = None  # of an agent's turn

    def of_agent(self, task: AgentTask | None) -> TurnLimits:
        """The limits of a turn that an agent was asked for, which may have less left."""
        if task is None:
            return self
        return replace(self, calls=min(self.calls, task.max_calls), tokens=task.max_tokens)

    def totals(self, steps: Sequence[Step], *, acts: bool) -> TurnTotals:
        """What a turn has used of them; `acts`: it is offered a tool that does more than read."""
        rounds = [step for step in steps if isinstance(step, ToolStep)]
        records = [record for step in rounds for record in step.records]
        usages = [step.usage for step in steps if isinstance(step, ModelStep)]
        return TurnTotals(
            steps=len(rounds),
            max_steps=self.acting_steps if acts else self.steps,
            calls=sum(record.error is None or record.error.kind != TOO_MANY_CALLS for record in records),
            max_calls=self.calls,
            output_bytes=sum(len(record.result.encode("utf-8", "replace")) for record in records if record.result),
            max_output_bytes=self.output_bytes,
            tokens=sum(usage.prompt_tokens + usage.completion_tokens for usage in usages),
            max_tokens=self.tokens,
        )


def limit_met(totals: TurnTotals) -> str:
    """The limit at which no more tools are called, in words; empty if there is room."""
    if totals.steps >= totals.max_steps:
        return f"{totals.max_steps} steps"
    if totals.calls >= totals.max_calls:
        return f"{totals.max_calls} calls of tools"
    if totals.max_tokens is not None and totals.tokens >= totals.max_tokens:
        return f"{totals.max_tokens} tokens"
    return f"{totals.max_output_bytes} bytes of tools' output" if totals.output_bytes >= totals.max_output_bytes else ""


def notes_of(totals: TurnTotals) -> tuple[str, ...]:
    """What is said of an answer that a limit has brought about."""
    if not (totals.steps and (met := limit_met(totals))):
        return ()
    return (f"it answered with what it had, as no more than {met} are possible for one question",)
