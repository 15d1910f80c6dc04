"""The routes under /soul and /trust: a proposed change is approved, and a folder is trusted, as it was shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from local.core.data_dir import make_owner_token
from local.core.versioned_text import Soul, TextProposals
from local.skills.library import SkillDraft, SkillProposalBook

System = Any  # of conftest.py


async def test_the_soul_is_written_changed_as_proposed_and_brought_back(
    system: System, client: httpx.AsyncClient
) -> None:
    folder: Path = system.journal_file.parent
    soul = Soul(folder, folder)
    empty: dict[str, Any] = {"path": str(folder / "SOUL.md"), "text": "", "proposal": None, "versions": []}
    assert (await client.get("/soul")).json() == empty
    assert (await client.put("/soul", json={"text": "Be kind."})).status_code == 401, "the Unix user is not enough"
    client.headers["authorization"] = f"Bearer {make_owner_token(folder)}"
    written = (await client.put("/soul", json={"text": "Be kind.\n"})).json()
    assert (written["text"], written["versions"][0]["by"]) == ("Be kind.", "by hand")
    assert soul.path.read_text() == "Be kind.\n"
    assert (await client.put("/soul", json={"text": "ä" * 20_000})).status_code == 422
    await approve(client, "/soul", TextProposals(soul))
    assert soul.text() == "Be brief."
    assert (await client.post("/soul/revert", json={"version": 1})).json() == {"version": 1}
    shown = (await client.get("/soul")).json()
    assert (shown["text"], [each["number"] for each in shown["versions"]]) == ("Be kind.", [3, 2, 1])
    assert (await client.post("/soul/revert", json={"version": 9})).status_code == 409


async def approve(client: httpx.AsyncClient, path: str, proposals: TextProposals) -> None:
    """Approve what is proposed, after another proposal has taken the place of the first one."""
    proposals.propose("Be loud.", "dreamer")
    shown = (await client.get(path if path == "/soul" else f"{path}/proposal")).json()["proposal"]
    assert shown["diff"][-1] == "+Be loud."
    proposals.propose("Be brief.", "dreamer")
    decision = {"decision": "approve", "digest": shown["digest"]}
    refused = await client.post(f"{path}/proposal", json=decision)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "changed")
    waiting = proposals.waiting()
    assert waiting is not None
    done = await client.post(f"{path}/proposal", json={**decision, "digest": waiting.digest})
    assert (done.status_code, proposals.waiting()) == (200, None)


async def test_a_proposed_skill_is_approved_as_it_was_shown(
    system: System, client: httpx.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = tmp_path / "settings", tmp_path / "data"  # the API of these tests has one folder for both
    monkeypatch.setattr("local.skills.routes._folders", lambda: folders)
    client.headers["authorization"] = f"Bearer {make_owner_token(system.journal_file.parent)}"
    book = SkillProposalBook(*folders)
    assert book.propose(SkillDraft("tides", "Tell the tides.", "Look at the moon."), None, "dreamer")
    await approve(client, "/skills/tides", TextProposals(book.text("tides")))
    assert book.text("tides").text() == "Be brief."


async def test_a_folder_is_trusted_as_it_was_shown_until_it_is_not(
    system: System, client: httpx.AsyncClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("notes")
    (folder / ".local2").mkdir(parents=True)
    (folder / ".local2" / "LOCAL2.md").write_text("Use metres.")
    named = {"folder": str(folder)}
    shown = (await client.get("/trust/contents", params=named)).json()
    assert shown["files"] == [{"path": ".local2/LOCAL2.md", "text": "Use metres."}]
    asked = {**named, "digest": shown["digest"]}
    assert (await client.post("/trust", json=asked)).status_code == 401, "the Unix user is not enough"
    client.headers["authorization"] = f"Bearer {make_owner_token(system.journal_file.parent)}"
    (folder / ".local2" / "LOCAL2.md").write_text("Use miles.")
    assert (await client.post("/trust", json=asked)).json()["error"]["kind"] == "changed"
    (folder / ".local2" / "LOCAL2.md").write_text("Use metres.")
    assert (await client.post("/trust", json=asked)).status_code == 200
    [row] = (await client.get("/trust")).json()["folders"]
    assert (row["path"], row["problem"]) == (str(folder), "")
    (folder / ".local2" / "LOCAL2.md").write_text("Use miles.")
    assert "other instructions than when it was trusted" in (await client.get("/trust")).json()["folders"][0]["problem"]
    assert (await client.delete("/trust", params=named)).status_code == 200
    assert (await client.get("/trust")).json() == {"folders": []}
    for wrong, status in (("notes", 422), ("/", 409)):
        assert (await client.get("/trust/contents", params={"folder": wrong})).status_code == status
