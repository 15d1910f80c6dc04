"""Where skills may lie."""

from __future__ import annotations

from pathlib import Path

from local.errors import ConfigError
from local.runtime.participant import Resources
from local.services.skills.skill_approval_book import SkillApprovalBook
from local.services.skills.skill_library import SkillLibrary
from local.services.skills.skill_place import IN_SETTINGS, SkillPlace
from local.tools.file_tools.workspace_files import FilesConfig
from local.trust.trust_registry import TrustRegistry

IN_WORKSPACE = (".local2", "skills")


class SkillPlaces:
    """In this order: the folder of settings, the folders that the owner names, and the workspace for as long as the
    owner trusts it. Raises `ConfigError` for a folder that lies in the workspace, where the model may write."""

    def __init__(self, settings: Path, named: tuple[Path, ...], workspace: Path) -> None:
        self._settings, self._workspace, self._trust = settings, workspace, TrustRegistry(settings)
        self._named = [SkillPlace("extra", folder.expanduser()) for folder in named]
        for place in self._named:
            if place.root.resolve().is_relative_to(workspace.resolve()):
                raise ConfigError(f"files.yaml: skill_folders: {place.root} lies in the workspace; name one outside")

    def __call__(self) -> list[SkillPlace]:
        """The places that there are now."""
        places = [SkillPlace("settings", self._settings, IN_SETTINGS), *self._named]
        return [*places, SkillPlace("workspace", self._workspace, IN_WORKSPACE)] if self._is_trusted() else places

    def _is_trusted(self) -> bool:
        try:
            return self._trust.trusted(self._workspace)
        except ConfigError:
            return False


def library_of(config: FilesConfig, resources: Resources) -> SkillLibrary:
    """The skills that there are for a participant. Raises `ConfigError`."""
    settings = resources.layers[-1] if resources.layers else resources.data_dir / "no-settings"
    places = SkillPlaces(settings, config.skill_folders, resources.workspace_folder)
    return SkillLibrary(places, SkillApprovalBook(settings))
