"""The HTTP API as an ASGI application."""

from __future__ import annotations

import importlib
import socket
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from pydantic import Field
from starlette.responses import Response
from starlette.types import ASGIApp

from local.api.budgets import Accounts, BudgetsConfig, DayBudgets
from local.api.bus_stream import BusStreams
from local.api.cells import load_cells
from local.api.clients import BusRequests, ClientTools, SystemControl
from local.api.context import ApiContext
from local.api.guests import GuestConfig, Guests
from local.api.http import JsonResponse, handle_errors
from local.api.page import PageFolder
from local.api.participants import MODEL_OWNER, ParticipantTable
from local.api.queries import QueryFinder
from local.api.routes import add_routes
from local.api.security import (
    MEGABYTE,
    Access,
    GuardMiddleware,
    GuardPolicy,
    Principals,
    enforce,
    hosts_of,
    open_to,
    open_to_anybody,
    proxied_hosts_of,
)
from local.api.server import require_token, serving
from local.api.sign_ins import OneTimeCodes, SignIns
from local.api.stream import BrowserStreams
from local.bus.blobs import BlobStore
from local.bus.envelope import Envelope
from local.bus.message import Message
from local.bus.messages import ParticipantStatus
from local.core.attachments import Attachments
from local.core.capability import capabilities
from local.core.config import Settings
from local.core.data_dir import owner_token
from local.core.errors import ConfigError
from local.core.profiles import ProfileRegistry
from local.core.users import Users
from local.core.workspace import WORKSPACE
from local.queries.asker import TurnFigures
from local.queries.session import LoCALSession
from local.runtime.participant import Kind, Participant, Resources, on

# Whatever the environment says: no part of a query is sent to a collector.
_NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}


def create_app(context: ApiContext, policy: GuardPolicy, principals: Principals) -> ASGIApp:
    """Every route, behind the guards, for one API. Raises `Undeclared`."""
    app = routed()
    return GuardMiddleware(context.serving(app), policy, principals, open_to_anybody(app.routes), context.cells)


@cache
def routed() -> FastAPI:
    """Return every route. They are made once in a process, which takes FastAPI 0.15 s: in the template, before the
    API's process is forked from it. Raises `Undeclared` for one that does not declare its access.
    """
    app = FastAPI(
        title="LoCAL2", version=installed_version(), openapi_url=None, redirect_slashes=False, telemetry=_NO_TELEMETRY
    )
    handle_errors(app)
    add_routes(app.router)
    for each in capabilities().values():
        for target in each.routes:
            module, _, name = target.partition(":")
            getattr(importlib.import_module(module), name)(app.router)

    @app.get("/openapi.json", include_in_schema=False)
    @open_to(Access.USERS)
    async def description() -> Response:
        """All of it, for programs."""
        return JsonResponse(app.openapi())

    enforce(app.routes)
    return app


@cache
def installed_version() -> str:
    """The version of the package that runs; "unknown" where none is installed."""
    try:
        return version("local2-assistant")
    except PackageNotFoundError:
        return "unknown"


def requests_of_routes() -> Iterator[type[Message]]:
    """The messages that the capabilities declare as sent by their routes."""
    for each in capabilities().values():
        for target in each.requests:
            module, _, name = target.partition(":")
            yield getattr(importlib.import_module(module), name)


# The HTTP API as a participant.


class ApiConfig(Settings):
    """The settings in `api.yaml`; the comments there explain each key. `api_token` comes from LOCAL2_API_TOKEN."""

    trail_seconds: float = Field(120.0, ge=0)
    keep_alive_seconds: float = Field(15.0, gt=0)
    allowed_hosts: tuple[str, ...] = ()
    max_attachment_mb: int = Field(20, ge=1, le=512)
    max_wait_seconds: float | None = Field(5.0, gt=0)
    client_tools: tuple[str, ...] | None = ()
    clients_may_ask: bool = False
    budgets: BudgetsConfig = BudgetsConfig()
    users: GuestConfig = GuestConfig()
    openai_aliases: dict[str, str] = Field({})
    api_token: str | None = Field(None, min_length=1, repr=False)


class ApiParticipant(Participant):
    """The HTTP API as a participant: it asks questions for HTTP clients, and shows them the bus."""

    name = "api"
    kind = Kind.FRONTEND
    Config = ApiConfig
    publishes = (LoCALSession, SystemControl, ClientTools, *requests_of_routes())

    def __init__(
        self, config: ApiConfig, listener: socket.socket, data_dir: Path, backend: str, layers: Sequence[Path],
        workspace: Path | None = None, ollama_url: str = "",
    ) -> None:  # fmt: skip
        """`listener` is bound and listens; its owner keeps it, so that clients wait while this restarts. `layers` are
        the folders of settings.

        Raises `ConfigError` if others can reach it and there is no token.
        """
        super().__init__(config)
        self._settings, self._listener, self._backend = config, listener, backend
        self._data_dir, self._layers, self._ollama_url = data_dir, layers, ollama_url
        self._participants = ParticipantTable()
        self._session: LoCALSession
        self._streams: BrowserStreams
        address, port = listener.getsockname()[:2]
        require_token(address, config.api_token)
        self._attachments = Attachments(data_dir, config.max_attachment_mb * MEGABYTE)
        self._blobs = BlobStore(data_dir / "blobs")
        max_upload = self._attachments.max_bytes
        names = config.allowed_hosts
        self._policy = GuardPolicy(hosts_of(address, port, names), max_upload, proxied_hosts_of(names))
        self._profiles = ProfileRegistry(layers[-1] if layers else data_dir, workspace or data_dir / WORKSPACE)
        self._cells = load_cells(layers, data_dir)
        self._users = Users(data_dir)
        self._sign_ins = SignIns(data_dir, port, self._token_of)
        self._principals = Principals(
            self._owner_token, self._users, self._sign_ins, must_know=config.api_token is not None
        )

    @classmethod
    def build(cls, config: ApiConfig, resources: Resources) -> Self:
        """On the composition root's socket."""
        if resources.listener is None:
            raise ConfigError("the HTTP API has no socket to listen on; start it with the system, by --api")
        lent = resources
        return cls(
            config, resources.listener, lent.data_dir, lent.model_backend, lent.layers, lent.workspace_folder,
            lent.ollama_url,
        )  # fmt: skip

    @on(ParticipantStatus)
    async def notice(self, status: ParticipantStatus, envelope: Envelope) -> None:
        """Receive a participant's status."""
        now = time.monotonic()
        self._participants.update(status, now)
        self._streams.participants_changed()
        self._session.absence = self._participants.absence(now)
        if status.name == MODEL_OWNER:
            self._session.turns_told(TurnFigures.of(status.instance, status.counters))

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Serve HTTP; at the end every waiting client is informed."""
        bus_streams = BusStreams(self.bus, self._settings.keep_alive_seconds)
        async with LoCALSession(self.bus, max_wait_seconds=self._settings.max_wait_seconds) as session:
            self._session = session
            budgets, guests = self._settings.budgets, self._settings.users
            requests, accounts = BusRequests(self.bus, self._expects), Accounts(session, self._data_dir, self._layers)
            trail_seconds = self._settings.trail_seconds
            queries = QueryFinder(session, requests, self._participants, trail_seconds, time.monotonic)
            self._streams = BrowserStreams(self.bus, session, queries, self._participants, time.monotonic)
            await self.bus.ready()
            context = ApiContext(
                session=session,
                accounts=accounts,
                budgets=DayBudgets(budgets, session, accounts.prices, guest_tokens=guests.tokens_a_day),
                guests=Guests(guests, session, requests, self._attachments, self._layers, self._ollama_url),
                queries=queries,
                streams=self._streams,
                requests=requests,
                control=SystemControl(self.bus),
                client_tools=ClientTools(
                    self.bus, self._expects, self._settings.client_tools, asks=self._settings.clients_may_ask
                ),
                profiles=self._profiles,
                participants=self._participants,
                bus_streams=bus_streams,
                attachments=self._attachments,
                blobs=self._blobs,
                users=self._users,
                principals=self._principals,
                sign_ins=self._sign_ins,
                codes=OneTimeCodes(),
                instance=self.bus.instance,
                backend=self._backend,
                version=installed_version(),
                keep_alive_seconds=self._settings.keep_alive_seconds,
                clock=time.monotonic,
                openai_aliases=self._settings.openai_aliases,
                page=PageFolder(),
                layers=self._layers,
                data_dir=self._data_dir,
                cells=self._cells,
            )
            # browsers first: they continue with the next process, without an error
            before_stop = partial(_stop, self._streams, session, bus_streams, context)
            files_each = 1 if self._cells is None else 2  # a request that is passed on has another connection there
            app = create_app(context, self._policy, self._principals)
            try:
                async with (
                    self._streams.running(),
                    accounts.keeping(),
                    serving(app, self._listener, before_stop, session.too_late, files_each),
                ):
                    yield
            finally:
                context.stop()
                await context.close()
                if self._cells is not None:
                    await self._cells.close()

    def _owner_token(self) -> str | None:
        return self._settings.api_token or owner_token(self._data_dir)

    def _token_of(self, user: str | None) -> str | None:
        return self._owner_token() if user is None else self._users.hash_of(user)

    def _expects(self, name: str) -> bool:
        return self._participants.is_expected(name, time.monotonic())


def _stop(*streams: BrowserStreams | LoCALSession | BusStreams | ApiContext) -> None:
    for each in streams:
        each.stop()
