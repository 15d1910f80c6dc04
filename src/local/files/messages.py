"""The messages about changes of workspace files: listing, and undoing."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from local.bus.message import Data, Delivery, ErrorInfo, Message

ChangeVerb = Literal["list", "show", "undo"]


class ChangedFile(Data):
    """One change of a file by one call of a tool: made, written, edited or deleted. `undone` says that it was undone;
    `diff` is in the unified form, in results of show and undo, and empty for binary content.
    """

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
    """A frontend's request to list the changes of files, show them with diffs, or undo them: of a call, of a query, or
    between two times. Not recorded, because its subject may be deleted.
    """

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
    """The answer to that: the changes, the latest first; of undo those that were undone now."""

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
