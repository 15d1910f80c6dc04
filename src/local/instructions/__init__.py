"""What the owner tells the model: instructions, soul, profiles, and which folders are trusted."""

from local.core.capability import Capability

CAPABILITY = Capability(
    routes=("local.instructions.routes:add_routes",),
    commands={
        "profiles": "local.instructions.commands:profile_app",
        "soul": "local.instructions.commands:soul_app",
        "trust": "local.instructions.commands:trust",
    },
)
