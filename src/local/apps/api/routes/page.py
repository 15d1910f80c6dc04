"""The page for people, and the files it is made of. They hold nobody's data, so that anybody may have them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import api
from local.apps.api.errors import RequestRefused
from local.apps.api.page_bundle import FILES_PATH, INDEX, PageBundle

CONTENT_SECURITY_POLICY = "; ".join([
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
])  # fmt: skip
"""No string becomes HTML or a script, nothing is asked of another host, and nobody frames the page."""

SAFE = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "vary": "accept-encoding",
}
KEPT_FOR_GOOD = {"cache-control": "public, max-age=31536000, immutable"}


def add_routes(routes: APIRouter) -> None:
    """GET / and the files of the page."""
    page = _Page()
    routes.add_api_route("/", page.index, methods=["GET"])
    routes.add_api_route("/favicon.ico", page.icon, methods=["GET"])
    routes.add_api_route("/manifest.webmanifest", page.manifest, methods=["GET"])
    routes.add_api_route(FILES_PATH + "/{digest}/{path:path}", page.file, methods=["GET"])


class _Page:
    @open_to(Access.ANYBODY)
    async def index(self, request: Request) -> Response:
        """The page, as HTML."""
        return await self._newest(INDEX, request)

    @open_to(Access.ANYBODY)
    async def icon(self, request: Request) -> Response:
        """Its picture, where browsers look for it by themselves."""
        return await self._newest("favicon.svg", request)

    @open_to(Access.ANYBODY)
    async def manifest(self, request: Request) -> Response:
        """What makes it an application that can be installed."""
        return await self._newest("manifest.webmanifest", request)

    @open_to(Access.ANYBODY)
    async def file(self, digest: str, path: str, request: Request) -> Response:
        """One of its files, of that digest and no other: versions are never mixed."""
        bundle = await api().page.bundle(digest)
        if bundle is None:
            raise RequestRefused("not_found", "the page has changed since: load it again")
        return _sent(bundle, path, request, KEPT_FOR_GOOD)

    async def _newest(self, path: str, request: Request) -> Response:
        bundle = await api().page.newest()
        tag = f'W/"{bundle.digest}"'
        headers = {"cache-control": "no-cache", "etag": tag}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=SAFE | headers)
        return _sent(bundle, path, request, headers)


def _sent(bundle: PageBundle, path: str, request: Request, headers: Mapping[str, str]) -> Response:
    file = bundle.files.get(path)
    if file is None:
        raise RequestRefused("not_found", f"the page has no file {path[:200]!r}")
    headers = {**SAFE, **headers, "content-type": file.media_type}
    if file.packed is None or not _takes_gzip(request.headers.get("accept-encoding", "")):
        return Response(file.content, headers=headers)
    return Response(file.packed, headers={**headers, "content-encoding": "gzip"})


def _takes_gzip(accepted: str) -> bool:
    named = [re.sub(r"\s", "", one.lower()) for one in accepted.split(",")]
    return any(re.fullmatch(r"(gzip|\*)(;q=(1|0\.[0-9]*[1-9])[0-9.]*)?", one) for one in named)
