"""Signing in on the page: by the link of `local2 open`, and as a user by a token."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from local.cli.client import list_browsers, open_page, sign_out_browser
from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_changes import write
from tests.page.test_chat import Visit, ask
from tests.page.test_palette import open_palette


def test_the_link_of_local2_open_signs_a_browser_in_until_it_signs_out(
    visit: Visit, paged: PagedSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: dict[str, str] = {}
    monkeypatch.setattr("webbrowser.open", lambda address: opened.setdefault("address", address))
    open_page(data_dir=paged.system.data_dir)
    paged.script({"user": "^a sixth list", "replies": [write("sixth.txt", "milk\n"), {"content": "It is there."}]})
    visitor = visit()
    visitor.expected = lambda trouble: "401" in trouble
    page = visitor.open(f"#{opened['address'].partition('#')[2]}")
    bar = page.get_by_role("region", name="Sign in")
    assert page.evaluate("location.hash") == "" and "local2-" in str(visitor.context.cookies())
    page.reload()
    page.wait_for_selector(".sessions[data-state=ready]", state="attached")
    expect(bar).to_have_count(0)
    ask(page, "a sixth list")
    page.get_by_role("button", name="Allow once").click()
    expect(page.locator("[data-answer]")).to_have_text("It is there.")
    page.evaluate("location.hash = '#/settings'")
    page.get_by_role("button", name="Sign in another browser").click()
    code = page.locator(".signed-in [role=status] code")
    paged.request("POST", "/sign-in", json={"secret": code.inner_text()}, headers={"user-agent": "Firefox/1 (Android)"})
    page.reload()
    browsers = page.get_by_role("table", name="Signed-in browsers")
    expect(browsers.get_by_role("row").filter(has_text="this one")).to_have_count(1)
    assert violations(page, "main") == []
    other = browsers.get_by_role("row").filter(has_text="Firefox on Android")
    other.get_by_role("button", name="Sign out Firefox on Android").click()
    expect(other).to_have_count(0)
    open_palette(page)
    page.keyboard.type("sign out of this browser")
    page.keyboard.press("Enter")
    expect(bar).to_contain_text("Not signed in")
    assert bar.bounding_box()["y"] < 10 and violations(page, ".sign-in") == []  # type: ignore[index]
    page.goto(f"{paged.url}/?again#{opened['address'].partition('#')[2]}")  # the code once more
    expect(bar.get_by_role("alert")).to_contain_text("run `local2 code` for a new code")
    assert page.evaluate("location.hash") == ""


def test_the_browsers_are_listed_and_signed_out_in_a_terminal(
    paged: PagedSystem, capfd: pytest.CaptureFixture[str]
) -> None:
    paged.request("POST", "/sign-in", json={"secret": paged.owner_token}, headers={"user-agent": "Firefox/1 (Windows)"})

    def listed() -> list[str]:
        list_browsers(data_dir=paged.system.data_dir)
        return [line.split()[0] for line in capfd.readouterr().out.splitlines() if "Firefox on Windows" in line]

    [name] = listed()
    sign_out_browser(name, data_dir=paged.system.data_dir)
    assert f"{name} was signed out" in capfd.readouterr().out
    assert listed() == []


def test_a_user_signs_in_by_the_token_and_sees_their_own(visit: Visit, paged: PagedSystem) -> None:
    paged.ask("What is 3+3?", "of-the-owner")
    user = paged.request("POST", "/users", json={"name": "signs-in"}, headers=paged.authorization)
    page = visit().open()
    expect(page.locator("[href='#/c/of-the-owner']")).to_be_visible()
    page.get_by_label("Code").fill(user["token"])
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.wait_for_selector(".sessions[data-state=ready]", state="attached")
    expect(page.locator(".conv")).to_have_count(0)
    ask(page, "What is 4+4?")
    expect(page.locator("[data-answer]")).to_have_text("4+4 = 8")
    expect(page.get_by_role("region", name="Sign in")).to_have_count(0)
    page.evaluate("location.hash = '#/activity/usage'")
    expect(page.get_by_role("table", name="Usage by day").get_by_role("row")).to_have_count(2)
    page.get_by_label("Show by").select_option("model")
    expect(page.get_by_role("table", name="Usage by model")).to_contain_text("stand-in")
    expect(page.get_by_label("Show by").locator("option", has_text="User")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Parts of this screen").get_by_role("link")).to_have_count(3)
    assert violations(page, "main") == []
