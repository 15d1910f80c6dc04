"""Requests to the gatekeeper, before a call is made that may do more than read."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from local.bus.bus import Bus
from local.bus.envelope import Trace
from local.bus.message import MAIN_RESPONDENT
from local.bus.messages import ParticipantStatus
from local.bus.vocabulary import NON_INTERACTIVE
from local.core.errors import ToolError
from local.generator.steps import TurnInput
from local.hooks.messages import HookSettings
from local.permissions.messages import ApprovalRequest, GrantRequest, GrantResult
from local.runtime.participant import Publications
from local.runtime.runner import Presence

GATEKEEPER = "gatekeeper"
PRESENCE_SECONDS = 10.0  # one that was killed is back within that, on a busy machine too
SOON_SECONDS = 2.0  # for a question that need not be asked
ANSWER_SECONDS = 30.0  # one that hangs is replaced, or thaws, within that; also after a question has expired


class PermissionClient:
    """A respondent's requests to the gatekeeper; each waits for as long as a person is asked. `hooks` are the owner's
    hooks for turns; `denied` the tools that are never called, until the gatekeeper publishes them.
    """

    publishes: ClassVar[Publications] = (GrantRequest,)

    def __init__(self, hooks: Sequence[HookSettings] = (), denied: frozenset[str] = frozenset()) -> None:
        self.hooks = hooks
        self._presence = Presence(GATEKEEPER)
        self._mode = ""  # of the gatekeeper's settings
        self._denied = denied
        self._open: dict[str, Callable[[ApprovalRequest], object]] = {}  # the open requests, by call_id

    def status(self, status: ParticipantStatus) -> None:
        """A participant lives or leaves."""
        if self._presence.update(status):
            self._mode = status.details.get("mode", self._mode)
            self._denied = frozenset(filter(None, status.details.get("denied", "").split(", ")))

    def denies(self, tool: str) -> bool:
        """Whether a tool is on the owner's list of denied tools, which may contain tools that only read."""
        return tool in self._denied

    def settings_mode(self) -> str:
        """The mode of queries that name none; empty where no gatekeeper lives."""
        return self._mode if self._presence.lives else ""

    def may_ask(self, question: TurnInput) -> bool:
        """Whether the model may ask its user a question: only the main respondent's may, while a person is present;
        agents may not.
        """
        mode = question.options.mode if question.options else None
        is_there = self._presence.lives and (mode or self._mode) != NON_INTERACTIVE
        return is_there and question.respondent_id == MAIN_RESPONDENT and question.task is None

    async def may_ask_soon(self, question: TurnInput) -> bool:
        """Whether `may_ask` holds, or will a moment after a start, when the gatekeeper's status has not arrived yet."""
        return await self._presence.lives_within(SOON_SECONDS) and self.may_ask(question)

    def asked(self, question: ApprovalRequest) -> None:
        """Note that a person was asked about a call."""
        if (heard := self._open.get(question.call_id)) is not None:
            heard(question)

    async def request(
        self, bus: Bus, request: GrantRequest, trace: Trace, on_asked: Callable[[], object] = lambda: None
    ) -> GrantResult:
        """Return the decision about a call; `on_asked` is called when a person is asked. Raises `ToolError`
        (unavailable) if there is no gatekeeper.
        """
        if not await self._presence.lives_within(PRESENCE_SECONDS):
            raise _nobody(request)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(ANSWER_SECONDS) as limit:

                def heard(question: ApprovalRequest) -> None:
                    if question.respondent_id == request.respondent_id:
                        limit.reschedule(loop.time() + max(0.0, question.expires_at - time.time()) + ANSWER_SECONDS)
                        on_asked()

                self._open[request.call_id] = heard
                return await bus.request(request, GrantResult, math.inf, trace)
        except TimeoutError:
            raise _nobody(request) from None
        finally:
            self._open.pop(request.call_id, None)


def _nobody(request: GrantRequest) -> ToolError:
    text = f"{request.tool} was not run: it needs approval, and no gatekeeper runs that could give it"
    return ToolError(text, kind="unavailable")
