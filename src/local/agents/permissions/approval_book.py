"""What is asked, decided and remembered: the latest of it in memory, all of it on record first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from local.agents.permissions.permission_policy import JudgedCall
from local.errors import BadRequest
from local.protocol.grant import arguments_digest
from local.protocol.permission_messages import ApprovalRequest, Decision, RememberedLeave
from local.protocol.plan_messages import PlanMode
from local.protocol.safety import Category, Safety
from local.protocol.turn_tools import PROPOSE_PLAN
from local.services.approval_store import ApprovalStore, StoredApproval, StoredLeave

OF_FILES: frozenset[Category] = frozenset({"read", "write"})


class NotWaiting(BadRequest):
    """What was to be decided is not open: somebody else was first, or nobody asks for it."""

    kind = "conflict"


def key_of(call_id: str, respondent_id: str) -> str:
    """The key by which a call is known; two respondents count theirs alike."""
    return f"{respondent_id} {call_id}"


def scope_of(args: Mapping[str, Any], safety: Safety, category: Category) -> dict[str, Any]:
    """What "in this conversation" is about: these arguments, or of a tool for files that file."""
    path = args.get("path")
    if safety == "L1" and category in OF_FILES and isinstance(path, str):
        return {"path": path}
    return dict(args)


class ApprovalBook:
    """What was asked and decided; one call at a time writes. Every coroutine raises as the store does."""

    def __init__(self, store: ApprovalStore) -> None:
        self._store, self._lock = store, asyncio.Lock()
        self._known: dict[str, StoredApproval] = {}
        self._waiting: dict[str, ApprovalRequest] = {}
        self._remembered: dict[tuple[str, str, str], StoredLeave] = {}

    async def load(self) -> None:
        """Read what is on record."""
        for approval in await self._store.all():
            self._known[approval.key] = replace(approval, body=None)
            if approval.decision is None and approval.body is not None:
                self._waiting[approval.key] = ApprovalRequest.decode(approval.body.encode())
        for leave in await self._store.remembered():
            self._remembered[leave.session_id, leave.tool, leave.digest] = leave

    def get(self, key: str) -> StoredApproval | None:
        """What was asked about a call, if anything."""
        return self._known.get(key)

    def waiting(self, user_id: str | None = None) -> Iterator[tuple[StoredApproval, ApprovalRequest]]:
        """What waits for a decision, the oldest first; with `user_id` only what is that user's."""
        for key, request in self._waiting.items():
            if user_id is None or self._known[key].user_id == user_id:
                yield self._known[key], request

    def asking(self, call_id: str, user_id: str | None = None) -> tuple[StoredApproval, ApprovalRequest]:
        """The question about a call. Raises `NotWaiting` if none is open, or it is another user's."""
        for approval, request in self.waiting(user_id):
            if request.call_id == call_id:
                return approval, request
        raise NotWaiting(f"call {call_id} waits for no decision: it was decided, or nobody asks for it")

    def plan_of(self, query_id: str, respondent_id: str) -> StoredApproval | None:
        """The plan that a turn has proposed last, whatever has become of it: no earlier one counts beside it."""
        ours = key_of("", respondent_id)
        plans = (each for each in reversed(self._known.values()) if each.tool == PROPOSE_PLAN)
        return next((each for each in plans if each.query_id == query_id and each.key.startswith(ours)), None)

    def untold(self) -> list[StoredApproval]:
        """What is decided, and not yet known to be on the bus."""
        return [each for each in self._known.values() if each.decision is not None and not each.is_told]

    async def ask(self, request: ApprovalRequest, user_id: str | None) -> StoredApproval:
        """Note a question, unless it is asked already; returns what is on record of it."""
        key = key_of(request.call_id, request.respondent_id)
        async with self._lock:
            if (known := self._known.get(key)) is not None:
                return known
            approval = StoredApproval(
                key, request.query_id, request.session_id, user_id, request.tool, arguments_digest(request.args),
                request.encode().decode(), request.asked_at, request.expires_at,
            )  # fmt: skip
            await self._store.ask(approval)
            self._known[key] = approval = replace(approval, body=None)
            self._waiting[key] = request
            return approval

    async def decide(
        self, key: str, decision: Decision, by: str, answer: str | None, now: float, mode: PlanMode | None = None
    ) -> StoredApproval:
        """Note the first decision. Raises `NotWaiting` for any other."""
        async with self._lock:
            known, request = self._known.get(key), self._waiting.get(key)
            if known is None or request is None:
                was = "" if known is None else f": it was decided by {known.decided_by} ({known.decision})"
                raise NotWaiting(f"call {key.partition(' ')[2]} waits for no decision{was}")
            decided = replace(known, decision=decision, decided_by=by, answer=answer, decided_at=now, mode=mode)
            leave = await self._store.decide(decided, _leave_of(decided, request))
            if leave is not None:
                self._remembered[leave.session_id, leave.tool, leave.digest] = leave
            self._known[key] = decided
            del self._waiting[key]
            return decided

    async def told(self, key: str) -> None:
        """Everybody can know what was decided."""
        await self._store.told(key)
        if key in self._known:
            self._known[key] = replace(self._known[key], is_told=True)

    # What is remembered

    def allows(self, session_id: str, call: JudgedCall) -> bool:
        """Whether a call was allowed for the whole session. Leave for a file that was given before words of strangers
        came in does not hold afterwards: what is written there is another question then."""
        scope = scope_of(call.args, call.safety, call.category)
        leave = self._remembered.get((session_id, call.tool, arguments_digest(scope)))
        return leave is not None and (leave.is_tainted or not call.tainted or scope == dict(call.args))

    def remembered(self, user_id: str | None = None) -> list[RememberedLeave]:
        """All of it, the oldest first; with `user_id` what is that user's."""
        return [
            RememberedLeave(
                leave_id=leave.leave_id,
                session_id=leave.session_id,
                tool=leave.tool,
                args=json.loads(leave.scope),
                decided_at=leave.decided_at,
            )
            for leave in self._remembered.values()
            if user_id is None or leave.user_id == user_id
        ]

    async def take_back(self, leave_id: int, user_id: str | None = None) -> bool:
        """Remember that no more; False if it was not, or is another user's."""
        async with self._lock:
            for place, leave in self._remembered.items():
                if leave.leave_id == leave_id and user_id in (None, leave.user_id):
                    await self._store.take_back(leave_id)
                    del self._remembered[place]
                    return True
        return False

    async def forget_session(self, session_id: str) -> None:
        """Keep nothing of a session."""
        await self._forget("session_id", session_id)

    async def forget_query(self, query_id: str) -> None:
        """Keep nothing of a query."""
        await self._forget("query_id", query_id)

    async def _forget(self, column: str, value: str) -> None:
        async with self._lock:
            await self._store.forget(column, value)
            gone = {key for key, each in self._known.items() if getattr(each, column) == value}
            self._known = {key: each for key, each in self._known.items() if key not in gone}
            self._waiting = {key: each for key, each in self._waiting.items() if key not in gone}
            kept = {place: each for place, each in self._remembered.items() if getattr(each, column) != value}
            self._remembered = kept


def _leave_of(decided: StoredApproval, request: ApprovalRequest) -> StoredLeave | None:
    if decided.decision != "allow_session":
        return None
    scope = scope_of(request.args, request.level, request.category)
    return StoredLeave(
        0, decided.session_id, decided.user_id, decided.query_id, decided.tool, arguments_digest(scope),
        json.dumps(scope), request.tainted, decided.decided_at or 0.0,
    )  # fmt: skip
