"""The agent that answers: the turn, its prompt, its tool calls, its conversations."""

from local.core.capability import Capability, Command, Section

CAPABILITY = Capability(
    participants={
        "generator": "local.generator.agent:GeneratorAgent",
        "generator_b": "local.generator.agent:SecondRespondent",
    },
    routes=(
        "local.generator.routes:add_query_routes",
        "local.generator.routes:add_session_routes",
        "local.generator.routes:add_prompt_routes",
    ),
    commands={
        "sessions": Command(
            "local.generator.commands:session_app", Section.ASK, "List, search, rename, export and delete conversations"
        ),
    },
)
