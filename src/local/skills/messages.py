"""What skills there are: told when it changes, and asked for by whoever needs to know it."""

from __future__ import annotations

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


class SkillRequest(Message):
    """Who needs to know the skills: a respondent those that are `ready`, a door all of the `list`, or to `show` one
    with its text."""

    subject = "skills.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "files"
    verb: Literal["ready", "list", "show"]
    name: str = ""


class SkillResult(Message):
    """Whoever holds the skills, to that. `places` are the folders in which they may lie, the user's own first; `text`
    is that of the one that was to be shown, `files` what it has beside it."""

    subject = "skills.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    skills: tuple[SkillRecord, ...] = ()
    places: tuple[str, ...] = ()
    text: str = ""
    files: tuple[str, ...] = ()
    error: ErrorInfo | None = None


class SkillsChanged(Message):
    """Whoever holds the skills, when one comes, goes or says something else: the names of those that are ready, and of
    the others. It does not say what they are for: a prompt is made of answers alone (`skills.request.ready`)."""

    subject = "skills.changed"
    delivery = Delivery.RECORDED
    ready: tuple[str, ...]
    others: tuple[str, ...] = ()
