"""Somebody new asks for a program on the page, allows each step by hand, sees it tested, and takes it all back."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import expect

from local.shell.shell import sandbox_problem
from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit, answered, ask
from tests.todo_program import FILES, QUESTION, TURN

WAITS = "until test -e go.txt; do sleep 0.05; done; rm go.txt; echo second line"


@pytest.fixture
def sandboxed() -> None:
    if (problem := sandbox_problem()) and not os.environ.get("CI"):
        pytest.skip(str(problem))


@pytest.mark.thorough
def test_a_program_is_written_tested_and_undone_by_clicks(sandboxed: None, visit: Visit, paged: PagedSystem) -> None:
    paged.script(TURN)
    workspace = paged.system.data_dir / "workspace"
    page = visit().open(paged.sign_in())
    ask(page, QUESTION)
    for path in FILES:
        card = page.get_by_role("group", name="write_file wants to change a file").filter(has_text=path)
        card.get_by_role("button", name="Allow once").click()
    run = page.get_by_role("group", name="shell_exec wants to run a command, which cannot be undone")
    expect(run).to_contain_text("-m unittest -v test_todo")
    assert {path: (workspace / path).read_text() for path in FILES} == FILES
    run.get_by_role("button", name="Allow once").click()
    answered(page)
    expect(page.locator("[data-answer]").last).to_contain_text("exit code 0 after")
    page.get_by_label("Tool shell_exec: done").get_by_role("button").first.click()
    expect(page.get_by_label("Tool shell_exec: done")).to_contain_text("Ran 1 test in")
    for changes in page.get_by_label("Changes of this call").all():
        changes.get_by_role("button", name="Changes").click()
        changes.get_by_role("button", name="Undo").click()
        expect(changes.get_by_role("status")).to_have_text("Undone: the file was restored.")
    assert [path for path in FILES if (workspace / path).exists()] == []


def test_what_a_command_writes_is_seen_on_its_card_while_it_runs(
    sandboxed: None, visit: Visit, paged: PagedSystem
) -> None:
    command = f"echo first line; {WAITS}"
    call = {"tool_calls": [{"name": "shell_exec", "arguments": {"command": command}}]}
    paged.script({"user": "^gradual output", "replies": [call, {"content": "It is done."}]})
    page = visit().open(paged.sign_in())
    ask(page, "gradual output")
    run = page.get_by_role("group", name="shell_exec wants to run a command, which cannot be undone")
    expect(run).to_contain_text("first line")
    run.get_by_role("button", name="Allow once").click()
    output = page.get_by_label("Output so far")
    expect(output).to_have_text("first line\n")
    assert violations(page, "article.turn") == []
    (paged.system.data_dir / "workspace" / "go.txt").touch()
    answered(page)
    expect(output).to_have_count(0)
    page.get_by_label("Tool shell_exec: done").get_by_role("button").first.click()
    expect(page.get_by_label("Tool shell_exec: done")).to_contain_text("second line")
