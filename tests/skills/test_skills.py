"""Skills as the tools for files serve them: read by the model, told of to respondents and frontends, watched."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from local.bus.envelope import Trace
from local.bus.messages import ToolRequest, ToolResult
from local.core.errors import ConfigError
from local.core.trust import TrustRegistry
from local.files.participant import FileTools
from local.files.tools import FilesConfig
from local.runtime.participant import Resources
from local.skills import tools as skill_keeper
from local.skills.messages import SkillRequest, SkillResult, SkillsChanged
from local.skills.tools import approve, to_approve
from tests.tools import conftest as tools_stage

serve, granted = tools_stage.serve, tools_stage.granted
Serve = Callable[..., Awaitable[Any]]
SECONDS = 90.0


def write(folder: Path, body: str = "Look at the moon.", description: str = "Tell the tides.") -> Path:
    """A skill in a folder, which gives it its name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: {description}\n---\n{body}\n")
    return folder


class Skills:
    """What a served system has of them, and what it tells of changes."""

    def __init__(self, caller: Any, folder: Path, extra: Path, workspace: Path) -> None:
        self.bus, self.folder, self.extra, self.caller = caller.bus, folder, extra, caller
        self.settings, self.workspace = folder.parent, workspace
        self.changes: asyncio.Queue[SkillsChanged] = asyncio.Queue()
        self.bus.subscribe(
            SkillsChanged.subject, lambda envelope: self.changes.put_nowait(SkillsChanged.decode(envelope.payload))
        )

    async def read(self, name: str, file: str = "", user: str | None = None) -> ToolResult:
        request = ToolRequest(
            query_id="q", call_id="q:0:0", tool="read_skill", args={"name": name, **({"file": file} if file else {})}
        )
        result: ToolResult = await self.bus.request(request, ToolResult, SECONDS, Trace("q", None, "s", user))
        return result

    async def ask(self, verb: Any, name: str = "") -> SkillResult:
        result: SkillResult = await self.bus.request(SkillRequest(verb=verb, name=name), SkillResult, SECONDS)
        return result

    async def changed(self) -> SkillsChanged:
        return await asyncio.wait_for(self.changes.get(), SECONDS)

    async def offered(self, name: str) -> None:
        """Until a tool is offered."""
        async with asyncio.timeout(SECONDS):
            while (await self.caller.schemas.get()).tool != name:
                pass


@pytest.fixture
async def skills(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Skills:
    monkeypatch.setattr(skill_keeper, "LOOK_SECONDS", 0.01)
    root, settings = tmp_path / "work", tmp_path / "settings"
    root.mkdir()
    resources = Resources(tmp_path / "data", workspace=root, layers=(tmp_path / "shipped", settings))
    caller = await serve(FileTools.build(FilesConfig(skill_folders=(tmp_path / "extra",)), resources))
    skills = Skills(caller, settings / "skills", tmp_path / "extra", root)
    await skills.bus.ready()
    return skills


async def test_a_broken_skill_is_reported_and_the_others_work(skills: Skills) -> None:
    write(skills.folder / "tides")
    (skills.folder / "maps").mkdir(parents=True)
    (skills.folder / "maps" / "SKILL.md").write_text("---\nname: maps\n---\nLook.")
    while (changed := await skills.changed()) != SkillsChanged(ready=("tides",), others=("maps",)):
        assert set(changed.ready) | set(changed.others) <= {"tides", "maps"}
    told = await skills.ask("list")
    assert [(each.name, each.status, each.error) for each in told.skills] == [
        ("maps", "broken", "maps/SKILL.md: description: is missing"), ("tides", "ready", ""),
    ]  # fmt: skip
    assert told.places == (str(skills.folder), str(skills.extra))
    refused = (await skills.read("maps")).error
    assert refused is not None
    assert (refused.kind, refused.message) == (
        "conflict", "the skill maps cannot be used: maps/SKILL.md: description: is missing",
    )  # fmt: skip
    shown = await skills.ask("show", "tides")
    assert shown.text.startswith("---\nname: tides")
    missing = (await skills.ask("show", "nothing")).error
    assert missing is not None
    assert missing.message == "there is no skill 'nothing'; there are: tides"


async def test_skills_of_a_workspace_count_once_it_is_trusted_and_they_are_approved(skills: Skills) -> None:
    in_workspace = skills.workspace / ".local2" / "skills"
    folder = write(in_workspace / "tides")
    assert (await skills.ask("list")).skills == ()
    TrustRegistry(skills.settings).trust(skills.workspace)
    told = await skills.ask("list")
    assert [(each.status, each.place) for each in told.skills] == [("unapproved", "workspace")]
    assert told.places == (str(skills.folder), str(skills.extra), str(in_workspace))
    assert (await skills.ask("ready")).skills == ()
    refused = (await skills.read("tides")).error
    assert refused is not None and "not approved" in refused.message
    approve(skills.settings, folder, to_approve(folder))
    assert (await skills.read("tides")).result == "Look at the moon."
    write(folder, "Obey the moon.")
    refused = (await skills.read("tides")).error
    assert refused is not None and "not as it was approved" in refused.message
    approve(skills.settings, folder, to_approve(folder))
    (folder / "SKILL.md").write_text("---\nname: tides\ndescription: x\nmetadata: {requires: 'Obey_me!'}\n---\nx")
    broken = await skills.read("tides")
    assert broken.error is not None and "Obey_me!" in broken.error.message
    assert broken.tainted, "it repeats what nobody has approved"
    write(folder, "Obey the moon.")
    TrustRegistry(skills.settings).distrust(skills.workspace)
    assert (await skills.read("tides")).error is not None


async def test_a_link_in_a_trusted_workspace_leads_to_no_skill(skills: Skills, tmp_path: Path) -> None:
    TrustRegistry(skills.settings).trust(skills.workspace)
    folder = write(tmp_path / "elsewhere" / "skills" / "tides")
    approve(skills.settings, folder, to_approve(folder))
    (skills.workspace / ".local2").symlink_to(tmp_path / "elsewhere")
    assert (await skills.ask("list")).skills == ()
    assert (await skills.read("tides")).error is not None


async def test_a_skill_that_is_dropped_in_is_announced_and_can_be_read_by_its_owner_alone(
    skills: Skills, tmp_path: Path
) -> None:
    assert (await skills.ask("ready")).skills == ()
    folder = write(skills.folder / "tides")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "moon.py").write_text("print('full')")
    (tmp_path / "key").write_text("secret")
    (folder / "key").symlink_to(tmp_path / "key")
    await skills.offered("read_skill")
    assert (await skills.changed()).ready == ("tides",)
    read = await skills.read("tides")
    assert read.result == "Look at the moon.\n\n(Its files: scripts/moon.py. Commands find them below /skills/tides.)"
    assert not read.tainted
    assert (await skills.read("tides", "scripts/moon.py")).result == "print('full')"
    refused = (await skills.read("tides", user="ann")).error
    assert refused is not None and refused.kind == "not_yours"
    for file in ("../../key", "/etc/passwd", "key", "..", "references/../../../key"):
        result = await skills.read("tides", file)
        assert result.error is not None and "secret" not in result.error.message, file
    write(folder, "Look at the sun.")
    assert (await skills.read("tides")).result.startswith("Look at the sun.")  # what is there now


def test_a_folder_that_is_named_may_not_be_in_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    config = FilesConfig(skill_folders=(tmp_path / "work" / "skills",))
    with pytest.raises(ConfigError, match="in the workspace; choose one outside"):
        FileTools.build(config, Resources(tmp_path / "data", workspace=tmp_path / "work"))
