"""Agents that work on a part of a question."""

from local.core.capability import Capability, Command, OnPage, Section

CAPABILITY = Capability(
    participants={"swarm": "local.swarm.tools:Swarm"},
    messages=("local.swarm.messages",),
    routes=("local.swarm.routes:add_routes",),
    requests=("local.swarm.messages:AgentRequest",),
    commands={
        "agents": Command(
            "local.swarm.commands:agents_app",
            Section.AGENTS,
            "List, show and stop agents",
            {
                "list show": OnPage("agents", "the part *Agents*; press an agent to read its tasks"),
                "stop": OnPage("agents", "*Stop* beside an agent"),
            },
        ),
    },
)
