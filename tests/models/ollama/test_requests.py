"""Everything but chat: show, models, version, embed, pull."""

from __future__ import annotations

from typing import Any

import pytest

from local.core.errors import ModelError


async def test_a_silent_server_is_a_timeout(server: Any) -> None:
    server.scripts["/api/show"] = lambda exchange: exchange.disconnected()
    async with server.client(other=0.05) as model:
        with pytest.raises(ModelError, match=r"0\.05 s \(/api/show\)") as caught:
            await model.show("m")
    assert caught.value.kind == "timeout"


async def test_show_tells_capabilities_and_context(server: Any) -> None:
    details = {"general.architecture": "gemma4", "gemma4.context_length": 131072}
    server.answers("/api/show", {"capabilities": ["tools"], "model_info": details})
    async with server.client() as model:
        info = await model.show("m")
    assert (info.name, info.capabilities, info.context_length) == ("m", frozenset({"tools"}), 131072)


async def test_version_and_models_are_what_the_server_says(server: Any) -> None:
    server.answers("/api/version", {"version": "0.12.6"})
    server.answers("/api/tags", {"models": [{"model": "gemma4:12b", "size": 1}]})
    async with server.client() as model:
        assert await model.version() == "0.12.6"
        assert await model.models() == ["gemma4:12b"]


async def test_an_answer_that_ollama_would_not_give_is_a_bad_stream(server: Any) -> None:
    server.answers("/api/version", {"version": {}})
    server.answers("/api/tags", ["x"])
    async with server.client() as model:
        for request in (model.version(), model.models()):
            with pytest.raises(ModelError) as caught:
                await request
            assert caught.value.kind == "bad_stream"


async def test_each_text_gets_its_vector(server: Any) -> None:
    server.answers("/api/embed", {"embeddings": [[1, 0.5], [0, 1]]})
    async with server.client() as model:
        assert await model.embed("e", ["a", "b"]) == [[1.0, 0.5], [0.0, 1.0]]
        assert await model.embed("e", []) == []
        with pytest.raises(ModelError, match="2 vectors for 1 texts"):
            await model.embed("e", ["a"])
    assert server.bodies("/api/embed")[0] == {"model": "e", "input": ["a", "b"], "keep_alive": "10m"}


async def test_a_pull_tells_its_progress_and_its_failure(server: Any) -> None:
    progress = {"status": "pulling", "total": 10, "completed": 5}
    async with server.client() as model:
        server.answers("/api/pull", progress, {"status": "success"})
        assert [step async for step in model.pull("m")] == [progress, {"status": "success"}]
        for last, kind in (({"error": "file does not exist"}, "server_error"), (progress, "stream_cut")):
            server.answers("/api/pull", progress, last)
            with pytest.raises(ModelError) as caught:
                [step async for step in model.pull("m")]
            assert caught.value.kind == kind
