"""Texts that tell the model how to do something."""

from local.core.capability import Capability, Command, Section

CAPABILITY = Capability(
    messages=("local.skills.messages",),
    routes=("local.skills.routes:add_routes", "local.skills.source_routes:add_routes"),
    extensions={"files": "local.skills.tools:SkillService"},
    requests=("local.skills.messages:SkillRequest",),
    commands={
        "skills": Command("local.skills.commands:skills_app", Section.TOOLS, "List, write, approve and revert skills"),
    },
)
