"""The routes belong to the process; they use the context of the API that received the request."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from local.api.app import routed
from local.api.context import ApiContext, api
from local.api.http import JsonResponse


def named(version: str) -> ApiContext:
    fields: dict[str, Any] = dict.fromkeys(ApiContext.__slots__)
    return ApiContext(**{**fields, "version": version, "bus_streams": SimpleNamespace()})


async def test_requests_to_two_apis_at_once_get_each_its_own() -> None:
    both = asyncio.Barrier(2)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await both.wait()
        await JsonResponse(api().version)(scope, receive, send)

    async def ask(context: ApiContext) -> str:
        transport = httpx.ASGITransport(context.serving(app))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return cast(str, (await client.get("/")).json())

    assert await asyncio.gather(ask(named("1")), ask(named("2"))) == ["1", "2"]
    with pytest.raises(LookupError):
        api()


def test_the_routes_are_made_once() -> None:
    assert routed() is routed()
