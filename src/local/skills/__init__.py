"""Skills: instructions for the model, in folders."""

from local.core.capability import Capability, Command, OnPage, Section

CAPABILITY = Capability(
    messages=("local.skills.messages",),
    routes=("local.skills.routes:add_routes", "local.skills.source_routes:add_routes"),
    extensions={"files": "local.skills.tools:SkillService"},
    requests=("local.skills.messages:SkillRequest",),
    commands={
        "skills": Command(
            "local.skills.commands:skills_app",
            Section.TOOLS,
            "List, write, approve and revert skills",
            {
                "list check": OnPage("tools/skills", "the column *State*"),
                "show": OnPage("tools/skills", "press a skill: *Its text, as the model reads it*"),
                "new": OnPage("tools/skills", "*Create skill*"),
                "approve": OnPage("tools/skills", "press a skill, then *Approve this skill*"),
                "tools": OnPage(
                    "tools/skills", "press a skill, then *Review its tools* or *Withdraw the approval of its tools*"
                ),
                "proposal": OnPage("tools/skills", "press a skill, then *Apply this change* or *Discard*"),
                "history": OnPage("tools/skills", "press a skill: *Versions*"),
                "revert": OnPage("tools/skills", "press a skill, then *Restore* beside a version"),
            },
        ),
    },
)
