"""Upkeep over HTTP, the owner's alone: models are tested; backups are made while the system runs, and listed."""

from __future__ import annotations

from pathlib import Path

import httpx

from local.core.data_dir import make_owner_token
from local.run.upkeep import MANIFEST
from tests.api.conftest import System, bare_system, system
from tests.models.wires import ScriptedServer

__all__ = ["bare_system", "system"]


async def test_a_backup_is_made_beside_the_data_and_listed(system: System) -> None:
    folder = system.journal_file.parent
    owner = {"authorization": f"Bearer {make_owner_token(folder)}"}
    async with system.frontend() as client:
        found = (await client.get("/backups", headers=owner)).json()
        assert (Path(found["folder"]).parent, found["backups"]) == (folder.parent, [])
        refused = await client.post("/backups")
        assert refused.status_code in (401, 403)
        made = (await client.post("/backups", headers=owner)).json()["backup"]
        assert (Path(made["folder"]) / MANIFEST).exists() and made["size"] > 0 and made["files"] > 0
        (Path(found["folder"]) / "half").mkdir()
        assert (await client.get("/backups", headers=owner)).json()["backups"] == [made]


async def test_a_model_that_cannot_be_tested_is_an_error_with_the_command_s_reason(system: System) -> None:
    folder = system.journal_file.parent
    owner = {"authorization": f"Bearer {make_owner_token(folder)}"}
    async with system.frontend() as client:
        asked = await client.post("/models/check", json={"name": "--help"}, headers=owner)
    assert asked.status_code == 503
    assert "--help" in asked.json()["error"]["message"], "it is a name, and no option"


async def test_a_model_server_is_asked_for_its_models_before_it_is_in_the_settings(system: System) -> None:
    owner = {"authorization": f"Bearer {make_owner_token(system.journal_file.parent)}"}
    async with ScriptedServer().serving() as server, system.frontend() as client:
        server.answers("/v1/models", {"data": [{"id": "small"}, {"id": "large"}]})
        server.answers("/api/tags", {"models": [{"model": "gemma:2b", "size": 1}]})

        async def asked(kind: str, url: str, **more: str) -> httpx.Response:
            body = {"kind": kind, "url": url, **more}
            return await client.post("/models/servers/try", json=body, headers=owner)

        found = (await asked("openai", server.url, api_key="sk-secret")).json()
        assert found == {"url": f"{server.url}/v1", "is_cloud": False, "models": ["large", "small"]}
        assert "authorization: bearer sk-secret" in server.heads[-1].lower()
        assert (await asked("ollama", server.url)).json()["models"] == ["gemma:2b"]
        wrong = await asked("openai", "ftp://nowhere")
        assert (wrong.status_code, "ftp" in wrong.json()["error"]["message"]) == (422, True)
        server.answers("/v1/models", {"error": {"message": "no such key"}}, status=401)
        refused = await asked("openai", server.url, api_key="sk-secret")
        assert refused.status_code == 503
        assert "sk-secret" not in refused.text
