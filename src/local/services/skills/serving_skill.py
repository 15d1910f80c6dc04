"""A skill that brings servers of tools, in `mcp.json` beside its SKILL.md."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from local.config_mcp import FILE_NAME, MCPServerConfig, load_mcp_servers
from local.errors import ConfigError, ToolError
from local.services.sandbox.sandbox_view import skill_path
from local.services.skills.skill import FILE_NAME as SKILL_FILE
from local.services.skills.skill import read_skill
from local.services.skills.skill_approval_book import contents_of, digest_of
from local.services.skills.skill_place import SkillPlace

Leave = Literal["approved", "changed since it was approved", "not approved"]
WORKSPACE_FOLDER = ".local2"
HERE = "./"  # before a path that counts from the skill's folder


@dataclass(frozen=True, slots=True)
class ServingSkill:
    """The skill in `folder` as it was seen once: `digest` is the SHA-256 of all of its files."""

    folder: Path
    digest: str

    @classmethod
    def of(cls, folder: Path) -> Self:
        """The skill as it is now. Raises `ConfigError` for what is none, and for one in a workspace."""
        real = folder.resolve()
        if WORKSPACE_FOLDER in real.parts:
            raise ConfigError(f"{real} lies in a workspace, and a skill there brings no tools: copy it to your own")
        try:
            contents = contents_of(SkillPlace("extra", real.parent), real.name)
        except ToolError as error:
            raise ConfigError(str(error)) from None
        read_skill(real.name, contents.get(SKILL_FILE, b""))
        return cls(real, digest_of(contents))

    def servers(self) -> dict[str, MCPServerConfig]:
        """The servers that the skill brings, by the names that your own `mcp.json` has for them: none without the file.
        Raises `ConfigError`, also for what a skill cannot have: a url, a network, folders, secrets, another level."""
        found = load_mcp_servers(self.folder)
        alone = len(found) == 1
        return {
            self.folder.name if alone else f"{self.folder.name}-{name}": self._held(name, server)
            for name, server in found.items()
        }

    def leave(self, own: dict[str, MCPServerConfig]) -> Leave | None:
        """What was said of its servers, by those of your own `mcp.json`; None for a skill that brings none. Raises as
        `servers` does."""
        servers = self.servers()
        if not servers:
            return None
        seen = {own[name].skill_digest if name in own and own[name].skill == self.folder else "" for name in servers}
        if seen == {self.digest}:
            return "approved"
        return "changed since it was approved" if any(seen) else "not approved"

    def require(self) -> None:
        """Raises `ToolError` (not_approved) unless it is still as it was seen."""
        try:
            is_same = type(self).of(self.folder) == self
        except ConfigError:
            is_same = False
        if not is_same:
            text = f"the skill {self.folder.name} is not as it was approved: look at it with `local2 skills tools"
            raise ToolError(f"{text} {self.folder}`", kind="not_approved")

    def _held(self, name: str, server: MCPServerConfig) -> MCPServerConfig:
        unheld = server.model_fields_set - {"type", "command", "args", "env", "timeout_seconds", "start_seconds"}
        if unheld:
            raise ConfigError(f"{self.folder / FILE_NAME}: {name}.{min(unheld)}: a skill's server has none")
        said = [server.command, *server.args, *server.env.values()]
        if any("${" in text or text.startswith("secret:") for text in said):
            raise ConfigError(f"{self.folder / FILE_NAME}: {name}: a skill's server gets no variables and no secrets")
        return server.model_copy(update={
            "command": self._place(server.command),
            "args": tuple(map(self._place, server.args)),
            "skill": self.folder,
            "skill_digest": self.digest,
        })  # fmt: skip

    def _place(self, word: str) -> str:
        inside = skill_path(self.folder.name, self.folder)
        return f"{inside}/{word.removeprefix(HERE)}" if word.startswith(HERE) else word


def tools_of(folder: Path, settings: Path) -> str:
    """What stands with the tools that a skill brings: what was said of them in that folder of settings, or why they
    cannot be had; empty for one that brings none."""
    if not (folder / FILE_NAME).exists():
        return ""
    try:
        return ServingSkill.of(folder).leave(load_mcp_servers(settings)) or ""
    except ConfigError as error:
        return str(error)
