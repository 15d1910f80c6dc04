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


def test_a_guest_s_day(visit: Visit, paged: PagedSystem) -> None:
    """Invited by a link, with a model to choose and a call that only the owner allows; named in what the owner sees."""
    paged.ask("What is 3+3?", "the-owners")
    paged.script({"user": "^a guest's list", "replies": [write("guest.txt", "milk\n"), {"content": "I see."}]})
    at_home = visit()
    at_home.expected = lambda trouble: "409" in trouble  # the name of somebody who was removed
    owner = at_home.open(paged.sign_in())
    owner.evaluate("location.hash = '#/system/users'")
    owner.get_by_label("Invite somebody").fill("guest")
    owner.keyboard.press("Enter")
    invitation = owner.get_by_role("region", name="Invitation of guest")
    link = invitation.get_by_text("#code=").inner_text()
    assert violations(owner, "main") == []
    away = visit(is_phone=True)
    away.expected = lambda trouble: "401" in trouble  # once they are removed
    guest = away.open(f"#{link.partition('#')[2]}")
    expect(guest.get_by_role("region", name="Sign in")).to_have_count(0)
    picker = guest.get_by_role("button", name="Model: ")
    picker.click()
    expect(guest.get_by_role("menuitemradio").first).to_be_visible()
    guest.keyboard.press("Escape")
    guest.get_by_label("Your message").fill("a guest's list")
    guest.get_by_role("button", name="Send").tap()
    asked = guest.get_by_role("group", name="write_file wants to change a file")
    expect(asked).to_contain_text("Only the owner can allow this")
    expect(asked.get_by_role("button", name="Allow once")).to_have_count(0)
    assert violations(guest, "main") == []
    places = owner.get_by_role("navigation", name="Screens")
    expect(places.get_by_role("link", name="Tools 1 approval waiting")).to_be_visible()
    owner.evaluate("location.hash = '#/tools/approvals'")
    theirs = owner.get_by_role("group", name="For guest: write_file wants to change a file")
    expect(theirs.get_by_role("button", name="Allow once")).to_be_visible()
    asked.get_by_role("button", name="Deny").click()
    expect(guest.locator("[data-answer]")).to_contain_text("the user said no")
    expect(theirs).to_have_count(0)
    owner.evaluate("location.hash = '#/'")
    conversations = owner.get_by_role("navigation", name="Conversations")
    expect(conversations.locator("[href='#/c/the-owners']")).to_be_visible()
    of_guest = conversations.get_by_role("listitem").filter(has_text="a guest's list")
    expect(of_guest).to_have_count(0)
    for count in (1, 0):
        conversations.get_by_role("button", name="What is listed").click()
        owner.get_by_role("menuitemradio", name="Also those of other users").click()
        expect(of_guest).to_have_count(count)
        if count:
            expect(of_guest.locator(".tag")).to_have_text("guest")
    owner.evaluate("location.hash = '#/system/users'")
    owner.get_by_role("button", name="Remove guest").click()
    owner.get_by_role("button", name="Remove", exact=True).click()
    expect(guest.get_by_role("region", name="Sign in")).to_be_visible()
    owner.get_by_label("Invite somebody").fill("guest")
    owner.keyboard.press("Enter")
    expect(owner.locator(".invite").get_by_role("alert")).to_contain_text("guest was removed")
    owner.get_by_role("button", name="It is the same person again").click()
    expect(invitation).to_be_visible()
    paged.request("DELETE", "/users/guest", headers=paged.authorization)
