"""What files of the workspace were changed, asked by doors, and undone."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from local.bus.message import Data, Delivery, ErrorInfo, Message

ChangeVerb = Literal["list", "show", "undo"]


class ChangedFile(Data):
    """One file that one call of a tool has changed: made, written, edited or deleted. `undone` says that this was taken
    back; `diff` is in the unified form, in results of show and undo, and empty for what is no text."""

    path: str
    what: Literal["made", "changed", "deleted"]
    tool: str
    call_id: str
    query_id: str
    session_id: str
    at: float  # seconds since 1970
    undone: bool = False
    diff: str = ""


class ChangeRequest(Message):
    """A frontend that lists the changes of files, shows them with diffs, or undoes them: of a call, of a query, or
    between two times. Not on record, because what it asks for may be deleted."""

    subject = "change.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "files"
    verb: ChangeVerb
    call_id: str | None = None
    query_id: str | None = None
    since: float | None = None  # seconds since 1970
    until: float | None = None
    limit: int = Field(100, ge=1, le=1000)


class ChangeResult(Message):
    """`files`, to that: the changes, the latest first; of undo those that were undone now."""

    subject = "change.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    workspace: str = ""
    changes: tuple[ChangedFile, ...] = ()
    error: ErrorInfo | None = None


class EffectUndone(Message):
    """`files`, when a user has taken changes back: which calls of tools, and the files."""

    subject = "effect.undone"
    call_ids: tuple[str, ...]
    paths: tuple[str, ...]
