"""What routes say of a text with versions (the soul, a skill), and how they decide about a change that was proposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from local.api.http import RequestRefused
from local.core.versioned_text import TextProposals, TextVersion, VersionedText


class ProposalBody(BaseModel):
    """The body of a decision about a proposed change: approve it, with the `digest` of the proposal that was shown, or
    reject it."""

    model_config = ConfigDict(extra="forbid", strict=True)
    decision: Literal["approve", "reject"]
    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None


class RevertBody(BaseModel):
    """The body of a return to an earlier version."""

    model_config = ConfigDict(extra="forbid", strict=True)
    version: Annotated[int, Field(ge=1)]


def versions_of(text: VersionedText) -> dict[str, Any]:
    """The proposed change of a text, None if there is none, and its versions, latest first. Raises `ConfigError`."""
    waiting = TextProposals(text).waiting()
    text.text()  # so that the present text is among the versions
    versions: Sequence[TextVersion] = text.history.versions()
    proposal = waiting and {
        "proposed_at": waiting.proposed_at, "by": waiting.by, "diff": waiting.diff(), "digest": waiting.digest,
    }  # fmt: skip
    return {"proposal": proposal, "versions": [asdict(each) for each in reversed(versions)]}


def decide(text: VersionedText, body: ProposalBody) -> None:
    """Apply the proposed change of a text, or discard it. Raises `ConfigError`, and `RequestRefused` (changed) where
    another change is proposed than the one that was shown."""
    proposals = TextProposals(text)
    if body.decision == "reject":
        proposals.reject()
        return
    waiting = proposals.waiting()
    if waiting is not None and waiting.digest != body.digest:
        raise RequestRefused("changed", f"another change of {text.history.what} is proposed now; look at it first")
    proposals.approve(waiting)
