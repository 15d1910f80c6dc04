"""Background work while no user is active: dreams, thoughts, goals."""

from local.core.capability import Capability, Command, OnPage, Section

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
            {
                "list": OnPage("agents/reflection", "*Dreams*"),
                "now": OnPage("agents/reflection", "*Dream now*"),
                "on off": OnPage("agents/reflection", "*Switch* dreaming on or off"),
            },
        ),
        "monologue": Command(
            "local.reflection.commands:monologue_app",
            Section.MEMORY,
            "Show the inner monologue",
            {
                "show": OnPage("agents/reflection", "*Inner monologue*"),
                "now": OnPage("agents/reflection", "*Think now*"),
                "on off": OnPage("agents/reflection", "*Switch* the monologue on or off"),
            },
        ),
        "goals": Command(
            "local.reflection.commands:goal_app",
            Section.AGENTS,
            "Set goals that are checked in the background",
            {
                "list": OnPage("agents/goals", "*Active*"),
                "set": OnPage("agents/goals", "*Set goal*"),
                "done": OnPage("agents/goals", "*Reached* beside a goal"),
                "drop": OnPage("agents/goals", "*Give up* beside a goal"),
                "reopen": OnPage("agents/goals", "*Take up again* beside a goal"),
                "now": OnPage("agents/goals", "*Check all goals now*"),
                "on off": OnPage("agents/goals", "*Switch* checking on or off"),
            },
        ),
    },
)
