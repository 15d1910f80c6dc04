"""A swarm on the stage, and the texts that its agents read and write."""

from __future__ import annotations

import json
from typing import Any

from agent_stage.served import Served
from agent_stage.stage import Stage

from local.bus.messages import ResponseGeneration, ToolSchema
from local.runtime.participant import Resources
from local.swarm.agents import SwarmConfig
from local.swarm.tools import Swarm

WHO = "You are the agent {}. Do this task, and answer with its result; nobody can be asked.\n\n{}"


def asked(task: str, name: str = "agent") -> str:
    """Return the text for an agent with this task."""
    return WHO.format(name, task)


async def swarm(stage: Stage, **settings: Any) -> Served:
    """Return one whose tools have been announced."""
    before = len(stage.frontend.of(ToolSchema))
    config = SwarmConfig(**settings)
    made = Swarm.build(config, Resources(stage.database.parent))
    made.lent(Resources(stage.database.parent))
    served = await stage.serve(made)
    await stage.frontend.hears(ToolSchema, before + len(list(made.offered())))
    return served


def results(response: ResponseGeneration, call: int = 0) -> list[dict[str, Any]]:
    """Return the results in the model's prompt of the tasks that it has given."""
    text = response.tool_calls[call].result
    assert text is not None, response.tool_calls[call].error
    return json.loads(text)["results"]
