"""The context of every route: the parts of the API that received the request. The routes are made once for a
process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from starlette.types import ASGIApp, Receive, Scope, Send

from local.api.budgets import Accounts, DayBudgets
from local.api.bus_stream import BusStreams
from local.api.cells import Cells
from local.api.clients import BusRequests, ClientTools, SystemControl
from local.api.guests import Guests
from local.api.http import ID_PATTERN as ID_PATTERN
from local.api.http import Id as Id
from local.api.http import PathId as PathId
from local.api.http import RequestRefused
from local.api.page import PageFolder
from local.api.participants import ParticipantTable
from local.api.queries import QueryFinder
from local.api.security import Principal, Principals
from local.api.sign_ins import OneTimeCodes, SignIns
from local.api.stream import BrowserStreams
from local.bus.blobs import BlobStore
from local.bus.message import Message
from local.bus.messages import AnswerOptions
from local.bus.vocabulary import ELEVATED_MODES, NON_INTERACTIVE, Mode
from local.core.attachments import Attachments
from local.core.profiles import ProfileRegistry
from local.core.users import Users
from local.queries.session import LoCALSession

GATEKEEPER = "gatekeeper"
M = TypeVar("M", bound=Message)
P = TypeVar("P")


class LivePart:
    """A part of a capability's routes that has something to end when the API ends."""

    def stop(self) -> None:
        """End all waiting requests."""

    async def close(self) -> None:
        """Return when all of it has ended."""


@dataclass(frozen=True, slots=True)
class ApiContext:
    """The parts of one running API, which its routes use. `instance` is new at each start of the process; `backend`
    names the model server ("stand_in": none). `openai_aliases` are further names of
    models for clients of /v1. `layers` are the folders of settings, the user's last; `parts` are objects that the
    routes of capabilities keep here. `data_dir` is the data directory; `cells` are the others, None on one machine.
    """

    session: LoCALSession
    accounts: Accounts
    budgets: DayBudgets
    guests: Guests
    queries: QueryFinder
    streams: BrowserStreams
    requests: BusRequests
    client_tools: ClientTools
    control: SystemControl
    profiles: ProfileRegistry
    participants: ParticipantTable
    bus_streams: BusStreams
    attachments: Attachments
    blobs: BlobStore
    users: Users
    principals: Principals
    sign_ins: SignIns
    codes: OneTimeCodes
    instance: str
    backend: str
    version: str
    keep_alive_seconds: float
    clock: Callable[[], float]
    openai_aliases: Mapping[str, str]
    page: PageFolder
    layers: Sequence[Path]
    data_dir: Path
    cells: Cells | None = None
    parts: dict[type, Any] = field(default_factory=dict)

    def part(self, kind: type[P], make: Callable[[], P]) -> P:
        """Return an object that the routes of a capability keep for as long as this API runs; made at its first use."""
        if kind not in self.parts:
            self.parts[kind] = make()
        found: P = self.parts[kind]
        return found

    def stop(self) -> None:
        """Have every part that waits for something stop that."""
        for each in self.parts.values():
            if isinstance(each, LivePart):
                each.stop()

    async def close(self) -> None:
        """Wait for the end of every part that was stopped."""
        for each in self.parts.values():
            if isinstance(each, LivePart):
                await each.close()

    def still_knows(self, principal: Principal) -> bool:
        """Whether a caller would still be accepted: the user was not removed, the browser not signed out."""
        is_known = principal.user_id is None or self.users.knows(principal.user_id)
        return is_known and (principal.sign_in is None or self.sign_ins.holds(principal.sign_in))

    async def ask(
        self, participant: str, request: Message, reply: type[M], *, user_id: str | None = None, seconds: float = 10.0
    ) -> M:
        """The answer of a participant. Raises as `BusRequests.ask`."""
        return await self.requests.ask(participant, request, reply, user_id=user_id, seconds=seconds)

    async def require_may_ask(
        self,
        user_id: str | None,
        options: AnswerOptions | None,
        session_id: str | None = None,
        query_id: str | None = None,
    ) -> None:
        """Require that a user may ask a question with these options, whose model is checked if it names one. Raises
        `BudgetSpent`, as `DayBudgets.require`; `NoRoom`; and `RequestRefused` for a default model that is not for them,
        and for a user of another cell.
        """
        if self.cells is not None:
            self.cells.require_here(user_id)
        await self.budgets.require(user_id, session_id, query_id)
        await self.guests.require_room(user_id)
        if options is None or (options.model is None and (options.profile is None or options.profile.model is None)):
            await self.guests.require_default(user_id)

    def mode_of(self, wanted: Mode | None, caller: Principal, *, is_followed: bool) -> Mode | None:
        """Return the mode of a query: the requested one, else that of the settings; non-interactive for a query that
        nobody follows, because nobody could answer.

        Raises `RequestRefused` for an elevated one without the owner's token or without permission in the settings.
        """
        if wanted in ELEVATED_MODES:
            caller.require_owner()
            caller.require_token()
        if wanted == "bypassPermissions":
            gatekeeper = self.participants.details(GATEKEEPER, self.clock())
            if gatekeeper.get("may_bypass") != "yes":
                text = "mode: bypassPermissions is not for this system, unless gatekeeper.yaml has may_bypass: true"
                raise RequestRefused("forbidden", text, "mode")
        return wanted or (None if is_followed else NON_INTERACTIVE)

    def serving(self, app: ASGIApp) -> ASGIApp:
        """Return `app` with this context for its handlers."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            before = _asked.set(self)
            try:
                await app(scope, receive, send)
            finally:
                _asked.reset(before)

        return answer


_asked: ContextVar[ApiContext] = ContextVar("asked")  # by the request that this task answers


def api() -> ApiContext:
    """Return, inside a handler, the parts of the API that received the request. Raises `LookupError` outside of a
    request.
    """
    return _asked.get()
