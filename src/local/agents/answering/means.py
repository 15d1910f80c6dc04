"""What the turns of a respondent work with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from local.agents.answering.context_desk import ContextDesk
from local.agents.answering.priority import Priority, UsersTurn
from local.agents.answering.tool_registry import ToolRegistry
from local.agents.leases import Leases
from local.bus.bus import Bus
from local.models.chat import ChatModel
from local.services.conversation import ConversationService


@dataclass(frozen=True, slots=True)
class Means:
    """What a turn works with."""

    bus: Bus
    model: ChatModel
    conversation: ConversationService
    context: ContextDesk
    tools: ToolRegistry
    agent_id: str
    model_name: str
    options: Mapping[str, Any]
    tool_timeout_seconds: float
    answers_as: str | None = None
    priority: Priority = field(default_factory=lambda: UsersTurn(Leases(), ""))
    clock: Callable[[], float] = field(default=time.monotonic)
