"""The skills whose programs commands may run."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from local.errors import LocalError, SandboxRefused
from local.protocol.envelope import Trace, new_id
from local.protocol.skill_messages import SkillRequest, SkillResult
from local.runtime.participant import Participant
from local.services.sandbox.sandbox_view import SandboxView

log = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0


async def folders_of_skills(asker: Participant, view: SandboxView) -> SandboxView:
    """A view that shows the skills which are ready now; the same one where nobody says. Those of the workspace are seen
    where they are: what a command can move away while another one starts is shown nowhere else."""
    try:
        result = await asker.bus.request(SkillRequest(verb="ready"), SkillResult, ANSWER_SECONDS, Trace(new_id()))
    except LocalError as error:
        log.debug("which skills commands may see is not known: %s", error)
        return view
    shown = list[Path]()
    for skill in result.skills:
        folder = Path(skill.folder)
        try:
            replace(view, skills=(folder,))
        except SandboxRefused as refused:
            log.warning("the skill %s is not shown to commands: %s", skill.name, refused)
            continue
        if skill.place != "workspace":
            shown.append(folder)
    return replace(view, skills=tuple(shown))
