"""What is done while nobody asks: dreams, thoughts, goals."""

from local.core.capability import Capability

CAPABILITY = Capability(
    participants={"reflection": "local.reflection.agent:Reflection"},
    messages=("local.reflection.messages",),
    routes=(
        "local.reflection.routes:add_dream_routes",
        "local.reflection.routes:add_goal_routes",
        "local.reflection.routes:add_monologue_routes",
    ),
    commands={
        "dream": "local.reflection.commands:dream_app",
        "monologue": "local.reflection.commands:monologue_app",
        "goals": "local.reflection.commands:goal_app",
    },
)
