"""The skills of which a change was proposed, for those who decide of it."""

from __future__ import annotations

from pathlib import Path

from local.instructions.versioned_text import VersionedText
from local.services.skills.skill_proposal_book import SkillProposalBook


def skill_text(settings: Path, data_dir: Path, name: str) -> VersionedText:
    """SKILL.md of one skill. Raises `ConfigError`."""
    return SkillProposalBook(settings, data_dir).text(name)


def skill_texts(settings: Path, data_dir: Path) -> list[VersionedText]:
    """SKILL.md of each skill, by name. Raises `ConfigError`."""
    skills = SkillProposalBook(settings, data_dir)
    return [skills.text(name) for name in skills.names()]
