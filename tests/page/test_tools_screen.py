"""Tools and where they come from, on their screen: approvals, skills, MCP servers and hooks."""

from __future__ import annotations

import json
import shutil
import venv
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from local.sandbox.process import PATH
from local.shell import shell
from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_changes import write
from tests.page.test_chat import Visit
from tests.page.test_screens import overflow

PLAIN = Path(__file__).parents[1] / "mcp" / "plain_server.py"


def signed_in(visit: Visit, paged: PagedSystem, address: str, **wishes: Any) -> Page:
    """A page of the owner at an address."""
    page = visit(**wishes).open(paged.sign_in())
    page.evaluate(f"location.hash = '#/{address}'")
    return page


def test_tools_are_found_and_say_what_they_take(visit: Visit, paged: PagedSystem) -> None:
    page = visit(viewport={"width": 360, "height": 740}, color_scheme="dark").open("#/tools/tools")
    page.get_by_label("Find a tool").fill("write_file")
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_label("Details of write_file").click()
    expect(page.get_by_role("region", name="Schema of write_file")).to_contain_text('"path"')
    expect(page.locator(".arguments")).to_contain_text("path")
    assert overflow(page) == [0, 0, 0]
    assert violations(page, "main") == []


def test_a_call_is_allowed_for_its_conversation_and_that_is_taken_back(visit: Visit, paged: PagedSystem) -> None:
    paged.script({"user": "^seventh list", "replies": [write("seventh.txt", "milk\n"), {"content": "It is there."}]})
    page = signed_in(visit, paged, "tools/approvals")
    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    page.evaluate(
        "fetch('/query', {method: 'POST', headers: {'content-type': 'application/json'},"
        " body: JSON.stringify({query: 'seventh list', session_id: 'seventh', mode: 'default'})}), null"
    )
    card = page.get_by_role("group", name="write_file wants to change a file, which can be undone")
    expect(card).to_contain_text("seventh.txt")
    assert violations(page, "main") == []
    card.get_by_role("button", name="In this conversation").click()
    row = page.get_by_role("row", name="seventh.txt")
    expect(row).to_contain_text("write_file")
    row.get_by_role("button", name="Take back").click()
    expect(page.get_by_role("dialog")).to_contain_text("asks again")
    page.get_by_role("button", name="Take it back").click()
    expect(row).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    assert paged.request("GET", "/approvals/remembered")["remembered"] == []


@pytest.mark.skipif(shutil.which("python3", path=PATH) is None, reason="needs a Python of the system")
def test_a_server_is_connected_reviewed_approved_used_and_removed(
    visit: Visit, paged: PagedSystem, tmp_path: Path
) -> None:
    if problem := shell.sandbox_problem():
        pytest.skip(str(problem))
    script = shutil.copy(PLAIN, tmp_path)
    page = signed_in(visit, paged, "tools/mcp")
    expect(page.get_by_text("No server is connected.")).to_be_visible()
    page.get_by_role("link", name="Connect a server").click()
    page.get_by_label("A program on this machine").check()
    page.get_by_label("Name", exact=True).fill("plain")
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_role("alert")).to_have_text("Write the command that starts the server.")
    page.get_by_label("Command").fill(f"python3 -S '{script}'")
    page.get_by_label("Folders that it may read").fill(str(tmp_path))
    assert violations(page, "main") == []
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("plain")
    expect(page.locator(".facts")).to_contain_text("waits for your approval")
    page.get_by_role("button", name="Review its tools").click()
    shown = page.get_by_role("list", name="Tools of plain")
    expect(shown).to_contain_text("What environ does.")
    assert violations(page, "main") == []
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved. The tools are offered")).to_be_visible()
    expect(page.locator(".facts")).to_contain_text("offered")
    page.get_by_role("link", name="Tools", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Tools")
    page.get_by_role("link", name="MCP servers").click()
    expect(page.get_by_role("row", name="plain")).to_contain_text("approved")
    page.get_by_role("link", name="plain").click()
    page.get_by_role("button", name="Remove this server").click()
    expect(page.get_by_role("dialog")).to_contain_text("its login are removed")
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_text("No server is connected.")).to_be_visible()


@pytest.mark.thorough  # near to the one above
def test_a_server_of_a_virtual_environment_is_pasted_allowed_its_folders_changed_and_switched(
    visit: Visit, paged: PagedSystem, tmp_path: Path
) -> None:
    if problem := shell.sandbox_problem():
        pytest.skip(str(problem))
    made = tmp_path / "project" / ".venv"
    venv.create(made, symlinks=True)
    script = Path(shutil.copy(PLAIN, tmp_path / "project"))
    entry = {"command": f"{made}/bin/python", "args": ["-S", str(script)], "env": {"KEY": "k"}}
    visitor = visit()
    visitor.expected = lambda trouble: "409" in trouble  # what cannot be read, and a server that cannot start
    page = visitor.open(paged.sign_in())
    page.evaluate("location.hash = '#/tools/connect'")
    page.get_by_label("JSON", exact=True).fill("npx weather")
    page.get_by_role("button", name="Read it").click()
    expect(page.get_by_role("alert")).to_contain_text("expected JSON such as")
    page.get_by_label("JSON", exact=True).fill(json.dumps({"mcpServers": {"pasted": entry}}))
    page.get_by_role("button", name="Read it").click()
    expect(page.get_by_text(f"a virtual environment of Python in {made}")).to_be_visible()
    assert violations(page, "main") == [] and overflow(page) == [0, 0, 0]
    page.get_by_label("It may read what it needs to start").uncheck()
    page.get_by_role("button", name="Add 1 server").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("pasted")
    expect(page.locator(".facts")).to_contain_text("needs a folder")
    page.get_by_role("button", name="Review its tools").click()
    expect(page.get_by_role("alert")).to_contain_text("add to readable")
    page.get_by_role("button", name="Let it read these").click()
    expect(page.locator(".facts")).to_contain_text("waits for your approval")
    page.get_by_role("button", name="Review its tools").click()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".facts")).to_contain_text("offered")
    page.get_by_role("button", name="Compare with what it offers now").click()
    expect(page.get_by_text("as approved: nothing has changed.")).to_be_visible()
    expect(page.get_by_text("To be approved")).to_have_count(0)
    page.get_by_label("Calls of pasted__environ").select_option("L0")
    level = page.get_by_label("Calls of pasted__environ")
    expect(level).to_have_value("L0")
    page.get_by_label("Offer pasted__read").click()  # it shows what the server has, which may change a moment later
    expect(page.get_by_label("Offer pasted__read")).not_to_be_checked()
    assert violations(page, "main") == [] and overflow(page) == [0, 0, 0]
    page.get_by_role("link", name="Change", exact=True).click()
    expect(page.get_by_label("Environment variables")).to_have_value("KEY=k")
    page.get_by_label("Other users who may use it").fill("ann")
    page.get_by_label("Network access").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".facts")).to_contain_text("you, ann")
    expect(level).to_have_value("L0")
    page.get_by_role("button", name="Switch off").click()
    expect(page.locator(".facts")).to_contain_text("switched off")
    stored = paged.request("GET", "/mcp/servers/pasted", headers=paged.authorization)["entry"]
    assert (stored["users"], stored["network"], stored["disabled"]) == (["ann"], True, True)
    assert stored["tools"] == {"environ": {"safety": "L0"}, "read": {"disabled": True}}
    page.get_by_role("button", name="Remove this server").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_text("No server is connected.")).to_be_visible()


def test_a_skill_is_made_and_read(visit: Visit, paged: PagedSystem) -> None:
    page = signed_in(visit, paged, "tools/skills")
    page.get_by_label("What it is for").fill("Write notes of a meeting. <b onclick=pwned()>Use it</b> when asked.")
    page.get_by_label("Name", exact=True).fill("meeting-notes")
    page.get_by_role("button", name="Create skill").click()
    expect(page.get_by_text("The skill was created.")).to_be_visible()
    row = page.get_by_role("row", name="meeting-notes")
    expect(row).to_contain_text("<b onclick=pwned()>")
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.get_by_role("region", name="Text of the skill")).to_contain_text("What to do first.")
    page.get_by_role("button", name="Edit").click()
    source = page.get_by_label("SKILL.md")
    text = source.input_value()
    assert violations(page, "main") == []
    source.fill(text.replace("What to do first.", "Ask who was there."))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name="Text of the skill")).to_contain_text("Ask who was there.")
    expect(page.get_by_role("button", name="Restore version 1")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("meeting-notes")


def test_a_profile_is_written_asked_with_changed_and_removed(visit: Visit, paged: PagedSystem) -> None:
    page = signed_in(visit, paged, "tools/profiles")
    expect(page.get_by_role("row", name="general")).to_contain_text("built in")
    page.get_by_role("link", name="New profile").click()
    page.get_by_label("Name", exact=True).fill("reviewer")
    page.get_by_label("What it is for").fill("<b onclick=pwned()>Reviews</b>")
    page.get_by_label("Instructions").fill("Be brief.")
    page.get_by_label("Temperature").fill("hot")
    page.get_by_role("button", name="Save this profile").click()
    expect(page.get_by_role("alert")).to_contain_text("hot is not a number from 0 to 2")
    page.get_by_label("Temperature").fill("0,5")
    assert violations(page, "main") == []
    page.get_by_role("button", name="Save this profile").click()
    expect(page.get_by_role("region", name="Its instructions")).to_have_text("Be brief.")
    expect(page.locator(".facts")).to_contain_text("0.5")
    page.get_by_role("link", name="Change").click()
    page.get_by_label("Tools").fill("read_file, search_memory")
    page.get_by_role("button", name="Save this profile").click()
    expect(page.locator(".facts")).to_contain_text("read_file, search_memory")
    assert violations(page, "main") == []
    page.get_by_role("button", name="Remove this profile").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_role("row", name="general")).to_be_visible()
    expect(page.get_by_role("row", name="reviewer")).to_have_count(0)


def test_a_hook_is_added_and_removed(visit: Visit, paged: PagedSystem) -> None:
    page = signed_in(visit, paged, "tools/hooks", viewport={"width": 360, "height": 740})
    page.get_by_label("Name", exact=True).fill("office-hours")
    page.get_by_label("Only for these tools").fill("shell_exec, shell_script")
    page.get_by_label("Command", exact=True).fill("python3")
    page.get_by_label("Script", exact=True).fill("office_hours.py")
    page.get_by_role("button", name="Add hook").press("Enter")
    hook = page.get_by_role("list", name="Hooks").get_by_role("listitem")
    expect(hook).to_contain_text("python3 office_hours.py")
    expect(page.get_by_role("button", name="Restart generator")).to_be_visible()
    expect(page.get_by_text("The commands are not run")).to_be_visible()
    assert overflow(page) == [0, 0, 0]
    assert violations(page, "main") == []
    hook.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_text("There is no hook.")).to_be_visible()


def test_a_folder_is_trusted_as_it_was_shown_and_no_longer(visit: Visit, paged: PagedSystem, tmp_path: Path) -> None:
    (tmp_path / ".local2").mkdir()
    (tmp_path / ".local2" / "LOCAL2.md").write_text("Use <b>metres</b>.")
    visitor = visit(viewport={"width": 360, "height": 740})
    visitor.expected = lambda trouble: "422" in trouble
    page = visitor.open(paged.sign_in())
    page.evaluate("location.hash = '#/tools/folders'")
    page.get_by_label("Folder", exact=True).fill("notes")
    page.get_by_role("button", name="Show what it instructs").click()
    expect(page.get_by_role("alert")).to_contain_text("'notes' is not a whole path")
    page.get_by_label("Folder", exact=True).fill(str(tmp_path))
    page.get_by_role("button", name="Show what it instructs").click()
    expect(page.get_by_role("region", name=".local2/LOCAL2.md")).to_have_text("Use <b>metres</b>.")
    assert (violations(page, "main"), overflow(page)) == ([], [0, 0, 0])
    page.get_by_role("button", name="Trust this folder").click()
    expect(page.get_by_role("table", name="Trusted folders")).to_contain_text(str(tmp_path))
    page.get_by_role("button", name=f"Trust {tmp_path} no longer").click()
    page.get_by_role("button", name="Trust it no longer").click()
    expect(page.get_by_text("No folder is trusted.")).to_be_visible()
