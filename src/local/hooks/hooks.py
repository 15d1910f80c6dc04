"""The participant that runs the commands of hooks.yaml, each in the sandbox, and answers the requests of turns."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, ValidationError

from local.bus.envelope import Envelope
from local.bus.message import MAIN_RESPONDENT, ErrorInfo, Message
from local.bus.messages import ResponseGeneration, SessionDeleted
from local.core.config import Settings
from local.core.errors import ConfigError, SandboxMissing, SandboxRefused, ToolError
from local.hooks.messages import HookEvent, HookRequest, HookResult, HookSettings
from local.runtime.participant import Kind, Participant, Publications, Resources, on
from local.sandbox.process import MB, ContainedCommand, ContainedServer, SandboxLimits
from local.sandbox.sandbox import Sandbox, SandboxView, sandbox_of_this_machine

log = logging.getLogger(__name__)

FOLDER = "hooks"  # of scripts, in the folder of settings
AT_ONCE = 8
MOST_SCRIPT_BYTES = 200_000


class HooksConfig(Settings):
    """The settings file `hooks.yaml`."""

    hooks: tuple[HookSettings, ...] = ()
    memory_mb: int = Field(256, ge=16)


class Hooks(Participant):
    """The participant that runs the commands of hooks.yaml. A command receives one line of JSON and answers with one:
    `decision`, `why`, `data`. It may read the workspace, and has no network.
    """

    name = "hooks"
    kind = Kind.SERVICE
    Config = HooksConfig
    publishes: ClassVar[Publications | None] = (HookResult,)

    def __init__(self, config: HooksConfig, sandbox: Sandbox, view: SandboxView, scripts: Path) -> None:
        super().__init__(config)
        self._hooks = {hook.name: hook for hook in config.hooks if hook.command}
        self._sandbox, self._view, self._scripts = sandbox, view, scripts
        self._memory = config.memory_mb * MB

    @classmethod
    def build(cls, config: HooksConfig, resources: Resources) -> Self:
        """Build the participant with this machine's sandbox. Raises `ConfigError` without one, or for two hooks of one
        name.
        """
        names = [hook.name for hook in config.hooks]
        if len(names) > len(set(names)):
            raise ConfigError("hooks.yaml: each hook has a name of its own")
        settings = resources.layers[-1] if resources.layers else resources.data_dir
        closed = (resources.data_dir, *resources.layers[1:])
        try:
            view = SandboxView(resources.workspace_folder, closed=closed, writable=False)
            return cls(config, sandbox_of_this_machine(), view, settings / FOLDER)
        except (SandboxMissing, SandboxRefused) as why:
            raise ConfigError(f"hooks.yaml: no command can be run: {why}") from None

    @on(HookRequest, concurrency=AT_ONCE)
    async def answer(self, request: HookRequest, envelope: Envelope) -> HookResult | None:
        """Run a hook for a respondent; hooks of other participants answer for themselves."""
        hook = self._hooks.get(request.hook)
        if hook is None:
            return None
        told = {"event": request.event, "query_id": request.query_id, "session_id": envelope.session_id}
        return await self._run(hook, {**told, "call_id": request.call_id, "data": request.data})

    @on(ResponseGeneration, concurrency=AT_ONCE)
    async def on_answer(self, response: ResponseGeneration, envelope: Envelope) -> None:
        """A turn has ended."""
        if response.respondent_id == MAIN_RESPONDENT:
            data = {"query": response.query, "status": response.status, "answer": response.answer}
            told = {"query_id": response.query_id, "session_id": envelope.session_id, "data": data}
            await self._run_observing("after_turn", told)

    @on(SessionDeleted)
    async def on_session_deleted(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """A session is gone."""
        await self._run_observing("session_end", {"session_id": deleted.deleted_session_id, "data": {}})

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """Report the failure to the requester, which then applies `on_failure`."""
        if not isinstance(message, HookRequest):
            return None
        failed = ErrorInfo(kind="hook", message=str(error) or type(error).__name__)
        return HookResult(hook=message.hook, error=failed)

    async def _run_observing(self, event: HookEvent, told: Mapping[str, Any]) -> None:
        for hook in self._hooks.values():
            if hook.is_for(event):
                try:
                    await self._run(hook, {"event": event, **told})
                except ToolError as error:
                    log.warning("the hook %s failed at %s: %s", hook.name, event, error)

    async def _run(self, hook: HookSettings, told: Mapping[str, Any]) -> HookResult:
        """Run a command and return its answer. Raises `ToolError`."""
        self._view.workspace.mkdir(parents=True, exist_ok=True, mode=0o700)
        limits = SandboxLimits(seconds=hook.seconds, memory_bytes=self._memory)
        script = await asyncio.to_thread(self._script, hook) if hook.script else None
        command = ContainedCommand(hook.command, script=script)
        try:
            launch = self._sandbox.launch(command, self._view, limits)
            async with ContainedServer.contained(launch, limits) as server, asyncio.timeout(hook.seconds):
                await server.write_line(json.dumps(told).encode())
                line = await server.read_line()
                why = "" if line else await server.ended()
        except (TimeoutError, OSError) as error:
            text = f"it gave no answer within {hook.seconds:g} s" if isinstance(error, TimeoutError) else str(error)
            raise ToolError(text, kind="hook") from None
        if not line:
            raise ToolError(f"it gave no answer: {why}", kind="hook")
        try:
            return HookResult.model_validate({**json.loads(line), "hook": hook.name})
        except (ValueError, TypeError, ValidationError):
            raise ToolError("its answer is not JSON with decision, why and data", kind="hook") from None

    def _script(self, hook: HookSettings) -> bytes:
        try:
            with (self._scripts / hook.script).open("rb") as file:
                return file.read(MOST_SCRIPT_BYTES)
        except OSError as error:
            raise ToolError(f"{hook.script} cannot be read: {error.strerror}", kind="hook") from None
