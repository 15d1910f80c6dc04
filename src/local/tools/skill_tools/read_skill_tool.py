"""The tool that reads a skill: its instructions, or one of its files."""

from __future__ import annotations

import asyncio
from typing import Annotated

from local.protocol.skill_messages import READ_SKILL
from local.services.sandbox.sandbox_view import skill_path
from local.services.skills.skill_library import SkillLibrary
from local.tools.file_tools.workspace_files import FilesConfig
from local.tools.owner_only import require_owner
from local.tools.tool import Tool


class ReadSkillTool(Tool):
    """Read the instructions of a skill before you do what it is for; then do as it says. With file, read one of the
    files that it names."""

    name = READ_SKILL
    safety = "L0"
    category = "read"
    trusted = True  # a skill is the owner's word, wherever the owner got it

    def __init__(self, config: FilesConfig, library: SkillLibrary) -> None:
        super().__init__(config)
        self._library = library

    async def run(
        self,
        name: Annotated[str, "The skill, by the name in the list of skills"],
        file: Annotated[str, "One of its files, counted from its folder; empty for its instructions"] = "",
    ) -> str:
        """The text."""
        require_owner(self.asked_by())
        return await asyncio.to_thread(self._text, name, file)

    def _text(self, name: str, file: str) -> str:
        place, skill = self._library.skill(name)
        if file:
            return self._library.file(place, name, file)
        files = ", ".join(self._library.files(place, name))
        if not files:
            return skill.body
        folder = place.folder / name
        where = folder if place.kind == "workspace" else skill_path(name, folder)
        return f"{skill.body}\n\n(Its files: {files}. Commands find them below {where}.)"
