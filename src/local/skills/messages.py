"""The messages about skills: published when skills change, and sent on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from local.bus.message import Data, Delivery, ErrorInfo, Message

READ_SKILL = "read_skill"  # the tool that the model reads them with


class SkillRecord(Data):
    """One skill with its status: `ready`, `broken`, `incomplete` without the programs in `missing`, `unapproved` in
    its present version, or `hidden` by a skill of the same name in an earlier place. `place` is where it is stored:
    settings, extra or workspace; `tools`, for a frontend, is the state of the tools that it brings: approved, not
    approved, changed since, or a problem.
    """

    name: str
    status: Literal["ready", "broken", "incomplete", "unapproved", "hidden"]
    place: Literal["settings", "extra", "workspace"]
    folder: str
    description: str = ""
    error: str = ""
    missing: tuple[str, ...] = ()
    compatibility: str = ""
    license: str = ""
    tools: str = ""


@dataclass(frozen=True, slots=True)
class SkillDraft:
    """A proposed text of a skill: `instructions` is the Markdown after the settings."""

    name: str
    description: str
    instructions: str


class SkillRequest(Message):
    """A request about skills: a respondent asks for the `ready` ones, a frontend for the `list` of all or to `show`
    one with its text. The dreamer proposes (`propose`, `by`) new `instructions` for a usable skill, or a new skill
    with a `description`; nothing changes before the owner has approved it.
    """

    subject = "skills.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "files"
    verb: Literal["ready", "list", "show", "propose"]
    name: str = ""
    description: str = ""
    instructions: str = ""
    by: str = ""


class SkillResult(Message):
    """The answer to a `SkillRequest`. `places` are the folders that are searched for skills, the user's own first;
    `text` is that of the requested skill, `files` its other files; `proposed` says whether a proposal waits for the
    owner now.
    """

    subject = "skills.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    skills: tuple[SkillRecord, ...] = ()
    places: tuple[str, ...] = ()
    text: str = ""
    files: tuple[str, ...] = ()
    proposed: bool = False
    error: ErrorInfo | None = None


class SkillsChanged(Message):
    """Published when a skill was added, removed or changed: the names of the usable skills, and of the others.
    Descriptions are not included, because a prompt is built only from answers to requests (`skills.request.ready`).
    """

    subject = "skills.changed"
    delivery = Delivery.RECORDED
    ready: tuple[str, ...]
    others: tuple[str, ...] = ()
