"""POST /sessions/import: conversations of another program, from the file that it exports."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from fastapi import APIRouter
from pydantic import TypeAdapter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, RequestRefused
from local.api.security import IMPORT_PATH, Access, Caller, open_to
from local.bus.messages import ImportedExchange
from local.core.database import store_failure
from local.core.errors import SessionExists
from local.generator import chat_files
from local.generator.chat_files import LOCAL2
from local.generator.imports import TITLE_CHARACTERS, imported_session_id
from local.generator.titles import clean_title
from local.memory.messages import OWNER
from local.queries.errors import QueryRefused

Json = dict[str, Any]

WORKER = (sys.executable, "-I", str(Path(chat_files.__file__)))
UPLOAD_SECONDS, READ_SECONDS, LOOK_UP_SECONDS, STORE_SECONDS = 1800.0, 60.0, 15.0, 30.0
AT_ONCE = 500  # ids that are looked up
SIDE_BY_SIDE = 4  # conversations that are stored
WRITTEN_AT_ONCE = 1024 * 1024  # bytes
MOST_LISTED, MOST_REASONS = 100, 20
EXCHANGES = TypeAdapter(tuple[ImportedExchange, ...])
ANY_BODY = {"requestBody": {"required": True, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}}


def add_import_routes(routes: APIRouter) -> None:
    """POST /sessions/import."""
    importing = set[str]()

    @routes.post(IMPORT_PATH, openapi_extra=ANY_BODY)
    @open_to(Access.USERS)
    async def bring(request: Request, caller: Caller, preview: bool = False) -> Response:
        """Import the conversations of a file, sent as the raw body: an export of ChatGPT (`conversations.json`, or the
        ZIP file with it), or the JSON of Open WebUI, LibreChat or LoCAL2. With `preview` nothing is imported. A
        conversation that is here is not imported again.
        """
        if caller.name in importing:
            raise RequestRefused("busy", "another file of yours is being imported; try again when that is done")
        importing.add(caller.name)
        try:
            with TemporaryDirectory(prefix="local2-import-") as folder:
                upload, lines = Path(folder, "upload"), Path(folder, "lines")
                await _save(request, upload)
                told = await _while_connected(request, _read_chats(upload, lines))
                return JsonResponse(await _bring(told, lines, caller.user_id, preview=preview))
        finally:
            importing.discard(caller.name)


async def _bring(told: Json, lines: Path, user_id: str | None, *, preview: bool) -> Json:
    found = _found(told, user_id)
    known = await _known(found, user_id)
    new = [each for each in found if each.session_id not in known]
    await api().guests.require_room(user_id, sum(each.size for each in new), stores=not preview)
    result = _result(told, found, new)
    imported = list[bool]()
    waiting = iter(() if preview else new)

    async def work() -> None:
        for each in waiting:
            imported.append(await _import(each, lines, user_id, result["left_out"]))

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(SIDE_BY_SIDE):
                tasks.create_task(work())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return {"preview": preview, **result, "imported": sum(imported)}


class _Found(NamedTuple):
    """One conversation of the file; `at` and `size` are where its exchanges are in the file of lines, in bytes."""

    session_id: str
    source: str
    origin_id: str
    title: str
    turns: int
    cut: int
    at: int
    size: int


async def _save(request: Request, file: Path) -> None:
    """Write the body to a file."""
    waiting = bytearray()
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            with file.open("wb") as target:
                async for piece in request.stream():
                    waiting += piece
                    if len(waiting) >= WRITTEN_AT_ONCE:
                        await asyncio.to_thread(target.write, bytes(waiting))
                        waiting.clear()
                await asyncio.to_thread(target.write, bytes(waiting))
    except TimeoutError:
        raise RequestRefused("too_slow", f"the file did not arrive within {UPLOAD_SECONDS:g} s") from None
    except ClientDisconnect:
        raise RequestRefused("cancelled", "the upload was cut off") from None
    except OSError as error:
        raise store_failure(file, error, what="cannot be written: ") from None


async def _while_connected(request: Request, reading: Coroutine[Any, Any, Json]) -> Json:
    """What `reading` returns; it is cancelled when the client leaves. Raises `RequestRefused`."""
    read, left = asyncio.create_task(reading), asyncio.create_task(_left(request))
    try:
        await asyncio.wait({read, left}, return_when=asyncio.FIRST_COMPLETED)
        if not read.done():
            raise RequestRefused("cancelled", "the client has left")
        return read.result()
    finally:
        left.cancel()
        read.cancel()
        await asyncio.wait({read})  # so that the process has ended


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _read_chats(upload: Path, lines: Path) -> Json:
    """What the process that reads the file has told; it ends with this. Raises `RequestRefused`."""
    process = await asyncio.create_subprocess_exec(
        *WORKER, str(upload), str(lines), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL, cwd="/", env={"LANG": "C.UTF-8"},
    )  # fmt: skip
    assert process.stdout is not None, "it is a pipe"
    try:
        async with asyncio.timeout(READ_SECONDS):
            told: Json = json.loads(await process.stdout.read())
    except (TimeoutError, ValueError):
        raise RequestRefused("invalid", "the file takes too much memory or time to be read; split it") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        await process.wait()
    if "error" in told:
        raise RequestRefused("invalid", told["error"])
    return told


def _found(told: Json, user_id: str | None) -> list[_Found]:
    return [
        _Found(
            imported_session_id(user_id, one["source"], one["origin_id"]), one["source"], one["origin_id"],
            clean_title(one["title"], TITLE_CHARACTERS), one["turns"], one["cut"], one["offset"], one["size"],
        )
        for one in told["found"]
    ]  # fmt: skip


async def _known(found: list[_Found], user_id: str | None) -> set[str]:
    """The ids of those that are here: imported before, or, of an export of our own, still."""
    by_id = {each.session_id: each.session_id for each in found}
    by_id |= {each.origin_id: each.session_id for each in found if each.source == LOCAL2}
    ids, known = list(by_id), set[str]()
    for start in range(0, len(ids), AT_ONCE):
        among = ids[start : start + AT_ONCE]
        page = await api().session.look_up(
            "sessions", user_id or OWNER, LOOK_UP_SECONDS, among=among, limit=AT_ONCE, archived=None
        )
        known |= {by_id[row["session_id"]] for row in page["sessions"]}
    return known


def _result(told: Json, found: list[_Found], new: list[_Found]) -> Json:
    left_out = [{**one, "title": clean_title(one["title"], TITLE_CHARACTERS)} for one in told["left_out"]]
    return {
        "sources": sorted({each.source for each in found}),
        "found": len(found),
        "new": len(new),
        "known": len(found) - len(new),
        "turns": sum(each.turns for each in new),
        "cut": sum(each.cut for each in new),
        "conversations": [
            {"session_id": each.session_id, "title": each.title, "source": each.source, "turns": each.turns}
            for each in new[:MOST_LISTED]
        ],
        "left_out": left_out[:MOST_REASONS],
    }


async def _import(one: _Found, lines: Path, user_id: str | None, left_out: list[Json]) -> bool:
    """Have one conversation stored; False if it was here, or is left out."""
    fields: Json = {
        "of_user": user_id, "source": one.source, "origin_id": one.origin_id, "title": one.title,
        "exchanges": EXCHANGES.validate_json(await asyncio.to_thread(_line, lines, one)),
    }  # fmt: skip
    try:
        return bool((await api().session.look_up("import", one.session_id, STORE_SECONDS, **fields))["is_new"])
    except QueryRefused as refusal:
        if refusal.kind != SessionExists.kind:
            raise
        left_out.append({"title": one.title, "reason": str(refusal)})
        return False


def _line(lines: Path, one: _Found) -> bytes:
    with lines.open("rb") as file:
        file.seek(one.at)
        return file.read(one.size)
