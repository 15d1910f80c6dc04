"""The screen of the system: models, processes, usage, backups, the log, the doctor and users, by mouse and by keys."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit

TABS = ("models", "participants", "usage", "backups", "log", "doctor", "users")


def go(page: Page, tab: str) -> None:
    page.evaluate(f"location.hash = '#/system/{tab}'")
    expect(page.locator(".screen-tabs [aria-current]")).to_have_text(tab.capitalize())
    expect(page.locator(".screen [aria-busy=true]")).to_have_count(0)
    expect(page.locator(".screen .fault")).to_have_count(0)


def answered(answer: dict[str, Any], route: Route) -> None:
    route.fulfill(json=answer)


def test_models_have_roles_and_a_participant_is_stopped_and_started(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open(paged.sign_in())
    go(page, "models")
    expect(page.locator(".facts")).to_contain_text("Answers")
    expect(page.locator(".facts")).to_contain_text("Judges answers")
    known = {"models": [{"name": "gemma4:e4b", "id": "ollama/gemma4:e4b", "server": "ollama"}], "pulls": []}
    page.route("**/models", partial(answered, known))
    page.route("**/models/check", partial(answered, {"is_fit": False, "lines": ["3 of 9 grades are right"]}))
    page.get_by_role("button", name="Check again").click()
    page.get_by_role("button", name="Test ollama/gemma4:e4b").click()
    expect(page.get_by_role("region", name="Test of ollama/gemma4:e4b")).to_contain_text("3 of 9 grades are right")
    go(page, "participants")
    row = page.get_by_role("row").filter(has=page.get_by_text("web_fetch", exact=True))
    row.get_by_role("button", name="Stop web_fetch").press("Enter")
    asked = page.get_by_role("dialog", name="Stop web_fetch?")
    expect(asked).to_contain_text("is not done until you start it again")
    page.keyboard.press("Escape")
    expect(row.get_by_role("button", name="Stop web_fetch")).to_be_focused()
    page.keyboard.press("Enter")
    asked.get_by_role("button", name="Stop", exact=True).click()
    expect(row).to_contain_text("stopped")
    row.get_by_role("button", name="Start web_fetch").click()
    expect(row).to_contain_text("ready")


def test_a_model_server_is_tested_and_added_with_its_key(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open(paged.sign_in())
    sent: list[tuple[str, Any]] = []

    def saved(route: Route) -> None:
        if route.request.method == "GET":
            return route.fulfill(json={"values": {"roles": {"chat": ["ollama/gemma4:12b"]}}})
        sent.append((route.request.url.removeprefix(paged.url), route.request.post_data_json))
        return route.fulfill(json={})

    found = {"url": "https://openrouter.ai/api/v1", "is_cloud": True, "models": ["a/large", "a/small"]}
    page.route("**/models/servers/try", partial(answered, found))
    page.route("**/settings/models", saved)
    page.route("**/secrets/*", saved)
    go(page, "models")
    page.get_by_text("Add a model server").click()
    form = page.get_by_role("form", name="Add a model server")
    form.get_by_label("Address").fill("https://openrouter.ai/api/v1")
    form.get_by_label("Key").fill("sk-0123456789")
    with page.expect_request("**/models/servers/try") as tried:
        form.get_by_role("button", name="Test").click()
    assert tried.value.post_data_json == {"kind": "openai", "url": found["url"], "api_key": "sk-0123456789"}
    expect(form).to_contain_text("has 2 models")
    expect(form.get_by_role("button", name="Save")).to_be_disabled()  # what is said would leave the machine
    form.get_by_label("Model that answers by default").select_option("a/small")
    form.get_by_role("checkbox").check()
    assert violations(page, ".screen") == []
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("status").last).to_contain_text("openrouter is saved. a/small answers after the next start")
    server = {"kind": "openai", "url": found["url"], "api_key": "secret:openrouter", "allow_cloud": True}
    chain = ["openrouter/a/small", "ollama/gemma4:12b"]
    assert sent == [
        ("/secrets/openrouter", {"value": "sk-0123456789"}),
        ("/settings/models", {"values": {"providers": {"openrouter": server}, "roles": {"chat": chain}}}),
    ]


def test_the_log_is_filtered_and_followed(visit: Visit, paged: PagedSystem) -> None:
    def line(at: float, level: str, message: str) -> dict[str, Any]:
        return {"at": at, "level": level, "participant": "memory", "query_id": None, "message": message}

    asked: list[str] = []

    def logs(route: Route) -> None:
        asked.append(route.request.url)
        first, then = line(1e9, "info", "begun"), line(1e9 + 1, "warning", "tired")
        route.fulfill(json={"lines": [first, then] if "since=" in asked[-1] else [first]})

    page = visit().open(paged.sign_in())
    page.route(re.compile(r"/logs\?"), logs)
    go(page, "log")
    expect(page.locator(".log p")).to_have_count(2)
    expect(page.locator(".log p[data-level=warning]")).to_contain_text("tired")
    page.get_by_label("Follow").uncheck()
    page.get_by_label("Participant").select_option("memory")
    expect(page.locator(".log p")).to_have_count(1)
    page.get_by_label("Level").select_option("error")
    page.get_by_label("Query").fill("q1")
    expect(page.locator(".log p")).to_have_count(1)
    assert "level=info" in asked[0] and asked[-1].endswith("level=error&participant=memory&query=q1&limit=200")


@pytest.mark.thorough
def test_a_backup_is_made_and_the_doctor_says_what_its_command_does(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open(paged.sign_in())
    go(page, "backups")
    page.get_by_role("button", name="Back up now").click()
    expect(page.get_by_role("status").filter(has_text="The backup is complete")).to_be_visible()
    [made] = paged.request("GET", "/backups", headers=paged.authorization)["backups"]
    expect(page.get_by_role("table", name="Backups")).to_contain_text(f"local2 restore {made['folder']} --force")
    go(page, "doctor")
    expect(page.get_by_text("running system")).to_have_count(1)
    expect(page.get_by_role("status").filter(has_text="check")).to_be_visible()


def test_a_user_is_invited_limited_and_removed_by_keys(visit: Visit, paged: PagedSystem) -> None:
    visitor = visit()
    visitor.expected = lambda trouble: "422" in trouble  # the name that is none
    page = visitor.open(paged.sign_in())
    go(page, "users")
    name = page.get_by_label("Invite somebody")
    name.fill("no name")
    name.press("Enter")
    expect(page.locator(".invite").get_by_role("alert")).to_contain_text("name")
    name.fill("ann")
    name.press("Enter")
    token = page.get_by_role("region", name="Invitation of ann")
    expect(token).to_be_focused()
    token.get_by_text("For programs of ann").click()
    secret = token.locator("code", has_text="local2-").inner_text()
    signed = paged.request("GET", "/usage", headers={"authorization": f"Bearer {secret}"})
    assert signed["total"] is None
    page.get_by_role("button", name="Done").press("Enter")
    expect(page.get_by_label("Invite somebody")).to_be_focused()
    assert secret not in page.content()
    limit = page.get_by_role("group", name="Each user").get_by_label("tokens a day")
    limit.fill("many")
    expect(page.get_by_role("alert")).to_contain_text("whole number above 0")
    limit.fill("900 000 000")
    others = page.get_by_role("group", name="Each other user")
    others.get_by_label("models to choose from").fill("local, mine")
    others.get_by_label("megabytes").fill("50")
    assert violations(page, "main") == []
    page.get_by_role("button", name="Save limits").press("Enter")
    expect(page.get_by_role("button", name="Restart api")).to_be_visible()
    kept = paged.request("GET", "/settings/api", headers=paged.authorization)["values"]
    assert kept["budgets"]["user"] == {"tokens": 900_000_000, "money": None}
    assert kept["users"] == {"models": ["local", "mine"], "megabytes": 50, "tokens_a_day": 2_000_000}
    reset = {"reset": ["budgets", "users"]}
    paged.request("PUT", "/settings/api", json=reset, headers=paged.authorization)
    page.get_by_role("button", name="Remove ann").press("Enter")
    page.get_by_role("dialog", name="Remove ann?").get_by_role("button", name="Remove").press("Enter")
    expect(page.get_by_text("Nobody else uses LoCAL2 yet").or_(page.get_by_role("table", name="Users"))).to_be_visible()
    expect(page.get_by_role("button", name="Remove ann")).to_have_count(0)


def test_usage_is_a_table_with_bars_and_a_picture_of_the_days(visit: Visit, paged: PagedSystem) -> None:
    paged.ask("What is 2+3?", "used")
    page = visit(viewport={"width": 1280, "height": 760}).open(paged.sign_in())
    go(page, "usage")
    expect(page.get_by_role("table", name="Usage by day").locator(".share")).not_to_have_count(0)
    expect(page.get_by_role("img", name=re.compile("Tokens on each of the last 30 days"))).to_be_visible()
    page.get_by_label("Show by").select_option("model")
    expect(page.get_by_role("table", name="Usage by model")).to_contain_text("stand-in")
    if folder := os.environ.get("LOCAL2_PICTURES"):
        page.screenshot(path=Path(folder) / "system.png")
