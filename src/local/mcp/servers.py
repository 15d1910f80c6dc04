"""The servers of `mcp.json` as their owner manages them: listed with their state, added, looked at, approved, removed,
and logged in to. The commands and the page do the same by this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from local.bus.envelope import new_id
from local.core.errors import ConfigError, LocalError
from local.core.mcp_servers import (
    MCPServerConfig,
    add_server,
    approved_file,
    checked_entry,
    entry_of,
    load_mcp_servers,
    participant_name,
    pasted_servers,
    put_server,
    remove_server,
    require_server,
)
from local.core.secrets import SecretStore
from local.mcp.client import ApprovedTool, LoginPrompt, RemoteLogin, approvable, changes, read_approved, write_approved
from local.mcp.stdio import LoginCallback
from local.mcp.tools import connect
from local.sandbox.interpreters import program_of

Json = dict[str, Any]
MOST_LOOKS = 16  # that are kept until they are approved


class ReviewOutdated(LocalError):
    """The error for an approval of tools that were not shown, or were shown too long ago."""

    kind = "conflict"

    def __init__(self) -> None:
        super().__init__("these tools were not shown since the last start of the API; review them again")


@dataclass(frozen=True, slots=True)
class ToolReview:
    """The tools of one server as they were shown to its owner. `told` are the changes since the last approval, by the
    tool's name; `refused` says why some cannot be used.
    """

    name: str
    server: MCPServerConfig
    tools: Sequence[ApprovedTool]
    told: Mapping[str, str]
    refused: Sequence[str]

    def shown(self) -> Json:
        """Return it as JSON."""
        gone = [name for name, change in self.told.items() if change == "gone"]
        tools = [{**asdict(tool), "change": self.told[tool.name]} for tool in self.tools]
        return {
            "name": self.name, "where": where(self.server), "safety": self.server.safety, "tools": tools, "gone": gone,
            "refused": list(self.refused),
        }  # fmt: skip


def where(server: MCPServerConfig) -> str:
    """Return the URL of a server, or the command that starts it, as it is written in `mcp.json`."""
    return server.url or " ".join((server.command, *server.args))


def _started(server: MCPServerConfig) -> Json:
    """What the command of a server is, for people, and what it needs and may not read yet."""
    program = None if server.url or server.skill else program_of(server.command, server.args)
    if program is None:
        return {"kind": "", "needs": []}
    return {"kind": program.kind, "needs": [str(each) for each in program.missing(server.readable, optional=True)]}


def _read(name: str, entry: Json) -> Json:
    found = {"name": name, "entry": entry, "kind": "", "needs": [], "where": "", "problem": ""}
    try:
        server = checked_entry(name, entry)
    except ConfigError as error:
        return {**found, "problem": str(error)}
    is_missing = bool(server.command) and program_of(server.command) is None
    problem = f"there is no program {server.command!r} on this machine; install it first" if is_missing else ""
    return {**found, **_started(server), "where": where(server), "problem": problem}


class MCPServerBook:
    """The servers of an owner. `layers` are the folders of settings, the owner's last. Every method raises
    `ConfigError`; those that contact a server also raise `ToolError`.
    """

    def __init__(self, layers: Sequence[Path], data_dir: Path) -> None:
        self._layers, self._data_dir = layers, data_dir
        self._reviews: dict[str, list[ToolReview]] = {}
        self._logins: dict[str, ServerLogin] = {}

    @property
    def settings(self) -> Path:
        """The owner's folder of settings."""
        return self._layers[-1]

    def listing(self) -> list[Json]:
        """Return every server with its approved tools and the state of its login. Secrets are not included."""
        return [self._shown(name, server) for name, server in load_mcp_servers(self.settings).items()]

    @staticmethod
    def new_entry(
        where_: Sequence[str],
        env: Mapping[str, str],
        headers: Mapping[str, str],
        readable: Iterable[str],
        *,
        network: bool,
    ) -> Json:
        """The entry of a new server in `mcp.json`: of a URL, or of a command and its arguments."""
        entry: Json = {}
        if where_[0].startswith(("https://", "http://")) and len(where_) == 1:
            entry |= {"type": "http", "url": where_[0]}
        else:
            entry |= {"command": where_[0], "args": list(where_[1:])}
        entry |= {key: dict(given) for key, given in (("env", env), ("headers", headers)) if given}
        if folders := [str(Path(each).expanduser().absolute()) for each in readable]:
            entry["readable"] = folders
        if network:
            entry["network"] = True
        return entry

    def add(self, name: str, entry: Json) -> Json:
        """Add a server; none of its tools is approved yet."""
        add_server(self.settings, name, entry)
        return self._shown(name, load_mcp_servers(self.settings)[name])

    def read(self, text: str) -> list[Json]:
        """Return the servers in a text that was copied from another client, with what each needs to start."""
        known = load_mcp_servers(self.settings)
        return [{**_read(name, entry), "is_known": name in known} for name, entry in pasted_servers(text).items()]

    def entry(self, name: str) -> Json:
        """Return the entry of a server as it is written in `mcp.json`."""
        return entry_of(self.settings, name)

    def put(self, name: str, entry: Json) -> Json:
        """Store a server, in place of one of that name. Its approved tools stay approved as long as the server says
        the same of them."""
        put_server(self.settings, name, entry)
        return self._shown(name, load_mcp_servers(self.settings)[name])

    def remove(self, name: str) -> str:
        """Remove a server with its approved tools and its login; returns the folder of its data if that has any."""
        remove_server(self.settings, name)
        self._login(name, "").forget()
        file = approved_file(self._data_dir, name)
        file.unlink(missing_ok=True)
        folder = file.with_suffix("")
        return str(folder) if folder.is_dir() and any(folder.iterdir()) else ""

    def server(self, name: str) -> MCPServerConfig:
        """The settings of a server."""
        known = load_mcp_servers(self.settings)
        require_server(self.settings, name, known)
        return known[name]

    async def review(self, servers: Mapping[str, MCPServerConfig]) -> Json:
        """Contact servers and return their present tools, with the id under which they are approved."""
        reviews = []
        for name, server in servers.items():
            told = await self._list_tools(name, server, None)
            tools, refused = approvable(name, told)
            before = read_approved(approved_file(self._data_dir, name))
            reviews.append(ToolReview(name, server, tools, changes(before, tools), refused))
        review_id = new_id()
        self._reviews[review_id] = reviews
        for old in list(self._reviews)[:-MOST_LOOKS]:
            del self._reviews[old]
        return {"review_id": review_id, "servers": [each.shown() for each in reviews]}

    def reviewed(self, review_id: str) -> list[ToolReview]:
        """Return the review of that id. Raises `ReviewOutdated`."""
        if review_id not in self._reviews:
            raise ReviewOutdated
        return self._reviews[review_id]

    def approve(self, review: ToolReview) -> None:
        """Approve the tools as they were shown, if the server is still the one that was looked at."""
        if self.server(review.name) != review.server:
            raise ReviewOutdated
        write_approved(approved_file(self._data_dir, review.name), review.tools)

    def withdraw(self, skill: Path) -> list[str]:
        """Withdraw the approval of the servers that a skill has brought, and remove them; returns their names."""
        known = load_mcp_servers(self.settings)
        names = [name for name, server in known.items() if server.skill == skill.resolve()]
        for name in names:
            approved_file(self._data_dir, name).unlink(missing_ok=True)
            remove_server(self.settings, name)
        return names

    def renew(self, skill: Path, reviews: Iterable[ToolReview]) -> None:
        """Replace the servers that a skill has brought by those that were shown, and approve their tools."""
        self.withdraw(skill)
        for review in reviews:
            add_server(self.settings, review.name, review.server.model_dump(mode="json", exclude_unset=True))
            self.approve(review)

    async def log_in(self, name: str) -> Json:
        """Begin a login, and return the address at which a person completes it; null if the server needs none."""
        server = await asyncio.to_thread(self.server, name)
        if not server.url:
            raise ConfigError(f"{name} is started by a command; only servers at a URL have a login")
        if (before := self._logins.pop(name, None)) is not None:
            before.cancel()
        login = self._logins[name] = ServerLogin()
        return {"name": name, "visit": await login.begin(lambda visitor: self._list_tools(name, server, visitor))}

    def log_out(self, name: str) -> None:
        """Delete a stored login."""
        if (login := self._logins.pop(name, None)) is not None:
            login.cancel()
        if not self._login(name, "").forget():
            raise ConfigError(f"there is no login at {name}")

    def stop(self) -> None:
        """End the logins that wait for a person."""
        for login in self._logins.values():
            login.cancel()

    async def close(self) -> None:
        """Wait for the end of those."""
        for login in self._logins.values():
            await login.ended()

    async def _list_tools(self, name: str, server: MCPServerConfig, visitor: LoginPrompt | None) -> list[Json]:
        connection = await asyncio.to_thread(connect, name, server, self._data_dir, self._layers[1:], visitor)
        try:
            return await connection.tools()
        finally:
            await connection.close()

    def _login(self, name: str, url: str) -> RemoteLogin:
        return RemoteLogin(name, url, SecretStore(self._data_dir))

    def _shown(self, name: str, server: MCPServerConfig) -> Json:
        problem, approved = "", list[ApprovedTool]()
        try:
            approved = read_approved(approved_file(self._data_dir, name))
        except ConfigError as error:
            problem = str(error)
        login = self._logins.get(name)
        return {
            "name": name, "participant": participant_name(name), "where": where(server), "is_remote": bool(server.url),
            "safety": server.safety, "network": server.network or bool(server.url), "disabled": server.disabled,
            "users": list(server.users), **_started(server),
            "readable": [str(folder) for folder in server.readable], "env": sorted(server.env),
            "headers": sorted(server.headers), "skill": server.skill.name if server.skill else None,
            "tools": [
                {
                    "name": tool.name, "server_name": tool.server_name, "description": tool.description,
                    "safety": server.safety_of(tool.server_name), "disabled": not server.offers(tool.server_name),
                }
                for tool in approved
            ],
            "is_logged_in": bool(server.url) and self._login(name, server.url).is_there,
            "login": login.state if login else "", "problem": problem or (login.problem if login else ""),
        }  # fmt: skip


class ServerLogin:
    """A login that a person completes in a browser on this machine. `state` is waiting, done or failed."""

    def __init__(self) -> None:
        self.state, self.problem = "waiting", ""
        self._task: asyncio.Task[None] | None = None

    async def begin(self, told: Callable[[LoginPrompt], Any]) -> str | None:
        """Start it with `told`, which contacts the server; returns the address to visit, or None if it was not needed.
        Raises as `told` does if that fails before an address is known.
        """
        visited: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = self._task = asyncio.create_task(self._run(told, visited))
        either: list[asyncio.Future[Any]] = [task, visited]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if visited.done():
            return visited.result()
        await task
        return None

    def cancel(self) -> None:
        """Cancel the login."""
        if self._task is not None:
            self._task.cancel()

    async def ended(self) -> None:
        """Wait for its end."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self, told: Callable[[LoginPrompt], Any], visited: asyncio.Future[str]) -> None:
        async def visit(url: str) -> None:
            if not visited.done():
                visited.set_result(url)

        try:
            async with LoginCallback.listening() as callback:
                await told(LoginPrompt(callback.redirect_uri, visit, callback.answer))
            self.state = "done"
        except LocalError as error:
            self.state, self.problem = "failed", str(error)
            if not visited.done():
                raise
        finally:
            if self.state == "waiting":
                self.state = "failed"
