"""Questions to people: each is on record before anybody hears of it, asked once, and decided once."""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar

from local import failpoints
from local.agents.permissions.approval_book import ApprovalBook, NotWaiting
from local.bus.bus import Bus
from local.errors import LocalError
from local.protocol.envelope import Trace
from local.protocol.messages import Message
from local.protocol.permission_messages import SILENCE, ApprovalDecision, ApprovalRequest, Decision
from local.protocol.plan_messages import PlanMode
from local.runtime.participant import Publications
from local.services.approval_store import StoredApproval
from local.services.sqlite_file import within_patience

PATIENCE_SECONDS = 10.0  # of a question for which there is no room on the disk

log = logging.getLogger(__name__)

_NAMESPACE = uuid.UUID("5b0a9a3e-6a53-4d6d-9b0a-1c52bb3c6c1f")


class Approvals:
    """What a gatekeeper asks people. `clock` gives seconds since 1970."""

    publishes: ClassVar[Publications] = (ApprovalRequest, ApprovalDecision)

    def __init__(self, bus: Bus, book: ApprovalBook, clock: Callable[[], float]) -> None:
        self._bus, self._book, self._clock = bus, book, clock
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Ask what an earlier process has asked, and tell what it has not told, while the block lasts."""
        for approval in self._book.untold():
            self._begin(self._tell(approval))
        for approval, request in self._book.waiting():
            self._put(approval, request)
        try:
            yield
        finally:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def ask(self, request: ApprovalRequest, user_id: str | None) -> StoredApproval:
        """Ask, unless it is asked already; returns what is on record of it. While nothing can be written it waits for a
        while, less than whoever wants leave does. Raises as the store does."""
        approval, _ = await within_patience(lambda: self._book.ask(request, user_id), PATIENCE_SECONDS)
        failpoints.reach("gatekeeper.asked")
        if approval.asked_at == request.asked_at:
            self._put(approval, request)
        return approval

    async def decide(
        self, key: str, decision: Decision, by: str, answer: str | None = None, mode: PlanMode | None = None
    ) -> StoredApproval:
        """Take a decision, and tell it. Raises `NotWaiting` for any but the first, and as the store does."""
        decided = await self._book.decide(key, decision, by, answer, self._clock(), mode)
        failpoints.reach("gatekeeper.decided")
        self._begin(self._tell(decided))
        return decided

    async def at_present(self, approval: StoredApproval) -> StoredApproval:
        """What has become of a question: denied, if its time has run out."""
        if approval.decision is None and approval.expires_at <= self._clock():
            with suppress(NotWaiting):
                return await self.decide(approval.key, "deny", SILENCE)
        return self._book.get(approval.key) or approval

    def _put(self, approval: StoredApproval, request: ApprovalRequest) -> None:
        """Let everybody hear the question, and deny it when its time has run out."""
        self._begin(self._publish(request, approval))
        self._begin(self._expire(approval))

    async def _expire(self, approval: StoredApproval) -> None:
        await asyncio.sleep(max(0.0, approval.expires_at - self._clock()))
        with suppress(NotWaiting):
            await within_patience(lambda: self.decide(approval.key, "deny", SILENCE), math.inf)

    async def _tell(self, decided: StoredApproval) -> None:
        respondent_id, _, call_id = decided.key.partition(" ")
        decision = ApprovalDecision.model_validate({
            "query_id": decided.query_id,
            "respondent_id": respondent_id,
            "call_id": call_id,
            "session_id": decided.session_id,
            "tool": decided.tool,
            "decision": decided.decision,
            "by": decided.decided_by,
            "answer": decided.answer,
            "mode": decided.mode,
            "decided_at": decided.decided_at,
        })  # fmt: skip
        await self._publish(decision, decided)
        await self._book.told(decided.key)

    async def _publish(self, message: Message, of: StoredApproval) -> None:
        """Under an id that is always the same, so that what is said again is said once."""
        trace = Trace(of.query_id, None, of.session_id, of.user_id)
        envelope_id = uuid.uuid5(_NAMESPACE, f"{of.key}\n{message.subject}").hex
        await self._bus.publish(message, trace, envelope_id=envelope_id, seconds=math.inf)

    def _begin(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(_logged(work), name="approval")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _logged(work: Coroutine[Any, Any, object]) -> None:
    try:
        await work
    except LocalError as error:
        log.error("left for the next start: %s", error)
