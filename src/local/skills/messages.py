"""What skills there are: published when it changes, and answered on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from local.bus.message import Data, Delivery, ErrorInfo, Message

READ_SKILL = "read_skill"  # the tool that the model reads them with


class SkillRecord(Data):
    """One skill: `ready`, or why not: `broken`, `incomplete` without the programs in `missing`, `unapproved` as it is
    now, or `hidden` by one of its name in an earlier place. `place` is where it lies: settings, extra or workspace;
    `tools`, for a door, what stands with those that it brings: approved, not approved, changed since, or why not."""

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
    """A skill as somebody would like it to be: `instructions` is the Markdown after the settings."""

    name: str
    description: str
    instructions: str


class SkillRequest(Message):
    """A request about skills: a respondent asks for those that are `ready`, a frontend for the `list` of all or to
    `show` one with its text. The dreamer proposes (`propose`, `by`) new `instructions` for one that is ready, or a new
    skill with a `description`; nothing changes before the owner has approved that."""

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
    """The answer of the participant that holds the skills. `places` are the folders in which they may be, the user's
    own first; `text` is that of the one that was to be shown, `files` what it has beside it; `proposed` says whether a
    proposal waits for the owner now."""

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
    """A skill was added, removed or changed: the names of those that are ready, and of the others. It does not say what
    they are for: a prompt is made of answers alone (`skills.request.ready`)."""

    subject = "skills.changed"
    delivery = Delivery.RECORDED
    ready: tuple[str, ...]
    others: tuple[str, ...] = ()
