"""The routes under /hooks: hooks.yaml is changed hook by hook, and keeps what else it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from local.core.config import load
from local.hooks.hooks import HooksConfig
from tests.api.conftest import bare_system, system

__all__ = ["bare_system", "system"]
OFFICE = {"name": "office-hours", "events": ["before_tool"], "command": ["python3"], "script": "office.py"}


async def test_a_hook_is_added_listed_and_removed_and_the_rest_of_the_file_stays(system: Any, tmp_path: Path) -> None:
    (tmp_path / "hooks.yaml").write_text("# mine\nhooks: []\nmemory_mb: 64\n")
    async with system.frontend(api_token="owner") as client:
        assert (await client.post("/hooks", json=OFFICE)).status_code == 401
        client.headers["authorization"] = "Bearer owner"
        added = await client.post("/hooks", json=OFFICE)
        assert added.status_code == 201, added.text
        again = await client.post("/hooks", json=OFFICE)
        assert (again.status_code, "choose another name" in again.text) == (409, True)
        bad = await client.post("/hooks", json={**OFFICE, "name": "b", "events": ["after_turn"], "command": []})
        assert bad.status_code == 422
        listed = (await client.get("/hooks")).json()
        assert [(hook["name"], hook["seconds"]) for hook in listed["hooks"]] == [("office-hours", 5.0)]
        assert (listed["runs_commands"], listed["scripts"]) == (False, str(tmp_path / "hooks"))
        assert (await client.delete("/hooks/nothing")).status_code == 404
        assert (await client.delete("/hooks/office-hours")).json()["removed"]
    assert load("hooks", HooksConfig, [tmp_path]).memory_mb == 64
    assert "# mine" in (tmp_path / "hooks.yaml").read_text()
