"""Agents that work on a part of a question."""

from local.core.capability import Capability

CAPABILITY = Capability(
    participants={"swarm": "local.swarm.tools:Swarm"},
    messages=("local.swarm.messages",),
    routes=("local.swarm.routes:add_routes",),
    commands={"agents": "local.swarm.commands:agents_app"},
)
