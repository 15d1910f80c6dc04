"""What the user thinks of answers, as a number."""

from local.core.capability import Capability

CAPABILITY = Capability(
    participants={"reward": "local.reward.reward:RewardService"},
    routes=("local.reward.routes:add_routes",),
)
