"""SKILL.md of one skill, with its versions."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from local.errors import ConfigError, ToolError
from local.instructions.text_history import TextHistory
from local.instructions.versioned_text import VersionedText
from local.services.skills.skill import FILE_NAME
from local.services.skills.skill_approval_book import SkillApprovalBook, contents_of
from local.services.skills.skill_place import IN_SETTINGS, SkillPlace


class SkillText(VersionedText):
    """Where others than the owner may write, a change counts as approved if all that was there before it was."""

    def __init__(self, folder: Path, settings: Path, versions: Path) -> None:
        super().__init__(folder / FILE_NAME, TextHistory(versions, f"the skill {folder.name}"))
        self.folder, self._approvals = folder, SkillApprovalBook(settings)
        self._is_owners = folder.parent.resolve() == settings.joinpath(*IN_SETTINGS).resolve()

    def write(self, text: str) -> None:
        """Have the file hold that; without any text there is no such file. Raises `OSError` and `ConfigError`."""
        others = {} if self._is_owners else self._approved()
        if text:
            super().write(text)
        else:
            self.path.unlink(missing_ok=True)
            with suppress(OSError):  # it holds other files
                self.folder.rmdir()
        if text and not self._is_owners:
            self._approvals.approve(self.folder, {**others, FILE_NAME: f"{text}\n".encode()})

    def _approved(self) -> dict[str, bytes]:
        """All files of the skill, as the owner has approved them."""
        try:
            contents = contents_of(SkillPlace("extra", self.folder.parent), self.folder.name)
        except ToolError as error:
            raise ConfigError(str(error)) from None
        if why := self._approvals.fault(self.folder, contents):
            raise ConfigError(f"{self.history.what} is {why}")
        return contents
