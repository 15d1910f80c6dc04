"""The agent that answers: the turn, its prompt, its tool calls, its conversations."""

from local.core.capability import Capability

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
    commands={"sessions": "local.generator.commands:session_app", "prompt": "local.generator.commands:prompt_app"},
)
