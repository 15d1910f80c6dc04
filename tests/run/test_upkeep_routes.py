"""Upkeep over HTTP, the owner's alone: models are tested; backups are made while the system runs, and listed."""

from __future__ import annotations

from pathlib import Path

from local.core.data_dir import make_owner_token
from local.run.upkeep import MANIFEST
from tests.api.conftest import System, bare_system, system

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
