"""Files over HTTP: sent, named in a query, removed."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

System = Any  # of conftest.py

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
UNKNOWN = "0" * 64


async def send(client: httpx.AsyncClient, name: str, data: bytes, **headers: str) -> httpx.Response:
    return await client.post("/attachments", params={"name": name}, content=data, headers=headers)


def kind(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["kind"]


async def test_a_file_that_is_sent_can_be_looked_at_and_removed(client: httpx.AsyncClient) -> None:
    sent = await send(client, "notes.md", b"# Cats\nThey sleep.")
    assert sent.status_code == 201
    view = sent.json()
    path = f"/attachments/{view['id']}"
    assert {**view, "id": ""} == {
        "id": "", "name": "notes.md", "media_type": "text/markdown", "size": 18, "characters": 18, "note": "",
    }  # fmt: skip
    assert (await client.get(path)).json() == view
    assert (await client.delete(path)).json() == {"id": view["id"], "deleted": True}
    assert kind(await client.get(path)) == kind(await client.delete(path)) == (404, "not_found")


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "image/png", ""])
async def test_the_type_that_a_client_claims_does_not_matter(client: httpx.AsyncClient, content_type: str) -> None:
    sent = await send(client, "a.png", PNG, **{"content-type": content_type})
    assert sent.json()["media_type"] == "image/png"


async def test_a_query_carries_the_ids_of_its_files(system: System, client: httpx.AsyncClient) -> None:
    kept = (await send(client, "a.txt", b"Hello.")).json()["id"]
    body = {"query": "hello", "query_id": "q1", "attachments": [kept]}
    assert (await client.post("/query", json=body)).status_code == 200
    assert system.generator.turns["q1"].attachments == (kept,)


async def test_a_query_that_names_what_is_not_there_is_refused_at_once(
    system: System, client: httpx.AsyncClient
) -> None:
    for attachments in ([UNKNOWN], ["../x"], [UNKNOWN] * 17, "x", [1]):
        refused = await client.post("/query", json={"query": "hello", "attachments": attachments})
        assert kind(refused) == (422, "invalid")
    assert not system.generator.turns


async def test_what_cannot_be_read_is_refused(client: httpx.AsyncClient) -> None:
    assert kind(await send(client, "a.zip", b"PK\x03\x04\0")) == (415, "unsupported_media_type")
    assert kind(await send(client, "a.txt", b"")) == (422, "invalid")
    assert kind(await client.post("/attachments", content=b"x")) == (422, "invalid")
    form = await client.post("/attachments?name=a", files={"file": ("a.txt", b"x")})
    assert kind(form) == (415, "unsupported_media_type") and "--data-binary" in form.text


async def test_files_may_be_larger_than_other_bodies_up_to_their_own_limit(system: System) -> None:
    async with system.frontend(max_attachment_mb=2) as client:
        assert (await send(client, "a.txt", b"word " * 400_000)).status_code == 201
        assert kind(await send(client, "a.txt", b"word " * 500_000)) == (413, "too_large")
        assert kind(await client.post("/query", json={"query": "x" * 1_200_000})) == (413, "too_large")


async def test_pages_of_other_sites_send_no_files(client: httpx.AsyncClient) -> None:
    refused = await send(client, "a.txt", b"x", origin="http://evil.example")
    assert kind(refused) == (403, "forbidden")


def completion(*urls: str) -> dict[str, Any]:
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    content: list[dict[str, Any]] = [{"type": "text", "text": "hello"}, *pictures]
    earlier = [{"role": "user", "content": content}, {"role": "assistant", "content": "Hi."}]
    return {"model": "local2", "messages": [*earlier, {"role": "user", "content": content}]}


async def test_a_picture_in_an_openai_message_is_an_attachment(system: System, client: httpx.AsyncClient) -> None:
    url = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert (await client.post("/v1/chat/completions", json=completion(url))).status_code == 200
    (asked,) = system.generator.turns.values()
    (kept,) = asked.attachments
    assert (await client.get(f"/attachments/{kept}")).json()["media_type"] == "image/png"
    assert asked.history[0] == {"role": "user", "content": "hello\n[a picture was here]"}


async def test_a_picture_that_is_none_or_elsewhere_is_refused(client: httpx.AsyncClient) -> None:
    for url in ["http://127.0.0.1/a.png", "data:,", "data:image/png;base64,!", "data:image/png;base64,SGVsbG8u"]:
        refused = await client.post("/v1/chat/completions", json=completion(url))
        assert refused.status_code == 400 and refused.json()["error"]["type"] == "invalid_request_error"


async def test_a_picture_is_given_to_be_shown_and_anything_else_to_be_kept_and_neither_can_run(
    client: httpx.AsyncClient,
) -> None:
    page = b"<html><p>Cats sleep.</p><script>alert(1)</script></html>"
    for name, data, disposition, media_type in (
        ("Käse.png", PNG, "inline; filename*=UTF-8''K%C3%A4se.png", "image/png"),
        ("a.html", page, "attachment; filename*=UTF-8''a.html", "application/octet-stream"),
    ):  # fmt: skip
        sent = (await send(client, name, data)).json()
        given = await client.get(f"/attachments/{sent['id']}/content")
        assert given.content == data
        assert given.headers["content-disposition"] == disposition
        assert given.headers["content-type"] == media_type
        assert given.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert given.headers["x-content-type-options"] == "nosniff"
    assert kind(await client.get(f"/attachments/{UNKNOWN}/content")) == (404, "not_found")
