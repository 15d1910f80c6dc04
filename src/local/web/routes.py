"""The HTTP routes by which a user loads a picture that an answer names, and the owner tries the web search."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, RequestRefused, read_body, takes
from local.api.security import Access, open_to
from local.core.config import load
from local.core.errors import ToolError
from local.core.web_url import AddressGuard
from local.web.messages import SearchTrial, SearchTrialResult

FETCHER, SEARCHER = "web_fetch", "web_search"
SEARCH_SECONDS = 60.0
MOST_BYTES = 5_000_000
KINDS = {"refused": "forbidden", "too_large": "too_large", "unsupported_type": "unsupported_media_type"}


class PictureBody(BaseModel):
    """The body of POST /pictures: the http or https address of a picture."""

    model_config = ConfigDict(extra="forbid", strict=True)
    url: Annotated[str, StringConstraints(min_length=1, max_length=8192)]


class SearchBody(BaseModel):
    """The body of POST /web/search."""

    model_config = ConfigDict(extra="forbid", strict=True)
    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=400)]


def add_routes(routes: APIRouter) -> None:
    """POST /pictures and POST /web/search."""

    @routes.post("/pictures", openapi_extra=takes(PictureBody))
    @open_to(Access.USERS)
    async def fetch(request: Request) -> Response:
        """Load a PNG, JPEG, GIF or WebP picture of at most 5 MB from a public address, for a user who asks for it. The
        address is checked as those of web_fetch are."""
        from local.web.fetch import PictureFetcher, WebFetchConfig

        asked = await read_body(request, PictureBody)
        if not api().requests.expects(FETCHER):
            raise RequestRefused("forbidden", f"pictures of other hosts need {FETCHER}, which does not take part here")
        config = await asyncio.to_thread(load, FETCHER, WebFetchConfig, api().layers)
        guard = AddressGuard(config.allow_hosts)
        fetcher = PictureFetcher(guard, timeout_seconds=config.timeout_seconds, max_bytes=MOST_BYTES)
        try:
            picture = await fetcher.fetch(asked.url)
        except ToolError as error:
            raise RequestRefused(KINDS.get(error.kind, "unavailable"), f"url: {error}", "url") from None
        headers = {"content-security-policy": "sandbox; default-src 'none'", "cache-control": "private, no-store"}
        return Response(picture.body, headers=headers, media_type=picture.media_type.name)

    @routes.post("/web/search", openapi_extra=takes(SearchBody))
    @open_to(Access.TOKEN)
    async def search(request: Request) -> Response:
        """Search the web once, with the tool's settings at its start; returns the text that a model would read."""
        body = await read_body(request, SearchBody)
        asked = SearchTrial(query=body.query)
        found = await api().ask(SEARCHER, asked, SearchTrialResult, seconds=SEARCH_SECONDS)
        return JsonResponse({"provider": found.provider, "text": found.text, "sources": found.sources})
