"""Users' ratings of answers, as rewards."""

from local.core.capability import Capability

CAPABILITY = Capability(
    participants={"reward": "local.reward.reward:RewardService"},
    routes=("local.reward.routes:add_routes",),
)
