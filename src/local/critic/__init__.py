"""Grades answers and compares two of them."""

from local.core.capability import Capability

CAPABILITY = Capability(
    participants={
        "critic": "local.critic.agent:CriticAgent",
        "compare_answers": "local.critic.compare:CompareAnswersTool",
    },
    messages=("local.critic.messages",),
)
