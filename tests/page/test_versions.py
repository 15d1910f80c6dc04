"""A person has an answer given again, goes on from any turn, and chooses how a conversation is answered."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.page.conftest import PagedSystem, Visitor
from tests.page.test_chat import answered, ask, session_of

Visit = Callable[..., Visitor]


def test_a_regenerated_answer_is_a_version_and_a_branch_a_conversation(visit: Visit, paged: PagedSystem) -> None:
    paged.script({"user": "^a colour for", "replies": [{"content": "Teal."}, {"content": "Copper."}]})
    page = visit().open()
    ask(page, "a colour for the door")
    answered(page)
    first = session_of(page)
    page.get_by_role("button", name="Regenerate").click()
    expect(page.locator(".versions")).to_have_text("‹2/2›")
    answered(page)
    second = session_of(page)
    assert first != second
    row = page.locator(".conv", has_text="a colour for the door")
    expect(row).to_have_count(1)
    page.get_by_role("button", name="Previous version").click()
    expect(page.locator(".versions")).to_have_text("‹1/2›")
    expect(row).to_have_class("conv on")  # the row is that of both

    page.get_by_role("button", name="Branch from here").click()
    expect(page.locator(".bar .tag")).to_have_text("branch")
    expect(page.locator("[data-answer]")).to_be_visible()
    expect(row).to_have_count(2)
    expect(page.locator(".versions")).to_have_count(0)
    assert session_of(page) not in (first, second)
    page.reload()
    expect(row).to_have_count(2)

    page.goto(f"{paged.url}/?debug#/c/{first}")
    page.locator(".conv.on").get_by_role("button").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("heading", name="Deleted")).to_be_visible()  # the branch keeps its copies
    expect(row).to_have_count(1)


def test_edits_of_edits_are_all_reached_by_arrows_and_by_the_menu(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    ask(page, "What is 2+1?")
    answered(page)
    sessions = [session_of(page)]
    for number in (2, 3, 4, 5):
        page.get_by_role("button", name="Edit", exact=True).click()
        ask(page, f"What is 2+{number}?")
        expect(page.locator("article.turn [data-answer]")).to_have_text(f"2+{number} = {2 + number}")
        expect(page.locator(".versions")).to_have_text(f"‹{number}/{number}›")
        sessions.append(session_of(page))
    assert len(set(sessions)) == 5
    page.locator("article.turn").focus()
    for number in (4, 3, 2, 1):
        page.keyboard.press("[")
        expect(page.locator(".versions")).to_have_text(f"‹{number}/5›")
        expect(page.locator("[data-answer]")).to_have_text(f"2+{number} = {2 + number}")
        assert session_of(page) == sessions[number - 1]
    page.get_by_role("button", name="Version 1 of 5: show all").click()
    expect(page.get_by_role("menuitemradio")).to_contain_text(
        [f"Version {number} · stand-in" for number in range(1, 6)]
    )
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("[data-answer]")).to_have_text("2+2 = 4")
    page.get_by_role("button", name="Next version").click()
    expect(page.locator("[data-answer]")).to_have_text("2+3 = 5")
    page.reload()
    expect(page.locator(".versions")).to_have_text("‹3/5›")


def test_the_settings_of_a_conversation_go_with_its_first_question_and_stay(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    page.get_by_role("button", name="How it is answered").click()
    page.get_by_role("textbox", name="Instructions").fill("Answer in Latin.")
    page.get_by_label("Temperature").fill("7")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Temperature: 7 is not a number from 0 to 2")
    page.get_by_label("Temperature").fill("0,3")
    page.get_by_label("Profile", exact=True).select_option("code")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="as code ×")).to_be_visible()
    ask(page, "What is 8+8?")
    answered(page)
    shown = paged.request("GET", f"/sessions/{session_of(page)}")
    assert shown["settings"] == {"profile": "code", "temperature": 0.3, "instructions": "Answer in Latin."}
    assert "Answer in Latin." in shown["messages"][0]["content"]
    page.reload()
    changed = page.get_by_role("button", name="How it is answered: profile code, own instructions, temperature 0.3")
    changed.click()
    with page.expect_response(lambda response: response.request.method == "PATCH"):
        page.get_by_role("button", name="Use the defaults").click()
    expect(page.get_by_role("button", name="as code ×")).to_have_count(0)
    assert paged.request("GET", f"/sessions/{session_of(page)}")["settings"] is None
