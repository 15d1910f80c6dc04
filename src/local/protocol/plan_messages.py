"""What is said of a plan: what a model means to do, step by step, once its user has approved of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from local.protocol.message import Data, RespondentMessage
from local.protocol.todo_messages import MOST_CHARACTERS, MOST_ITEMS, WorkState
from local.protocol.turn_tools import PLAN_STEP, PROPOSE_PLAN

PlanMode = Literal["default", "acceptEdits"]
"""How the rest of a turn runs whose plan is approved."""
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_CHARACTERS)]


class PlanArguments(BaseModel):
    """The arguments by which a plan is proposed."""

    model_config = ConfigDict(extra="forbid")
    title: Line
    steps: Annotated[tuple[Line, ...], Field(min_length=1, max_length=MOST_ITEMS)]


class StepArguments(BaseModel):
    """The arguments by which a model says how a step of its plan stands; the first is number 1."""

    model_config = ConfigDict(extra="forbid")
    step: Annotated[int, Field(ge=1, le=MOST_ITEMS)]
    state: Literal["doing", "done", "dropped"]


class PlanCreated(RespondentMessage):
    """A respondent, when its model proposes a plan: its user is asked by `approval.request` under the same call_id."""

    subject = "plan.created"
    call_id: str
    title: str
    steps: tuple[str, ...]


class PlanStep(RespondentMessage):
    """A respondent, when its model begins, ends or drops a step of the plan that was approved: `index` from 0, in the
    plan of that `call_id`."""

    subject = "plan.step"
    call_id: str
    index: int
    state: WorkState


class PlannedStep(Data):
    """One step of a plan, and how it stands."""

    text: str
    state: WorkState = "open"


class PlanView(Data):
    """A plan as it stands: `call_id` is that of its proposal."""

    call_id: str
    title: str
    status: Literal["proposed", "approved", "denied"]
    steps: tuple[PlannedStep, ...]

    def moved(self, told: StepArguments) -> PlanView:
        """The plan after a step was told."""
        steps = [
            step.model_copy(update={"state": told.state}) if number == told.step else step
            for number, step in enumerate(self.steps, 1)
        ]
        return self.model_copy(update={"steps": tuple(steps)})


def is_plan(args: Mapping[str, Any]) -> bool:
    """Whether a plan can be proposed with these arguments."""
    try:
        PlanArguments.model_validate(args)
    except ValidationError:
        return False
    return True


def latest_plan(calls: Iterable[Mapping[str, Any]]) -> PlanView | None:
    """The last plan that these calls of tools have proposed, each with `tool`, `args`, `result` and `error`."""
    plan: PlanView | None = None
    for call in calls:
        if call.get("tool") == PROPOSE_PLAN:
            plan = _proposed(call) or plan
        elif call.get("tool") == PLAN_STEP and plan is not None and call.get("result") is not None:
            plan = _moved(plan, call)
    return plan


def _proposed(call: Mapping[str, Any]) -> PlanView | None:
    try:
        told = PlanArguments.model_validate(call.get("args"))
    except ValidationError:
        return None
    status = "approved" if call.get("result") is not None else "denied" if call.get("error") else "proposed"
    steps = tuple(PlannedStep(text=text) for text in told.steps)
    return PlanView(call_id=str(call["call_id"]), title=told.title, status=status, steps=steps)


def _moved(plan: PlanView, call: Mapping[str, Any]) -> PlanView:
    try:
        return plan.moved(StepArguments.model_validate(call.get("args")))
    except ValidationError:
        return plan
