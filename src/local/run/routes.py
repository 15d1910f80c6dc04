"""HTTP routes for the settings of every participant and their secrets, the doctor's findings, and backups."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal, Self, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints, model_validator
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, PathId, RequestRefused, read_body, takes
from local.api.security import Access, open_to
from local.core.config_file import is_cloud
from local.core.environment import environment_with
from local.core.errors import BackupRefused, ConfigError, ModelError
from local.core.routing import Endpoint
from local.core.secrets import SecretStore
from local.run.settings_files import SettingsFiles

T = TypeVar("T")


def _files() -> SettingsFiles:
    return api().part(SettingsFiles, lambda: SettingsFiles(api().layers))


class SettingsBody(BaseModel):
    """The body of PUT /settings/{name}: the `values` that are to change, mappings key by key, and the keys to `reset`,
    which the user's file has no longer. A key in both is replaced as a whole.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    values: dict[str, Any] = Field(default_factory=dict)
    reset: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not (self.values or self.reset):
            raise ValueError("expected `values`, `reset` or both; there is nothing to change")
        return self


class SecretBody(BaseModel):
    """The body of PUT /secrets/{name}."""

    model_config = ConfigDict(extra="forbid", strict=True)
    value: SecretStr = Field(strict=False)


def add_settings_routes(routes: APIRouter) -> None:
    """The routes under /settings and /secrets."""
    settings = _Settings()
    routes.add_api_route("/settings", settings.listing, methods=["GET"])
    routes.add_api_route("/settings/{name}", settings.show, methods=["GET"])
    routes.add_api_route("/settings/{name}", settings.change, methods=["PUT"], openapi_extra=takes(SettingsBody))
    secrets = _Secrets()
    routes.add_api_route("/secrets", secrets.listing, methods=["GET"])
    routes.add_api_route("/secrets/{name}", secrets.store, methods=["PUT"], openapi_extra=takes(SecretBody))
    routes.add_api_route("/secrets/{name}", secrets.remove, methods=["DELETE"])


class _Settings:
    @open_to(Access.OWNER)
    async def listing(self) -> Response:
        """Every file of settings: which participants read it, its keys with their texts, and which the user changed."""
        return JsonResponse({"settings": await _done(_files().described)})

    @open_to(Access.OWNER)
    async def show(self, name: PathId) -> Response:
        """One settings file: schema, texts, values with their sources, defaults, the user's file, and the participants
        to restart.
        """
        return JsonResponse(await _done(_files().show, name))

    @open_to(Access.TOKEN)
    async def change(self, name: PathId, request: Request) -> Response:
        """Change or reset keys in the user's file, and nothing else in it; this counts from the next restart on."""
        body = await read_body(request, SettingsBody)
        return JsonResponse(await _done(_files().change, name, body.values, body.reset))


class _Secrets:
    @open_to(Access.OWNER)
    async def listing(self) -> Response:
        """The names of the secrets and which settings name them, also of those that are missing; never a value."""
        stored, used = await _done(_store().all), await _done(_files().secrets_named)
        return JsonResponse(
            {
                "secrets": [
                    {
                        "name": name,
                        "set_at": stored[name].set_at if name in stored else None,
                        "used_by": used.get(name, []),
                    }
                    for name in sorted({*stored, *used})
                ]
            }
        )

    @open_to(Access.TOKEN)
    async def store(self, name: PathId, request: Request) -> Response:
        """Store a secret in place of the one by that name; participants read it when they start."""
        body = await read_body(request, SecretBody)
        await _done(_store().set, name, body.value.get_secret_value())
        return JsonResponse({"name": name})

    @open_to(Access.TOKEN)
    async def remove(self, name: PathId) -> Response:
        """Delete a secret; a process that has read it keeps it until it ends."""
        if name not in await _done(_store().all):
            raise RequestRefused("not_found", f"there is no secret {name}")
        await _done(_store().remove, name)
        return JsonResponse({"name": name})


def _store() -> SecretStore:
    return SecretStore(api().data_dir)


async def _done(work: Callable[..., T], *arguments: Any) -> T:
    try:
        return await asyncio.to_thread(work, *arguments)
    except ConfigError as error:
        raise RequestRefused("invalid", str(error)) from None


# Upkeep: the doctor's findings, and backups.

DOCTOR_SECONDS = 120.0
TRY_SECONDS = 15.0
CHECK_SECONDS = 3600.0  # a large model on a processor alone is slow
UNFIT = 1  # the exit status of `local2 model check` for a model that fails


class ModelCheckBody(BaseModel):
    """The body of POST /models/check: a model as /models names it."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class ServerBody(BaseModel):
    """The body of POST /models/servers/try: a model server, as models.yaml would name it, with its key. Google's needs
    no `url`."""

    model_config = ConfigDict(extra="forbid", strict=True)
    kind: Literal["ollama", "openai", "google_genai"]
    url: Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)] = ""
    api_key: SecretStr | None = Field(None, strict=False)


class _Upkeep:
    """Each is done once at a time; who asks meanwhile waits for their turn."""

    def __init__(self) -> None:
        self.doctor, self.backup, self.check = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()


def _upkeep() -> _Upkeep:
    return api().part(_Upkeep, _Upkeep)


def add_upkeep_routes(routes: APIRouter) -> None:
    """The routes /doctor, /models/check, /models/servers/try and /backups."""

    @routes.get("/doctor")
    @open_to(Access.OWNER)
    async def doctor() -> Response:
        """The findings of `local2 doctor` for this system, each with its fix."""
        async with _upkeep().doctor:
            return JsonResponse(await _examined())

    @routes.post("/models/check", openapi_extra=takes(ModelCheckBody))
    @open_to(Access.TOKEN)
    async def check(request: Request) -> Response:
        """Test whether a model can grade answers and extract facts, as `local2 model check` does; this takes minutes.
        The result is stored; `lines` say how each test went."""
        name = (await read_body(request, ModelCheckBody)).name
        async with _upkeep().check:
            status, lines, error = await _run(["model", "check"], [name], CHECK_SECONDS)
        if status not in (0, UNFIT) or not lines:
            raise RequestRefused("unavailable", error or f"the test of {name} ended without a result")
        return JsonResponse({"name": name, "is_fit": status == 0, "lines": lines.splitlines()})

    @routes.post("/models/servers/try", openapi_extra=takes(ServerBody))
    @open_to(Access.TOKEN)
    async def try_server(request: Request) -> Response:
        """Ask a model server for its models, before it is in the settings; nothing is stored. `url` is its address in
        full, and `is_cloud` says that what you say would leave your machines."""
        return JsonResponse(await _tried(await read_body(request, ServerBody)))

    @routes.get("/backups")
    @open_to(Access.OWNER)
    async def backups() -> Response:
        """The backups in the folder beside the data directory, the latest first."""
        from local.run.upkeep import backups_folder, made_backups

        found = await asyncio.to_thread(made_backups, api().data_dir)
        return JsonResponse({"folder": str(backups_folder(api().data_dir)), "backups": found})

    @routes.post("/backups")
    @open_to(Access.TOKEN)
    async def back_up() -> Response:
        """Copy all stored data to a new folder beside the data directory, while the system runs."""
        from local.run.upkeep import back_up, backups_folder, made_backups

        async with _upkeep().backup:
            target = backups_folder(api().data_dir) / time.strftime("%Y-%m-%d-%H%M%S")
            try:
                await asyncio.to_thread(back_up, api().data_dir, target)
            except BackupRefused as error:
                raise RequestRefused("conflict", str(error)) from None
            made = await asyncio.to_thread(made_backups, api().data_dir)
        return JsonResponse({"backup": next(each for each in made if each["folder"] == str(target))}, 201)


async def _tried(asked: ServerBody) -> dict[str, Any]:
    from local.models.ollama import OllamaModel
    from local.models.router import open_client
    from local.models.settings import normalise_base_url, normalise_host
    from local.run.backend import GOOGLE_URL

    try:
        if asked.kind == "ollama":
            endpoint = Endpoint(kind="ollama", url=normalise_host(asked.url), allow_cloud=True)
        else:
            standard = GOOGLE_URL if asked.kind == "google_genai" else ""
            endpoint = Endpoint(kind="openai", url=normalise_base_url(asked.url or standard), api_key=asked.api_key)
        client = open_client(endpoint, timeout_seconds=TRY_SECONDS)
        try:
            async with asyncio.timeout(TRY_SECONDS):
                found = await client.pulled() if isinstance(client, OllamaModel) else await client.listed()
        finally:
            await client.close()
    except ConfigError as error:
        raise RequestRefused("invalid", str(error)) from None
    except (ModelError, TimeoutError) as error:
        text = str(error) or f"{endpoint.url} has not answered within {TRY_SECONDS:g} s"
        raise RequestRefused("unavailable", text) from None
    names = sorted(each if isinstance(each, str) else each.name for each in found)
    return {"url": endpoint.url, "is_cloud": is_cloud(endpoint.url), "models": names}


async def _examined() -> Any:
    """The findings of the command."""
    _, found, _ = await _run(["doctor", "--json"], [], DOCTOR_SECONDS)
    try:
        return json.loads(found)
    except ValueError:
        text = "the checks ended without a result; run `local2 doctor` in a terminal to see why"
        raise RequestRefused("unavailable", text) from None


async def _run(command: list[str], arguments: list[str], seconds: float) -> tuple[int, str, str]:
    """Run one of our commands for this data directory, in a process of its own because it loads what the API does
    without. Returns its exit status, its output, and the last line of its errors. Raises `RequestRefused` (timeout)."""
    folders = [("--config-dir", str(folder)) for folder in api().layers[-1:] if folder.is_dir()]
    options = ["--data-dir", str(api().data_dir), *(word for pair in folders for word in pair)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "local.cli.entry", *command, *options, *(["--", *arguments] if arguments else []),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env=environment_with({}),
    )  # fmt: skip
    try:
        async with asyncio.timeout(seconds):
            output, error = await process.communicate()
    except TimeoutError:
        name = f"local2 {' '.join(command)}"
        text = f"`{name}` took longer than {seconds:g} s; run it in a terminal to see what takes so long"
        raise RequestRefused("timeout", text) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = error.decode(errors="replace").strip()
    return process.returncode or 0, output.decode(errors="replace"), text.rpartition("\n")[2].removeprefix("local2: ")
