"""The participant with the tools of one server, in a separate process: `local.mcp.tools:NAME` for each name in
`mcp.json`.

It offers the approved tools; the server itself is started with the first call.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from local.core.environment import variable
from local.core.errors import ConfigError, SandboxMissing, SandboxRefused, ToolError
from local.core.mcp_servers import FOLDER, MCPServerConfig, approved_file, participant_name
from local.core.secrets import SecretStore
from local.mcp.client import ApprovedTool, LoginPrompt, MCPConnection, RemoteLogin, RemoteServer, Start, read_approved
from local.runtime.participant import Resources
from local.sandbox.interpreters import Program, program_of
from local.sandbox.process import PATH, ContainedCommand, ContainedServer, SandboxLimits
from local.sandbox.sandbox import SandboxView, sandbox_of_this_machine
from local.tools.group import ToolGroup
from local.tools.skill_folder import ServingSkill
from local.tools.tool import Arguments, Tool, ToolOutput

# A tool of a server as the model calls it.


class ApprovedArguments(Arguments):
    """The approved schema of a tool's arguments. The server itself checks what it is given."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = dict(schema)

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments unchanged."""
        return dict(arguments)


class MCPTool(Tool):
    """A tool of a server. Its results are untrusted content, and its effects are unknown: so each call is made at most
    once, and requests approval, unless the owner has set another level."""

    approved: ClassVar[ApprovedTool]

    def __init__(self, config: MCPServerConfig, connection: MCPConnection) -> None:
        super().__init__(config)
        self.timeout_seconds, self.users = config.timeout_seconds, config.users
        self._connection = connection

    @classmethod
    @cache
    def arguments(cls) -> Arguments:
        """The approved schema."""
        return ApprovedArguments(cls.approved.parameters)

    @classmethod
    def made_of(cls, approved: ApprovedTool, config: MCPServerConfig) -> type[MCPTool]:
        """The class of one tool."""
        safety = config.safety_of(approved.server_name)
        attributes = {
            "__doc__": approved.description, "name": approved.name, "approved": approved, "safety": safety,
            "category": config.category, "effect": "read" if safety == "L0" else "write",
            "sends_out": bool(config.url) or config.network,
        }  # fmt: skip
        return cast("type[MCPTool]", type(f"{cls.__name__}_{approved.name}", (cls,), attributes))

    async def run(self, /, **arguments: Any) -> ToolOutput:
        """Call it."""
        return await self._connection.call(self.approved, arguments)


log = logging.getLogger(__name__)

LOGIN_SECONDS = 300.0  # for a person to log in


class MCPGroup(ToolGroup):
    """The participant with the approved tools of one server, which is called `server`."""

    Config = MCPServerConfig
    server: ClassVar[str] = ""

    def __init__(
        self, config: MCPServerConfig, tools: Sequence[MCPTool], connection: MCPConnection | None, off: str = ""
    ) -> None:
        super().__init__(config, tools)
        self._connection, self._off = connection, off

    @classmethod
    def build(cls, config: MCPServerConfig, resources: Resources) -> Self:
        """Build the group with the approved tools, if a sandbox can contain the server. Raises `ConfigError`."""
        if config.disabled:
            return cls(config, [], None, "it is switched off")
        approved = read_approved(approved_file(resources.data_dir, cls.server))
        try:
            connection = connect(cls.server, config, resources.data_dir, resources.layers[1:])
            connection.may_call = partial(_require_leave, cls.server, config, resources.data_dir)
        except SandboxMissing as missing:
            return cls(config, [], None, str(missing))
        try:
            require = _skill_check(config)
            if require is not None:
                require()
        except ToolError as error:
            return cls(config, [], None, str(error))
        if not approved:
            return cls(
                config, [], None, f"none of its tools is approved; approve them with `local2 mcp approve {cls.server}`"
            )
        kinds = tuple(MCPTool.made_of(tool, config) for tool in approved if config.offers(tool.server_name))
        made = cast("type[Self]", type(cls.__name__, (cls,), {"tools": kinds}))
        return made(config, [kind(config, connection) for kind in kinds], connection).with_records(resources)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """The server ends with it."""
        async with super().lifespan():
            if self._off:
                log.warning("the MCP server %s is not used: %s", self.server, self._off)
            try:
                yield
            finally:
                if self._connection is not None:
                    await self._connection.close()

    def details(self) -> dict[str, str]:
        """Why nothing is offered, or why the server is not there, if so."""
        if self._connection is None:
            return {"off": self._off}
        return {"server": self._connection.trouble} if self._connection.trouble else {}


def __getattr__(name: str) -> type[MCPGroup]:
    """The class of a server's tools, by its name."""
    if name.startswith("__"):
        raise AttributeError(name)
    said = {"name": participant_name(name), "server": name, "__module__": __name__}
    return cast("type[MCPGroup]", type(name, (MCPGroup,), said))


def connect(
    server: str, config: MCPServerConfig, data_dir: Path, settings: Sequence[Path], visitor: LoginPrompt | None = None
) -> MCPConnection:
    """Return a connection to a server: in a sandbox with its own folder, below the data directory, and the folders that
    it may read; or at its url, where `visitor` logs in. Raises `SandboxMissing`, and `ConfigError` for a folder that is
    missing or that servers may not see.
    """
    store = SecretStore(data_dir)
    meant = config.expanded(server, variable, store.get)
    if meant.url:
        start = _remote(meant, RemoteLogin(server, meant.url, store), visitor)
    else:
        start = _contained(server, meant, data_dir, settings)
    seconds = LOGIN_SECONDS if visitor else meant.start_seconds
    return MCPConnection(server, start, seconds, _skill_check(config))


def _require_leave(server: str, config: MCPServerConfig, data_dir: Path) -> None:
    """Raise `ToolError` (not_approved) for a skill's server without an approval."""
    if config.skill is not None and not approved_file(data_dir, server).exists():
        raise ToolError(f"the tools of the skill {config.skill.name} are no longer approved", kind="not_approved")


def _skill_check(config: MCPServerConfig) -> Callable[[], None] | None:
    """Return a check that raises `ToolError` when the skill that brought a server has changed; None for other
    servers."""
    return None if config.skill is None else ServingSkill(config.skill, config.skill_digest).require


def _contained(server: str, config: MCPServerConfig, data_dir: Path, settings: Sequence[Path]) -> Start:
    folder = data_dir / FOLDER / server
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        skills = (config.skill,) if config.skill else ()
        view = SandboxView(folder, config.readable, (data_dir, *settings), skills=skills, network=config.network)
    except SandboxRefused as refused:
        raise ConfigError(f"mcp.json: {server}: {refused}") from None
    sandbox, limits = sandbox_of_this_machine(), SandboxLimits()

    @asynccontextmanager
    async def start() -> AsyncIterator[ContainedServer]:
        program = await asyncio.to_thread(_program, config)
        path = f"{program.path.parent}{os.pathsep}{PATH}" if program.path.is_absolute() else PATH
        beside = {"HOME": str(folder), "PATH": path}
        command = ContainedCommand((str(program.path), *config.args), environment={**beside, **config.env})
        async with ContainedServer.contained(sandbox.launch(command, view, limits), limits) as contained:
            yield contained

    return start


def _program(config: MCPServerConfig) -> Program:
    """The program of a server. Raises `ToolError` if there is none, or if it cannot be read in the sandbox. A skill's
    program is in the sandbox alone, and a relative path counts from the server's folder.
    """
    if config.skill is not None or (("/" in config.command) and config.command[0] not in "/~"):
        return Program(Path(config.command))
    program = program_of(config.command, config.args)
    if program is None:
        raise ToolError(f"there is no program {config.command!r}: install it, or name it with its whole path")
    if missing := program.missing(config.readable):
        kind = f", {program.kind}," if program.kind else ""
        raise ToolError(f"{program.path}{kind} cannot be read by it: add to readable {', '.join(map(str, missing))}")
    return program


def _remote(config: MCPServerConfig, login: RemoteLogin, visitor: LoginPrompt | None) -> Start:
    @asynccontextmanager
    async def start() -> AsyncIterator[RemoteServer]:
        yield RemoteServer(config.url, config.headers, config.timeout_seconds, login, visitor)

    return start
