"""The routes under /soul: the text, its versions, and a proposed change, which is approved as it was shown."""

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
