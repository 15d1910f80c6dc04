"""The tools by which a model proposes a plan, and follows it step by step once its user has approved of it."""

from __future__ import annotations

from typing import Any

from local.agents.answering.arguments import fault_in
from local.protocol.messages import ToolSchema
from local.protocol.permission_messages import GrantResult
from local.protocol.plan_messages import PlanArguments, PlanView, StepArguments
from local.protocol.todo_messages import MOST_ITEMS
from local.protocol.turn_tools import PLAN_STEP, PROPOSE_PLAN

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
    """What is wrong with the arguments of a proposal; empty if nothing is."""
    return fault_in(PROPOSE_PLAN, PlanArguments, args)


def fault_of_step(args: dict[str, Any]) -> str:
    """What is wrong with the arguments of a step; empty if nothing is."""
    return fault_in(PLAN_STEP, StepArguments, args)


def approved(leave: GrantResult) -> str:
    """What the model reads of a plan that its user has approved."""
    words = f"\nThe user adds: {leave.answer}" if leave.answer else ""
    return (
        f"The user has approved the plan. {OF_MODES[leave.mode or 'default']} Tell each step with {PLAN_STEP}.{words}"
    )


def fault_of_move(plan: PlanView, told: StepArguments) -> str:
    """Why a step of that plan cannot be told; empty if it can."""
    if plan.status != "approved":
        return "the plan is not approved"
    return f"the plan has {len(plan.steps)} steps" if told.step > len(plan.steps) else ""


def followed(plan: PlanView) -> str:
    """What the model reads of a step that it has told."""
    left = [str(number) for number, step in enumerate(plan.steps, 1) if step.state in ("open", "doing")]
    return f"Steps left: {', '.join(left)}" if left else "No step is left."
