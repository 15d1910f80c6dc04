"""The composition root: what runs, in which order, and what stops it."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import quote

from local import failpoints
from local.agents.answering.generator_config import GeneratorConfig
from local.apps.announcer import Announcer
from local.apps.backend import Backend, choose_backend, with_backend
from local.apps.data_dir_lock import DataDirLock
from local.apps.data_dir_watch import DataDirWatch
from local.apps.flags import Flags
from local.apps.introduction import introduce
from local.apps.listener import listen, require_free, require_token
from local.apps.newcomers import PARTICIPANT, Newcomers
from local.apps.overrides import GENERATOR, configured, overrides_for
from local.apps.owner_token import owner_token
from local.apps.participant import ParticipantSpec, bus_of
from local.apps.run_directory import Facts, RunDirectory
from local.apps.stop_signals import stop_when_asked
from local.apps.system_declarations import SUPERVISOR, SystemDeclarations
from local.apps.warm_up import PRELOAD
from local.apps.workspace_folder import prepared_workspace
from local.bus.address import BusAddress
from local.config import ParticipantEntry, SystemConfig, layers_for, load
from local.config_models import ModelsConfig, load_models
from local.environment import data_dir, environment
from local.errors import StartFailed, StartInterrupted
from local.models.servers.spec import ServerSpec
from local.models.stand_in.stand_in import StandInSettings
from local.runtime.logs import logged_to_file
from local.runtime.participant import Resources
from local.runtime.supervisor import ChildSpec, ChildState, Supervisor
from local.upkeep.missing import missing

API = "local.apps.api.participant:ApiParticipant"
JOURNAL = "local.journal.server.journal:Journal"
EXIT_CONFIG = 2
SERVER_MARGIN_SECONDS = 10.0  # it gives up by itself before that, and says why
MISCONFIGURED = f"exit status {EXIT_CONFIG}"


@dataclass(frozen=True, slots=True)
class SystemPlan:
    """Everything decided before the first process starts."""

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

    @property
    def api_url(self) -> str | None:
        """Where the HTTP API answers."""
        if self.listener is None:
            return None
        host, port = self.listener.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(flags: Flags) -> int:
    """Run the system until it is to stop. Returns the exit status; raises `LocalError` for what kept it from that."""
    failpoints.check()
    layers = layers_for(flags.config_dir)
    system = configured(flags, layers)
    models = load_models(layers, flags.models)
    directory = RunDirectory(data_dir(flags.data_dir))
    directory.make_data_dir()
    with directory.lock() as lock, logged_to_file(SUPERVISOR, system.log_path(directory.data_dir)) as log_file:
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
        )
        notice = _rebuild_missing(directory.data_dir, {entry.name for entry in system.participants})
        with listener or nullcontext():  # who has the lock next has the port, too
            return asyncio.run(_supervise(plan, directory, lock, declarations, notice))


def _backend(flags: Flags, system: SystemConfig, models: ModelsConfig) -> Backend:
    backend = choose_backend(system, models)
    is_fixed = "model" in flags.generator
    return replace(backend, routing=backend.routing.model_copy(update={"is_fixed": True})) if is_fixed else backend


def _rebuild_missing(data_dir: Path, owners: Collection[str]) -> str:
    names = missing(data_dir, owners)
    if not names:
        return ""
    from local.upkeep.rebuild import rebuild_missing  # it knows all stores and messages, and takes time to import

    return rebuild_missing(data_dir, names)


def _listen(system: SystemConfig) -> socket.socket:
    listener = listen(system.api_host, system.api_port)
    require_token(listener.getsockname()[0], environment().api_token)
    return listener


async def _supervise(
    plan: SystemPlan, directory: RunDirectory, lock: DataDirLock, declarations: SystemDeclarations, notice: str
) -> int:
    stop = asyncio.Event()
    async with bus_of(SUPERVISOR, plan.bus, plan.data_dir) as bus, asyncio.TaskGroup() as tasks:
        announcer = Announcer(bus, notice)
        supervisor = Supervisor(
            stages(plan), hang_seconds=plan.system.hang_seconds, preload=PRELOAD, on_change=announcer.changed
        )
        stop_when_asked(stop, supervisor, plan.flags.starter)
        telling = tasks.create_task(_announce(announcer, supervisor, _newcomers(plan), declarations))
        try:
            async with supervisor:
                if any(_is_misconfigured(child, plan) for child in supervisor.children):  # it has said what is wrong
                    return EXIT_CONFIG
                supervisor.show_warnings()
                introducing = tasks.create_task(
                    introduce(directory, _facts(plan), partial(_greet, plan)), name="introduction"
                )
                furnish = partial(_furnish, directory, declarations)
                renew = partial(_restart_all, supervisor)
                watch = DataDirWatch(lock, announcer.tell_problem, furnish, renew, stop.set)
                watching = tasks.create_task(watch.run(), name="data directory")
                await stop.wait()
                watching.cancel()
                introducing.cancel()
        except StartFailed:  # caught here, because it would leave the task group as an exception group
            return EXIT_CONFIG
        except StartInterrupted as end:
            print(end, file=sys.stderr)  # noqa: T201
        finally:
            telling.cancel()
    return 0


async def _announce(
    announcer: Announcer, supervisor: Supervisor, newcomers: Newcomers, declarations: SystemDeclarations
) -> None:
    await declarations.written()  # before that nobody would hear what it says
    await announcer.run(supervisor, newcomers)


def _newcomers(plan: SystemPlan) -> Newcomers:
    def spec_in(system: SystemConfig, entry: ParticipantEntry) -> ChildSpec:
        news = {"participants": system.participants, "python_path": system.python_path, "together": ()}
        now = replace(plan, system=plan.system.model_copy(update=news))
        return _logged(now, [_participant(now, entry.name, entry.target)])[0]

    return Newcomers(partial(configured, plan.flags, plan.layers), spec_in)


def _furnish(directory: RunDirectory, declarations: SystemDeclarations) -> None:
    """Write into a new data directory what has to be in it. Raises `LocalError`."""
    directory.make_owner_token()
    declarations.write()


async def _restart_all(supervisor: Supervisor) -> None:
    """Have everybody use what is in the data directory now."""
    names = [child.name for child in supervisor.children if child.kind == PARTICIPANT]
    await asyncio.gather(*(supervisor.restart(name) for name in names))


def _is_misconfigured(child: ChildState, plan: SystemPlan) -> bool:
    """Whether one of our own cannot be made; what users have added stops nobody else, and `/health` shows it."""
    added = {entry.name for entry in plan.system.participants if not entry.is_built_in}
    return child.detail.startswith(MISCONFIGURED) and child.name not in added


def stages(plan: SystemPlan) -> list[ChildSpec | list[ChildSpec]]:
    """The children in start order: the proxy first, then the model servers that we run, then everything that only needs
    the bus, side by side.

    What is published before the journal listens is sent again until it does.
    """
    proxy = ChildSpec("proxy", "proxy", "local.apps.processes:run_proxy", (plan.bus,))
    servers = [_model_server(plan, spec) for spec in plan.backend.servers]
    beside: list[ChildSpec] = [_participant(plan, "journal", JOURNAL)]
    if plan.backend.listener is not None:
        args = (StandInSettings(), plan.backend.listener)
        target = "local.apps.processes:run_stand_in"  # outlives whoever is still asking it something at the end
        beside.append(ChildSpec("stand_in", "model", target, args, outlives=True))
    for entry in plan.system.participants:
        beside.append(_participant(plan, entry.name, entry.target))
    if plan.listener is not None:
        beside.append(_participant(plan, "api", API))
    return [*_logged(plan, [proxy]), *([_logged(plan, servers)] if servers else []), _logged(plan, beside)]


def _logged(plan: SystemPlan, specs: list[ChildSpec]) -> list[ChildSpec]:
    return [replace(spec, log_level=plan.flags.log_level, log_file=plan.log_file) for spec in specs]


def _model_server(plan: SystemPlan, spec: ServerSpec) -> ChildSpec:
    return ChildSpec(
        spec.name,
        "model",
        "local.apps.processes:run_model_server",
        (spec, plan.data_dir / "logs"),
        ready_seconds=spec.start_seconds + SERVER_MARGIN_SECONDS,
        required=False,
    )


def _participant(plan: SystemPlan, name: str, target: str) -> ChildSpec:
    is_api = target == API
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
    )
    system, flags = plan.system, plan.flags
    overrides = overrides_for(target, system, flags.generator, flags.respondent_b or {})
    part = ParticipantSpec(
        target, plan.bus, resources, plan.layers, system.python_path, overrides, system.ollama_debug, name
    )
    outlives = target == JOURNAL  # what the others still have to say at their end is to be on record
    return ChildSpec(
        name,
        PARTICIPANT,
        "local.apps.participant:run",
        (part,),
        required=False,
        outlives=outlives,
        shared_process=next(("+".join(group) for group in system.together if name in group), ""),
    )


def _facts(plan: SystemPlan) -> Facts:
    return Facts(
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


def _link(plan: SystemPlan) -> str | None:
    """Where to open it; with the owner's token for the eyes of whoever sits at this terminal, and in no log."""
    token = owner_token(plan.data_dir) if sys.stderr.isatty() else None
    return f"{plan.api_url}/#token={quote(token)}" if plan.api_url and token else plan.api_url


def _greet(plan: SystemPlan) -> None:
    where = _link(plan) or "the bus only (no --api)"
    print(f"LoCAL2 is ready: {where}  model server: {plan.backend.name}  (Ctrl-C stops it)", file=sys.stderr)  # noqa: T201
