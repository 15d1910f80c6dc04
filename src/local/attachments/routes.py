"""The HTTP routes of attachments: upload, look up, download and delete files that queries refer to."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, RequestRefused
from local.api.security import UPLOAD_PATH, Access, Caller, open_to

FileId = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, Query(min_length=1, max_length=255)]
HINT = f"send the file itself as the body: curl --data-binary @FILE 'http://…{UPLOAD_PATH}?name=FILE'"
ANY_FILE = "application/octet-stream"  # which no browser shows as a page
ANY_BODY = {"requestBody": {"required": True, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}}


def add_routes(routes: APIRouter) -> None:
    """The routes under /attachments."""

    @routes.post(UPLOAD_PATH, openapi_extra=ANY_BODY)
    @open_to(Access.USERS)
    async def add(request: Request, name: FileName, caller: Caller) -> Response:
        """Upload a file as the raw body; its text is extracted. Uploading the same file again returns the same
        attachment.
        """
        if request.headers.get("content-type", "").lower().startswith("multipart/"):
            raise RequestRefused("unsupported_media_type", f"forms are not accepted; {HINT}")
        data = await request.body()
        await api().guests.require_room(caller.user_id, len(data))
        return JsonResponse(await api().attachments.add(name, data, caller.name), 201)

    @routes.get(UPLOAD_PATH + "/{attachment_id}")
    @open_to(Access.USERS)
    async def show(attachment_id: FileId, caller: Caller) -> Response:
        """Get an attachment's name, size and how much of it was read."""
        return JsonResponse(await api().attachments.look_up(attachment_id, caller.user_id))

    @routes.get(UPLOAD_PATH + "/{attachment_id}/content")
    @open_to(Access.USERS)
    async def content(attachment_id: FileId, caller: Caller) -> Response:
        """Download the file: pictures inline, other files as an attachment."""
        view, data = await api().attachments.content(attachment_id, caller.user_id)
        shown = "inline" if view.is_picture else "attachment"
        headers = {
            "content-disposition": f"{shown}; filename*=UTF-8''{quote(view.name, safe='')}",
            "content-security-policy": "sandbox; default-src 'none'",
            "cache-control": "private, no-store",
        }
        return Response(data, headers=headers, media_type=view.media_type if view.is_picture else ANY_FILE)

    @routes.delete(UPLOAD_PATH + "/{attachment_id}")
    @open_to(Access.USERS)
    async def delete(attachment_id: FileId, caller: Caller) -> Response:
        """Delete an attachment permanently. If other users uploaded the same file they keep it, unless the owner
        deletes it.
        """
        await api().attachments.delete(attachment_id, caller.user_id)
        return JsonResponse({"id": attachment_id, "deleted": True})
