"""A skill as somebody would have it."""

from __future__ import annotations

from dataclasses import dataclass

from local.config_front_matter import FENCE
from local.services.skills.skill import MOST_DESCRIPTION, one_line, read_skill


@dataclass(frozen=True, slots=True)
class SkillDraft:
    """`instructions` is the Markdown after the settings."""

    name: str
    description: str
    instructions: str

    def text(self, before: str = "") -> str:
        """The whole of SKILL.md. Of one that there is `before` nothing but the instructions becomes another. Raises
        `ConfigError` for what would be no skill."""
        text = f"{_settings_of(before) or self._settings()}\n{self.instructions.strip()}"
        read_skill(self.name, text.encode())
        return text

    def _settings(self) -> str:
        said = one_line(self.description)[:MOST_DESCRIPTION].replace('"', "'").replace("\\", "/")
        return f'{FENCE}\nname: {self.name}\ndescription: "{said}"\n{FENCE}\n'


def _settings_of(text: str) -> str:
    """What stands before the instructions; empty where nothing does."""
    lines = text.splitlines()
    fences = [number for number, line in enumerate(lines) if line.rstrip() == FENCE]
    return "\n".join([*lines[: fences[1] + 1], ""]) if len(fences) > 1 else ""
