"""The composition root: the processes of the system, their order, and its end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from local.api.server import listen, require_free, require_token
from local.bus.bus import Bus
from local.bus.elsewhere import HOST_SAYS, RemoteClient, speaking_for
from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo, Message
from local.bus.messages import CONTROL_MESSAGES_GONE as GONE
from local.bus.messages import (
    PARTICIPANT,
    SUPERVISOR,
    ChildStatus,
    ParticipantRequest,
    ParticipantResult,
    ParticipantStatus,
)
from local.bus.proxy import PROXY
from local.bus.security import Declaration, Declarations, with_keys
from local.cli.client import CONNECT_SECONDS, SystemClient
from local.cli.main import Flags
from local.core import failpoints
from local.core.bus_address import BusAddress
from local.core.capability import participants
from local.core.config import OWN_NAMES, TOOL_ELSEWHERE, ParticipantEntry, SystemConfig, layers_for, load
from local.core.data_dir import SENDERS, DataDirLock, RunDirectory, RunInfo, owner_token
from local.core.environment import data_dir, environment
from local.core.errors import BusNotReady, DeclarationNotWritten, LocalError, StartFailed, StartInterrupted
from local.core.files import until_next_tick
from local.core.routing import ModelsConfig
from local.core.workspace import prepared_workspace
from local.generator.config import GeneratorConfig
from local.journal.config import JournalConfig, missing_client
from local.models.servers import ServerSpec
from local.models.settings import load_models
from local.run.backend import Backend, choose_backend, with_backend
from local.run.data_dir_watch import DataDirWatch
from local.run.overrides import GENERATOR, configured, overrides_for
from local.run.participant import ParticipantSpec, bus_of
from local.run.trial import fetch_weights_aside, lacks_weights
from local.run.upkeep import missing
from local.run.window import WindowState, show_window, window_state
from local.runtime.child import ChildSpec
from local.runtime.logs import logged_to_file
from local.runtime.participant import RecentReplies, Resources, what_everybody_says
from local.runtime.runner import BEAT_SECONDS
from local.runtime.supervisor import ChildPhase, ChildState, Supervisor
from local.runtime.warm_up import PRELOAD
from local.stand_in.server import StandInSettings
from local.tools.tool import tool_elsewhere

if TYPE_CHECKING:
    from local.run.cell import Cell

# Requests over the bus to start, stop and restart participants.

log = logging.getLogger(__name__)

API = "api"
MEMORY = "memory"
NOT_IN_SETTINGS = "it is no longer in the settings"
NEEDED = frozenset({"proxy", "journal", API})  # without these a start could not be requested


class StopRefused(LocalError):
    """A participant that may be restarted but not left stopped."""

    kind = "conflict"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} cannot be stopped, because it could not be started again; restart it, or stop LoCAL2")


class ParticipantReloader:
    """The reader of the current settings for participants that users have added.

    A participant that is new, or that a user has added, starts with the current settings. LoCAL2's own participants
    restart with the settings of the system's start. `configured` reads the settings, `spec_in` makes the `ChildSpec`
    of an entry.
    """

    def __init__(
        self, configured: Callable[[], SystemConfig], spec_in: Callable[[SystemConfig, ParticipantEntry], ChildSpec]
    ) -> None:
        self._configured, self._spec_in = configured, spec_in

    def may_change(self, name: str, child: ChildState | None) -> bool:
        """Whether the current settings determine how `name` starts; `child` is its present child, if there is one."""
        return child is None or (child.kind == PARTICIPANT and name not in {*OWN_NAMES, *participants()})

    def spec(self, name: str) -> ChildSpec | None:
        """Return the spec that starts `name`; None if it is not in the settings. Raises `ConfigError`."""
        system = self._configured()
        entry = next((entry for entry in system.participants if entry.name == name), None)
        return None if entry is None else self._spec_in(system, entry)


class ChildControl:
    """The handler of requests to start, stop and restart participants. It does one thing at a time with each child, and
    each request once, however often it is sent."""

    publishes = (ParticipantResult,)

    def __init__(
        self, bus: Bus, supervisor: Supervisor, newcomers: ParticipantReloader, *, announce: Callable[[], object]
    ) -> None:
        """Subscribe; make the bus ready afterwards. `announce` publishes the state of the children, so that a
        requester sees the effect of its request after the answer.
        """
        self._bus, self._supervisor, self._newcomers = bus, supervisor, newcomers
        self._announce = announce
        self._replies = RecentReplies()
        self._one_at_a_time = WeakValueDictionary[str, asyncio.Lock]()  # by the child's name
        self._tasks: set[asyncio.Task[None]] = set()
        bus.subscribe(ParticipantRequest.subject, self._asked, repeats=True)

    def close(self) -> None:
        """Start no further request, and leave running ones."""
        for task in self._tasks:
            task.cancel()

    def _asked(self, envelope: Envelope) -> None:
        request = ParticipantRequest.decode(envelope.payload)
        if not self._replies.begin(envelope.id):
            if reply := self._replies.answer(envelope.id):
                self._begin(self._reply(reply, envelope))
            return
        self._begin(self._do(request, envelope))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name="child control")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _do(self, request: ParticipantRequest, envelope: Envelope) -> None:
        log.warning("%s asks for the %s of %s", envelope.sender, request.verb, request.name)
        async with self._one_at_a_time.setdefault(request.name, asyncio.Lock()):
            is_its_own_end = request.name == API and request.verb == "restart"
            if is_its_own_end:
                await self._reply(ParticipantResult(verb=request.verb, child=self._child(request.name)), envelope)
            try:
                await self._change(request)
                reply = ParticipantResult(verb=request.verb, child=self._child(request.name))
            except LocalError as error:
                info = ErrorInfo.of(error)
                reply = ParticipantResult(verb=request.verb, error=info)
            self._replies.settle(envelope.id, reply)
            self._announce()
            if not is_its_own_end:
                await self._reply(reply, envelope)

    async def _change(self, request: ParticipantRequest) -> None:
        name = request.name
        match request.verb:
            case "stop" if name in NEEDED:
                raise StopRefused(name)
            case "stop":
                await self._supervisor.stop(name)
            case "restart" if self._renew(name):
                await self._supervisor.restart(name)
            case "start" if self._runs(name):
                pass
            case "start" if self._renew(name):
                await self._supervisor.start(name)
            case _:
                await self._supervisor.remove(name)

    def _renew(self, name: str) -> bool:
        """Update a child to the current settings; returns False if they do not contain it. Raises `ConfigError`, with
        nothing changed.
        """
        if not self._newcomers.may_change(name, self._find(name)):
            return True
        if (spec := self._newcomers.spec(name)) is None:
            return False
        self._supervisor.add(spec)
        return True

    async def _reply(self, reply: Message, envelope: Envelope) -> None:
        try:
            await self._bus.publish(reply, envelope.trace(), in_reply_to=envelope.id)
        except LocalError as error:  # the request is repeated, or no longer waits
            log.warning("the answer to %s could not be sent: %s", envelope.sender, error)

    def _runs(self, name: str) -> bool:
        child = self._find(name)
        return child is not None and child.state in (ChildPhase.READY, ChildPhase.STARTING)

    def _child(self, name: str) -> ChildStatus:
        child = self._find(name)
        if child is None:
            return ChildStatus(name=name, kind=PARTICIPANT, state=GONE, detail=NOT_IN_SETTINGS)
        return ChildStatus(
            name=child.name, kind=child.kind, state=child.state, pid=child.pid, restarts=child.restarts,
            detail=child.detail,
        )  # fmt: skip

    def _find(self, name: str) -> ChildState | None:
        return next((child for child in self._supervisor.children if child.name == name), None)


# The supervisor on the bus: the state of its children, published at every change and as often as participants publish
# theirs.


class Announcer:
    """The publisher of the supervisor's status. Call `changed` from the supervisor's `on_change`."""

    def __init__(self, bus: Bus, notice: str = "") -> None:
        """`notice` is something that users should know of this start."""
        self._bus = bus
        self._wake = asyncio.Event()
        self._details = {"notice": notice} if notice else {}

    def changed(self, child: ChildState) -> None:
        """A child's state has changed."""
        self._wake.set()

    def set_problem(self, problem: str) -> None:
        """Set the problem of the whole system; empty when it is solved."""
        self._details.pop("problem", None)
        self._details |= {"problem": problem} if problem else {}
        self._wake.set()

    async def run(self, supervisor: Supervisor, newcomers: ParticipantReloader) -> None:
        """Publish changes until cancelled. The supervisor works without a bus, too: nothing is published until the
        proxy runs.
        """
        control = ChildControl(self._bus, supervisor, newcomers, announce=lambda: self._announce(supervisor))
        try:
            await supervisor.wait_until(_has_bus)  # a slow start is no problem of the bus
            await self._connect()
            await self._publish(supervisor)
        finally:
            control.close()

    async def _publish(self, supervisor: Supervisor) -> None:
        self._bus.on_newcomer.append(self._wake.set)
        self._bus.on_reconnect.append(self._wake.set)  # messages from meanwhile are lost
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            self._announce(supervisor)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), until_next_tick(loop.time(), BEAT_SECONDS))

    def _announce(self, supervisor: Supervisor) -> None:
        self._bus.post(_status(supervisor, self._bus, self._details))

    async def _connect(self) -> None:
        while True:
            try:
                return await self._bus.ready()
            except BusNotReady as error:
                log.warning("%s", error)


def what_supervisor_says() -> Declaration:
    """Return the messages that the supervisor publishes: those common to all, and the answers to its requests."""
    said = frozenset(message.subject for message in ChildControl.publishes)
    return Declaration(what_everybody_says().says | said)


def _has_bus(children: tuple[ChildState, ...]) -> bool:
    return bool(children) and children[0].state is ChildPhase.READY


def _detail(child: ChildState) -> str:
    """Return a child's last end; for one that was given up, also the time of the next try."""
    if child.state is not ChildPhase.FAILED:
        return child.detail
    if child.retry_at is None:
        return f"{child.detail}; tried again now"
    seconds = child.retry_at - asyncio.get_running_loop().time()
    return f"{child.detail}; next try in {max(0.0, seconds):.0f} s"


def _status(supervisor: Supervisor, bus: Bus, details: dict[str, str]) -> ParticipantStatus:
    return ParticipantStatus(
        name="supervisor",
        kind="supervisor",
        pid=os.getpid(),
        instance=bus.instance,
        state="ready" if all(child.state is ChildPhase.READY for child in supervisor.children) else "starting",
        children=tuple(
            ChildStatus(
                name=child.name,
                kind=child.kind,
                state=child.state,
                pid=child.pid,
                restarts=child.restarts,
                detail=_detail(child),
            )
            for child in supervisor.children
        ),
        details=dict(details),
        last_seq=bus.last_seq,
        subscriptions=dict.fromkeys(bus.heard(), ""),
    )


# A system after its start: it publishes its address, informs its user that it is ready, and clears leftovers.

ROOM_SECONDS = 1.0  # between two looks whether there is room


async def introduce(directory: RunDirectory, facts: RunInfo, greet: Callable[[], object]) -> None:
    """Write the run directory's information, as soon as the disk has room for that, then `greet()`."""
    if not directory.write(facts):
        log.warning("other programs cannot find this system until there is space in %s", directory.path)
    while not directory.write(facts):  # noqa: ASYNC110 - nobody tells when there is room
        await asyncio.sleep(ROOM_SECONDS)
    await asyncio.to_thread(greet)
    await asyncio.to_thread(_clear_temporary, directory)


def _clear_temporary(directory: RunDirectory) -> None:
    """Remove the temporary files of systems that were killed."""
    count = directory.clear_others()
    log.debug("%d temporary folders of killed processes were removed", count)


# The end of a system: by a signal, or by the end of the program that started it for a while.


def stop_when_asked(stop: asyncio.Event, supervisor: Supervisor, starter: int | None = None) -> None:
    """Set `stop` by Ctrl-C, by SIGTERM, or because the terminal closes, unless nohup has started us; and where a
    `starter` holds the other end of that pipe, once it has ended, even by SIGKILL.

    A signal may go to the children as well, as systemd sends it: they leave it to the supervisor from then on.
    """
    loop = asyncio.get_running_loop()

    def end() -> None:
        supervisor.wind_down()
        stop.set()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, end)
    if starter is not None:
        _when_at_its_end(loop, starter, end)


def _when_at_its_end(loop: asyncio.AbstractEventLoop, pipe: int, end: Callable[[], None]) -> None:
    def ended() -> None:
        loop.remove_reader(pipe)
        end()

    os.set_inheritable(pipe, False)
    loop.add_reader(pipe, ended)  # nothing is ever written to it


# The declarations of the supervisor and of other clients, written as soon as the disk has room.


class SystemDeclarations:
    """The declarations of the supervisor and of external clients in one data directory. A full disk does not delay a
    start.
    """

    def __init__(self, data_dir: Path, bus: BusAddress, system: SystemConfig) -> None:
        self._declarations = Declarations(data_dir / SENDERS)
        self._bus, self._system = bus, system
        self._are_written = False

    def write(self) -> None:
        """Write them, and make the keys of the clients, if they need any. Raises `DeclarationNotWritten`, `BadKeys`."""
        self._are_written = False
        elsewhere = remote_clients(self._system)
        for name in self._declarations.names():
            known = self._declarations.read(name)
            if known and speaking_for(name) <= known.says and name not in self._system.bus_clients:
                self._declarations.write(name, Declaration(frozenset()))  # the owner has taken its line out
        for name, subjects in self._system.bus_clients.items():
            known = self._declarations.read(name)
            if name not in elsewhere:
                self._declarations.write(name, Declaration(frozenset(subjects)))
            elif known is None or not elsewhere[name].may.covers(known):  # it is to declare itself
                self._declarations.write(name, Declaration(what_everybody_says().says | speaking_for(name)))
            with_keys(self._bus, name)
        if elsewhere:
            self._declarations.write(PROXY, Declaration(what_everybody_says().says | HOST_SAYS))
        self._declarations.write(SUPERVISOR, what_supervisor_says())
        self._are_written = True

    def begin(self) -> None:
        """Write the declarations; if the disk is full, log that they wait. Raises `BadKeys`."""
        try:
            self.write()
        except DeclarationNotWritten as error:
            log.warning("%s", error)

    async def written(self) -> None:
        """Return once they are written."""
        while not self._are_written:
            await asyncio.sleep(ROOM_SECONDS)
            try:
                self.write()
            except LocalError as error:
                log.debug("%s", error)


def remote_clients(system: SystemConfig) -> dict[str, RemoteClient]:
    """Return the tools on other machines that the settings permit, by name."""
    return {
        name: tool_elsewhere(name, [subject for subject in subjects if subject != TOOL_ELSEWHERE])
        for name, subjects in system.bus_clients.items()
        if TOOL_ELSEWHERE in subjects
    }


API_TARGET = "local.api.app:ApiParticipant"
JOURNAL = "local.journal.server:Journal"
EXIT_CONFIG = 2
EXIT_REPLACED = 3  # another machine runs the cell now
SERVER_MARGIN_SECONDS = 10.0  # it gives up by itself before that, with the reason
MISCONFIGURED = f"exit status {EXIT_CONFIG}"


@dataclass(frozen=True, slots=True)
class SystemPlan:
    """The plan of a start: all decisions made before the first process starts."""

    flags: Flags
    system: SystemConfig
    layers: tuple[Path, ...]
    bus: BusAddress
    backend: Backend
    data_dir: Path
    listener: socket.socket | None
    log_file: Path | None
    chat: GeneratorConfig
    workspace: Path
    window: WindowState
    is_replicated: bool = False

    @property
    def api_url(self) -> str | None:
        """The address of the HTTP API."""
        if self.listener is None:
            return None
        host, port = self.listener.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(flags: Flags) -> int:
    """Run the system until it is to stop. Returns the exit status; raises `LocalError` if it cannot run."""
    failpoints.check()
    layers = layers_for(flags.config_dir)
    system = configured(flags, layers)
    models = load_models(layers, flags.models)
    directory = RunDirectory(data_dir(flags.data_dir))
    directory.make_data_dir()
    window = window_state(directory.data_dir, headless=flags.headless, insists=flags.desktop)
    log_path, participants = system.log_path(directory.data_dir), {entry.name for entry in system.participants}
    with (
        directory.lock() as lock,
        logged_to_file(SUPERVISOR, log_path) as log_file,
        _cell(directory.data_dir, layers, participants) as cell,
    ):
        directory.make_owner_token()
        workspace = prepared_workspace(system, directory.data_dir, layers)
        bus = directory.bus_address(system)
        require_free(bus)
        declarations = SystemDeclarations(directory.data_dir, bus, system)
        declarations.begin()
        listener = _listen(system) if flags.api or not flags.headless else None
        chat = load("generator", GeneratorConfig, layers, overrides_for(GENERATOR, system, flags.generator, {}))
        system = with_backend(system, chat.backend)
        plan = SystemPlan(
            flags=flags,
            system=system,
            layers=tuple(layers),
            bus=bus,
            backend=_backend(flags, system, models),
            data_dir=directory.data_dir,
            listener=listener,
            log_file=log_file,
            chat=chat,
            workspace=workspace,
            window=window,
            is_replicated=cell is not None,
        )
        notice = _rebuild_missing(directory.data_dir, participants)
        with listener or nullcontext():  # the holder of the lock also has the port
            return asyncio.run(_supervise(plan, directory, lock, declarations, notice, cell))


def _cell(data_dir: Path, layers: Sequence[Path], participants: Collection[str]) -> AbstractContextManager[Cell | None]:
    """Return this machine's part in a cell, if `log` in journal.yaml names one. Raises `ConfigError`."""
    address = load("journal", JournalConfig, layers).log
    if not address:
        return nullcontext()
    try:
        from local.run.cell import Cell
    except ImportError as error:
        raise missing_client(error) from None
    return Cell(data_dir, address, participants)


def _backend(flags: Flags, system: SystemConfig, models: ModelsConfig) -> Backend:
    backend = choose_backend(system, models)
    is_fixed = "model" in flags.generator
    return replace(backend, routing=backend.routing.model_copy(update={"is_fixed": True})) if is_fixed else backend


def _rebuild_missing(data_dir: Path, owners: Collection[str]) -> str:
    names = missing(data_dir, owners)
    if not names:
        return ""
    from local.run.upkeep import rebuild_missing  # it knows all stores and messages, and takes time to import

    return rebuild_missing(data_dir, names)


def _listen(system: SystemConfig) -> socket.socket:
    listener = listen(system.api_host, system.api_port)
    require_token(listener.getsockname()[0], environment().api_token)
    return listener


async def _supervise(
    plan: SystemPlan,
    directory: RunDirectory,
    lock: DataDirLock,
    declarations: SystemDeclarations,
    notice: str,
    cell: Cell | None,
) -> int:
    stop = asyncio.Event()
    async with bus_of(SUPERVISOR, plan.bus, plan.data_dir) as bus, asyncio.TaskGroup() as tasks:
        if cell is not None:
            cell.when_lost(partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set))
            notice = "; ".join(filter(None, (cell.notice, notice)))
        announcer = Announcer(bus, notice)
        supervisor = Supervisor(
            stages(plan), hang_seconds=plan.system.hang_seconds, preload=PRELOAD, on_change=announcer.changed
        )
        stop_when_asked(stop, supervisor, plan.flags.starter)
        telling = tasks.create_task(_announce(announcer, supervisor, _newcomers(plan), declarations))
        try:
            async with supervisor:
                if any(_is_misconfigured(child, plan) for child in supervisor.children):  # it has reported the error
                    return EXIT_CONFIG
                supervisor.show_warnings()
                introducing = tasks.create_task(
                    introduce(directory, _facts(plan), partial(_greet, plan)), name="introduction"
                )
                furnish = partial(_furnish, directory, declarations)
                renew = partial(_restart_all, supervisor)
                watch = DataDirWatch(lock, announcer.set_problem, furnish, renew, stop.set)
                watching = tasks.create_task(watch.run(), name="data directory")
                beside = [introducing, watching]
                if lacks_weights() and any(entry.name == MEMORY for entry in plan.system.participants):
                    beside.append(tasks.create_task(fetch_weights_aside(), name="embedding model"))
                if plan.window is WindowState.OPENS:
                    beside.append(tasks.create_task(show_window(plan.data_dir), name="desktop window"))
                await stop.wait()
                for task in beside:
                    task.cancel()
        except StartFailed:  # caught here, because it would leave the task group as an exception group
            return EXIT_CONFIG
        except StartInterrupted as end:
            print(end, file=sys.stderr)  # noqa: T201
        finally:
            telling.cancel()
    return EXIT_REPLACED if cell is not None and cell.is_lost else 0


async def _announce(
    announcer: Announcer, supervisor: Supervisor, newcomers: ParticipantReloader, declarations: SystemDeclarations
) -> None:
    await declarations.written()  # earlier messages would be refused
    await announcer.run(supervisor, newcomers)


def _newcomers(plan: SystemPlan) -> ParticipantReloader:
    def spec_in(system: SystemConfig, entry: ParticipantEntry) -> ChildSpec:
        news = {"participants": system.participants, "python_path": system.python_path, "shared_process": ()}
        now = replace(plan, system=plan.system.model_copy(update=news))
        return _logged(now, [_participant(now, entry.name, entry.target)])[0]

    return ParticipantReloader(partial(configured, plan.flags, plan.layers), spec_in)


def _furnish(directory: RunDirectory, declarations: SystemDeclarations) -> None:
    """Write the required files into a new data directory. Raises `LocalError`."""
    directory.make_owner_token()
    declarations.write()


async def _restart_all(supervisor: Supervisor) -> None:
    """Restart all participants, so that they use the new data directory."""
    names = [child.name for child in supervisor.children if child.kind == PARTICIPANT]
    await asyncio.gather(*(supervisor.restart(name) for name in names))


def _is_misconfigured(child: ChildState, plan: SystemPlan) -> bool:
    """Whether one of LoCAL2's own participants is misconfigured. Faulty participants of users do not stop the system;
    `/health` shows them.
    """
    added = {entry.name for entry in plan.system.participants if not entry.is_built_in}
    return child.detail.startswith(MISCONFIGURED) and child.name not in added


def stages(plan: SystemPlan) -> list[ChildSpec | list[ChildSpec]]:
    """Return the children in start order: the proxy first, then the model servers that we run, then everything that
    only needs the bus, side by side.

    Messages from before the journal listens are sent again until it does.
    """
    proxy = ChildSpec("proxy", "proxy", "local.run.processes:run_proxy", (plan.bus, remote_clients(plan.system)))
    servers = [_model_server(plan, spec) for spec in plan.backend.servers]
    beside: list[ChildSpec] = [_participant(plan, "journal", JOURNAL)]
    if plan.backend.listener is not None:
        args = (StandInSettings(), plan.backend.listener)
        target = "local.run.processes:run_stand_in"  # outlives the participants that still ask it something at the end
        beside.append(ChildSpec("stand_in", "model", target, args, outlives=True))
    for entry in plan.system.participants:
        beside.append(_participant(plan, entry.name, entry.target))
    if plan.listener is not None:
        beside.append(_participant(plan, "api", API_TARGET))
    return [*_logged(plan, [proxy]), *([_logged(plan, servers)] if servers else []), _logged(plan, beside)]


def _logged(plan: SystemPlan, specs: list[ChildSpec]) -> list[ChildSpec]:
    return [replace(spec, log_level=plan.flags.log_level, log_file=plan.log_file) for spec in specs]


def _model_server(plan: SystemPlan, spec: ServerSpec) -> ChildSpec:
    return ChildSpec(
        spec.name,
        "model",
        "local.run.processes:run_model_server",
        (spec, plan.data_dir / "logs"),
        ready_seconds=spec.start_seconds + SERVER_MARGIN_SECONDS,
        required=False,
    )


def _participant(plan: SystemPlan, name: str, target: str) -> ChildSpec:
    is_api = target == API_TARGET
    resources = Resources(
        data_dir=plan.data_dir,
        routing=plan.backend.routing,
        model_backend=plan.backend.name,
        chat_model=plan.chat.model,
        chat_num_ctx=plan.chat.num_ctx,
        listener=plan.listener if is_api else None,
        ollama_url=plan.backend.ollama_url,
        layers=plan.layers,
        workspace=plan.workspace,
        is_replicated=plan.is_replicated,
    )
    system, flags = plan.system, plan.flags
    overrides = overrides_for(target, system, flags.generator, flags.respondent_b or {})
    part = ParticipantSpec(
        target, plan.bus, resources, plan.layers, system.python_path, overrides, system.ollama_debug, name
    )
    outlives = target == JOURNAL  # the last messages of the others are to be recorded
    return ChildSpec(
        name,
        PARTICIPANT,
        "local.run.participant:run",
        (part,),
        required=False,
        outlives=outlives,
        shared_process=next(("+".join(group) for group in system.shared_process if name in group), ""),
    )


def _facts(plan: SystemPlan) -> RunInfo:
    return RunInfo(
        pid=os.getpid(),
        publish_to=plan.bus.publish_to,
        subscribe_to=plan.bus.subscribe_to,
        curve=plan.bus.keyring is not None,
        model_url=plan.backend.url,
        model_backend=plan.backend.name,
        api_url=plan.api_url,
        chat_model=plan.chat.model,
        chat_num_ctx=plan.chat.num_ctx,
        routing=plan.backend.routing.model_dump(mode="json", exclude_unset=True),
        ollama_url=plan.backend.ollama_url,
        workspace=str(plan.workspace),
    )


def _link(api_url: str, data_dir: Path) -> str:
    """The address to open, with a one-time code if a person reads it on a terminal; a code is in no log."""
    if sys.stderr.isatty():
        with suppress(LocalError):  # the API may be restarting, or have failed, which it has reported
            return SystemClient(api_url, owner_token(data_dir), CONNECT_SECONDS).sign_in_link()
    return api_url


def _greet(plan: SystemPlan) -> None:
    where = _link(plan.api_url, plan.data_dir) if plan.api_url else "the bus only (no --api)"
    window = f"{plan.window.reason}; " if plan.window.reason else ""
    hint = window + ("" if not plan.api_url or "#" in where else "`local2 open` signs a browser in; ")
    print(  # noqa: T201
        f"LoCAL2 is ready: {where}  model server: {plan.backend.name}  ({hint}Ctrl-C stops it)", file=sys.stderr
    )
