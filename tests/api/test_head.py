"""HEAD on the real API: the answer of GET without the body."""

from __future__ import annotations

import httpx


async def test_the_answer_is_that_of_get_without_its_body(client: httpx.AsyncClient) -> None:
    for path in ["/", "/health", "/sessions", "/openapi.json", "/sessions/none", "/nowhere", "/query"]:
        head, got = await client.head(path), await client.get(path)
        assert (head.status_code, head.content) == (got.status_code, b"")
        assert head.headers.keys() == got.headers.keys()
        assert head.headers["content-type"] == got.headers["content-type"]
