"""What a turn works with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from local.agents.answering.call_gate import CallGate
from local.agents.answering.context.prompt_fitter import PromptFitter
from local.agents.answering.tool_list import TurnOffer
from local.agents.answering.tool_registry import ToolRegistry
from local.agents.leases import Leases, Priority
from local.bus.blobs import BlobStore
from local.models.chat import ChatModel


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What a turn works with. `answers_as` is the name to sign with, where it is not the model's; `on_away` is
    told when no model server answers for now."""

    model: ChatModel
    prompts: PromptFitter
    tools: ToolRegistry
    model_name: str
    options: Mapping[str, Any]
    tool_timeout_seconds: float
    max_answer_tokens: int = 8192
    answers_as: str | None = None
    priority: Priority = field(default_factory=lambda: Priority(Leases(), ""))
    clock: Callable[[], float] = field(default=time.monotonic)
    blobs: BlobStore | None = None
    offer: TurnOffer = field(default_factory=TurnOffer)
    gate: CallGate | None = None  # without one, no call asks for leave, and no tool gets a grant
    on_away: Callable[[str], object] = field(default=lambda _: None)
