"""Background work while no user is active: dreams, thoughts, goals."""

from local.core.capability import Capability, Command, Section

CAPABILITY = Capability(
    participants={"reflection": "local.reflection.agent:Reflection"},
    messages=("local.reflection.messages",),
    routes=(
        "local.reflection.routes:add_dream_routes",
        "local.reflection.routes:add_goal_routes",
        "local.reflection.routes:add_monologue_routes",
    ),
    requests=(
        "local.reflection.messages:GoalRequest",
        "local.reflection.messages:RoutineRequest",
    ),
    commands={
        "dream": Command(
            "local.reflection.commands:dream_app",
            Section.MEMORY,
            "Show dreams: notes on what conversations have in common",
        ),
        "monologue": Command("local.reflection.commands:monologue_app", Section.MEMORY, "Show the inner monologue"),
        "goals": Command(
            "local.reflection.commands:goal_app", Section.AGENTS, "Set goals that are checked in the background"
        ),
    },
)
