"""What users change about a session: its title, its pin, and where they go on from an earlier place of it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from local.bus.bus import Bus
from local.protocol.envelope import Envelope, Trace, new_id
from local.protocol.messages import SessionBranched, SessionChanged
from local.services.session_branch import BranchPoint, NewBranch
from local.services.session_labels import Labels
from local.services.session_record import SessionRecord

SECONDS = 10.0  # for the journal, as a query has


class SessionChanges:
    """Puts a change on record, then into the store: of what was cut off in between the journal tells again."""

    publishes = (SessionChanged, SessionBranched)

    def __init__(self, bus: Bus, sessions: SessionRecord) -> None:
        self._bus, self._sessions = bus, sessions

    async def change(self, session_id: str, labels: Mapping[str, str | bool | None]) -> None:
        """Set `title` or `pinned`, or both. Raises `NotOnRecord`, `NotConfirmed`, `StoreFailed`."""
        head, known = await self._sessions.head(session_id), await self._sessions.labels(session_id)
        changed = SessionChanged.model_validate(
            {"title": known.title, "pinned": known.pinned, **labels, "session_id": session_id,
             "changed_at": max(time.time(), known.changed_at)}
        )  # fmt: skip
        await self._bus.publish(changed, Trace(new_id(), None, session_id, head.user_id), seconds=SECONDS)
        await self.changed(changed)

    async def branch(self, session_id: str, before: str, branch_id: str) -> BranchPoint:
        """Have a session `branch_id` begin with the turns before a query; returns where it is left. The same again is
        the same branch. Raises as `change`, `TurnStillOpen` and `SessionExists`."""
        point = await self._sessions.branch_point(session_id, before)
        if await self._sessions.require_new(branch_id, point):
            branched = SessionBranched(
                session_id=branch_id, branched_from=point.session_id, before=point.before, incognito=point.incognito,
                branched_at=time.time(),
            )  # fmt: skip
            await self._bus.publish(branched, Trace(new_id(), None, branch_id, point.user_id), seconds=SECONDS)
            await self._sessions.branch(new_branch(branched, point.user_id))
        return point

    async def changed(self, changed: SessionChanged) -> None:
        """Store what was said; an older word changes nothing."""
        await self._sessions.keep_labels(changed.session_id, labels_in(changed))

    async def branched(self, branched: SessionBranched, envelope: Envelope) -> None:
        """Make the branch that was told of; nothing if it is there."""
        await self._sessions.branch(new_branch(branched, envelope.user_id))


def labels_in(changed: SessionChanged) -> Labels:
    """Labels as the record keeps them."""
    return Labels(changed.title, changed.pinned, changed.changed_at)


def new_branch(branched: SessionBranched, user_id: str | None) -> NewBranch:
    """A branch as the record makes it."""
    point = BranchPoint(branched.branched_from, branched.before, user_id, branched.incognito)
    return NewBranch(branched.session_id, point, branched.branched_at)
