"""What a call has to pass before it is made that may do more than read: the gatekeeper, and whoever that asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar

from local.bus.bus import Bus
from local.bus.envelope import Trace
from local.bus.message import MAIN_RESPONDENT
from local.bus.messages import ParticipantStatus
from local.bus.vocabulary import NON_INTERACTIVE
from local.core.errors import RequestTimeout, ToolError
from local.generator.steps import TurnInput
from local.hooks.settings import HookSettings
from local.permissions.messages import ApprovalDecision, GrantRequest, GrantResult
from local.runtime.participant import Publications
from local.runtime.runner import Presence

GATEKEEPER = "gatekeeper"
PRESENCE_SECONDS = 10.0  # one that was killed is back within that, on a busy machine too
ANSWER_SECONDS = 30.0  # one that hangs is replaced, or thaws, within that
LOOK_SECONDS = 15.0  # a decision that was not heard is found within that
GRACE_SECONDS = 30.0  # for a gatekeeper that was away when a question ran out


class PermissionClient:
    """Asks for leave over a bus, and waits for as long as a person is asked. `hooks` are what turns have to pass, too;
    `denied` the tools that are never called, until the gatekeeper says which."""

    publishes: ClassVar[Publications] = (GrantRequest,)

    def __init__(
        self,
        bus: Callable[[], Bus],
        hooks: Sequence[HookSettings] = (),
        denied: frozenset[str] = frozenset(),
    ) -> None:
        self._bus, self.hooks = bus, hooks
        self._presence = Presence(GATEKEEPER)
        self._mode = ""  # of the gatekeeper's settings
        self._denied = denied
        self._open: dict[str, asyncio.Event] = {}  # what waits for a decision, by call_id

    def status(self, status: ParticipantStatus) -> None:
        """A participant lives or leaves."""
        if self._presence.heard(status):
            self._mode = status.details.get("mode", self._mode)
            self._denied = frozenset(filter(None, status.details.get("denied", "").split(", ")))

    def denies(self, tool: str) -> bool:
        """Whether a tool is on the owner's list of what is never done, which one that only reads may be, too."""
        return tool in self._denied

    def settings_mode(self) -> str:
        """The mode of queries that name none; empty where no gatekeeper lives."""
        return self._mode if self._presence.lives else ""

    def may_ask(self, question: TurnInput) -> bool:
        """Whether the model may ask its user something: the main respondent's may, where somebody is there; but no
        agent, who has nothing to do with them."""
        mode = question.options.mode if question.options else None
        is_there = self._presence.lives and (mode or self._mode) != NON_INTERACTIVE
        return is_there and question.respondent_id == MAIN_RESPONDENT and question.task is None

    def decided(self, decision: ApprovalDecision) -> None:
        """Somebody has decided: it is looked up at once what that means."""
        if (waits := self._open.get(decision.call_id)) is not None:
            waits.set()

    async def pass_(self, request: GrantRequest, trace: Trace, on_asked: Callable[[], object]) -> GrantResult:
        """Leave, granted or denied; `on_asked` is called when a person is asked. Raises `ToolError` (unavailable)
        where nobody can say."""
        if not await self._presence.lives_within(PRESENCE_SECONDS):
            raise _nobody(request)
        decided = self._open.setdefault(request.call_id, asyncio.Event())
        try:
            result = await self._ask(request, trace)
            if result is None:
                raise _nobody(request)
            if result.verdict == "asked":
                on_asked()
                result = await self._outcome(request, result, trace, decided)
            return result
        finally:
            self._open.pop(request.call_id, None)

    async def _outcome(
        self, request: GrantRequest, asked: GrantResult, trace: Trace, decided: asyncio.Event
    ) -> GrantResult:
        until = (asked.expires_at or time.time()) + GRACE_SECONDS
        while time.time() < until:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await decided.wait()
            decided.clear()
            result = await self._ask(request, trace)
            if result is not None and result.verdict != "asked":
                return result
        raise _nobody(request)

    async def _ask(self, request: GrantRequest, trace: Trace) -> GrantResult | None:
        """None while the gatekeeper is away."""
        try:
            return await self._bus().request(request, GrantResult, ANSWER_SECONDS, trace)
        except RequestTimeout:
            return None


def _nobody(request: GrantRequest) -> ToolError:
    text = f"{request.tool} was not run: it needs leave, and no gatekeeper runs that could give it"
    return ToolError(text, kind="unavailable")
