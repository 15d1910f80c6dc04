"""Texts that tell the model how to do something."""

from local.core.capability import Capability

CAPABILITY = Capability(
    messages=("local.skills.messages",),
    routes=("local.skills.routes:add_routes",),
    commands={"skills": "local.skills.commands:skills_app"},
)
