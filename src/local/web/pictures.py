"""Fetching one picture from the public web, with the same guard as a page."""

from __future__ import annotations

import httpx

from local.core.attachments import picture_type
from local.core.errors import ToolError
from local.core.web_text import Document
from local.core.web_url import MediaType, WebUrl
from local.web.fetch import Fetcher, read_body


class PictureFetcher(Fetcher):
    """A client that fetches PNG, JPEG, GIF and WebP pictures; the bytes decide, not the type that the server names."""

    accept = "image/webp, image/png, image/jpeg, image/gif;q=0.9"

    async def _document(self, url: WebUrl, response: httpx.Response) -> Document:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        body = await read_body(response.aiter_raw(), encoding, self._max_bytes)
        kind = picture_type(body)
        if kind is None:
            text = f"{url} is no PNG, JPEG, GIF or WebP picture"
            raise ToolError(text, kind="unsupported_type")
        return Document(str(url), MediaType(kind), body)
