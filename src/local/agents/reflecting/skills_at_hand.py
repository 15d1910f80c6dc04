"""The skills that are ready, as far as they can be read whole."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local.bus.bus import Bus
from local.config_front_matter import split_front_matter
from local.errors import LocalError
from local.protocol.envelope import Trace, new_id
from local.protocol.skill_messages import SkillRequest, SkillResult
from local.services.skills.skill import FILE_NAME
from local.services.skills.skill_draft import SkillDraft

log = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0
MOST_CHARS = 4_000  # of one that is read
ROOM = 12_000  # for all of them, in characters


@dataclass(frozen=True, slots=True)
class SkillsAtHand:
    """`drafts` are those that were read, `folders` says where they lie, and `others` are the names of the rest."""

    drafts: tuple[SkillDraft, ...] = ()
    folders: Mapping[str, Path] = field(default_factory=dict)
    others: tuple[str, ...] = ()


async def skills_at_hand(bus: Bus) -> SkillsAtHand | None:
    """The skills that are ready; None if nobody says."""
    try:
        return await _read(bus)
    except LocalError as error:
        log.warning("which skills there are is not known now: %s", error)
        return None


async def _read(bus: Bus) -> SkillsAtHand | None:
    found = await bus.request(SkillRequest(verb="ready"), SkillResult, ANSWER_SECONDS, Trace(new_id()))
    if found.error is not None:
        return None
    drafts, folders, room = list[SkillDraft](), dict[str, Path](), ROOM
    for skill in found.skills:
        shown = await bus.request(
            SkillRequest(verb="show", name=skill.name), SkillResult, ANSWER_SECONDS, Trace(new_id())
        )
        if shown.error is None and len(shown.text) <= min(MOST_CHARS, room):
            room -= len(shown.text)
            body = split_front_matter(Path(FILE_NAME), shown.text).body
            drafts.append(SkillDraft(skill.name, skill.description, body))
            folders[skill.name] = Path(shown.skills[0].folder)
    return SkillsAtHand(tuple(drafts), folders, tuple(each.name for each in found.skills if each.name not in folders))
