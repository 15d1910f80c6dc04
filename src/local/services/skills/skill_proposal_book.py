"""The skills of which a change was proposed, each with its versions in a folder of the data directory."""

from __future__ import annotations

from pathlib import Path

from local.errors import ConfigError
from local.instructions.text_proposal import TextProposals
from local.private_file import write_private
from local.services.skills.skill import MOST_NAME, NAME, one_line
from local.services.skills.skill_draft import SkillDraft
from local.services.skills.skill_place import IN_SETTINGS
from local.services.skills.skill_text import SkillText

FOLDER = "skills"  # in the data directory
PLACE_FILE = "folder"  # says where the skill lies


class SkillProposalBook:
    """Skills by their names. What is proposed of them lies where nobody looks for skills."""

    def __init__(self, settings: Path, data_dir: Path) -> None:
        self._settings, self._folder = settings, data_dir / FOLDER

    def names(self) -> list[str]:
        """The names of the skills, sorted."""
        return sorted(path.parent.name for path in self._folder.glob(f"*/{PLACE_FILE}"))

    def text(self, name: str) -> SkillText:
        """The text of one skill. Raises `ConfigError`."""
        if name not in self.names():
            known = ", ".join(self.names()) or "none"
            named = one_line(name)[:MOST_NAME]
            raise ConfigError(f"no change of a skill {named!r} was ever proposed; there were of: {known}")
        try:
            folder = Path((self._folder / name / PLACE_FILE).read_text(encoding="utf-8").rstrip("\n"))
        except (OSError, ValueError):
            folder = Path()
        if folder.name != name:
            raise ConfigError(f"{self._folder / name / PLACE_FILE} cannot be read; delete the folder it is in")
        return SkillText(folder, self._settings, self._folder / name)

    def propose(self, draft: SkillDraft, folder: Path | None, by: str) -> bool:
        """Whether there was something to propose, of the skill in that folder or, without one, of a new skill among the
        owner's. Raises `ConfigError`."""
        if not NAME.fullmatch(draft.name) or len(draft.name) > MOST_NAME:
            raise ConfigError(f"{one_line(draft.name)[:MOST_NAME]!r} cannot be a skill's name")
        own = self._settings.joinpath(*IN_SETTINGS, draft.name)
        if folder is None and own.exists():
            raise ConfigError(f"{own} is there already, and is no skill that is ready")
        versions = self._folder / draft.name
        skill = SkillText(folder or own, self._settings, versions)
        wanted = draft.text(skill.text())
        try:
            versions.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(versions / PLACE_FILE, f"{skill.folder}\n")
        except OSError as error:
            raise ConfigError(f"{versions / PLACE_FILE} cannot be written: {error.strerror}") from None
        return TextProposals(skill).propose(wanted, by)
