"""A person with the page: asks, follows, stops, asks again, looks for things and deletes them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.page.conftest import WINDOW, PagedSystem, Visitor

Visit = Callable[..., Visitor]

ANSWER = r"""It has **three** parts, *says* [the page](https://a.example/x):

| a | b |
|:--|--:|
| 1 | `2` |

```python
def three() -> int:
    return 3
```

1. one
2. two
   - nested

> quoted

It is $E = mc^2$, not $5 or $6, and

\[ x = \frac{1}{2} \]

Done.[^a] $\unknown{x}$ [^b]

[^a]: By *one* source."""


def ask(page: Page, question: str) -> None:
    page.fill("#question", question)
    page.keyboard.press("Enter")


def answered(page: Page, number: int = -1) -> None:
    """Wait until a turn has its answer."""
    expect(page.locator("article.turn").nth(number)).to_have_attribute("data-state", "answered")


def session_of(page: Page) -> str:
    return page.evaluate("location.hash.split('/')[2]")  # type: ignore[no-any-return]


def test_a_first_question_is_answered_in_a_conversation_of_its_own(visit: Visit, paged: PagedSystem) -> None:
    page = visit(reduced_motion="no-preference").open()  # with all that moves
    ask(page, "What is the capital of France?")
    expect(page.locator("[data-state=answered] [data-answer]")).to_have_text("The capital of France is Paris.")
    expect(page.locator(".conv.on .title")).to_have_text("What is the capital of France?")
    expect(page.locator(".line .grade")).to_be_visible()  # the critic's, which comes after the answer
    expect(page.locator("[data-spoken]")).to_have_text("answer complete")
    with page.expect_response("**/feedback"):  # a reload would give it up
        page.click("text=Good")
    expect(page.locator(".rate[aria-pressed=true]")).to_have_text("Good")
    page.reload()
    expect(page.locator(".rate[aria-pressed=true]")).to_have_text("Good")
    expect(page.locator(".line .grade")).to_be_visible()


def test_an_answer_grows_as_markdown_and_ends_as_the_record_has_it(visit: Visit, paged: PagedSystem) -> None:
    paged.script(
        {"user": "^three parts", "replies": [{"thinking": "I **think** of three.", "content": ANSWER}]},
        chunk_chars=7, chunk_delay_seconds=0.08,
    )  # fmt: skip
    page = visit().open()
    ask(page, "three parts please")
    expect(page.locator("[data-phase=answering] table")).to_be_visible()
    answered(page)
    expect(page.locator("[data-answer] .c-kwd").first).to_have_text("def")  # colours are loaded when they are needed
    expect(page.locator("[data-answer] ol > li > ul > li")).to_have_text("nested")
    expect(page.locator("[data-answer] .host")).to_have_text(" (a.example)")
    expect(page.locator("[data-answer] math")).to_have_count(2)
    page.get_by_role("button", name="Footnote a", exact=True).click()
    expect(page.locator("[data-note=a]:focus em")).to_have_text("one")
    page.get_by_role("button", name="Back to the text of footnote a").click()
    expect(page.locator("[data-mark=a]:focus")).to_have_count(1)
    expect(page.locator("[data-answer]")).to_contain_text("[^b]")  # which has no text
    expect(page.locator("[data-answer] math mfrac")).to_be_visible()
    expect(page.locator("[data-answer]")).to_contain_text("not $5 or $6, and")
    expect(page.locator("[data-answer] .formula code")).to_have_text("$\\unknown{x}$")
    expect(page.locator(".thinking .thought")).to_be_hidden()
    expect(page.locator(".thinking summary")).to_contain_text("Thought for ")
    page.click(".thinking summary")
    expect(page.locator(".thinking strong")).to_have_text("think")
    live = page.locator("[data-answer]").inner_text()
    page.set_viewport_size({"width": 1280, "height": 420})
    page.evaluate("document.querySelector('.scroll').scrollTop = 90")
    expect(page.get_by_role("button", name="To the end")).to_be_visible()
    page.reload()
    answered(page)
    expect(page.locator(".thinking strong")).to_be_visible()  # as it was left
    assert abs(page.evaluate("document.querySelector('.scroll').scrollTop") - 90) <= 1
    page.set_viewport_size(WINDOW)
    expect(page.locator("[data-answer] .c-kwd").first).to_be_visible()
    expect(page.locator("[data-answer] math")).to_have_count(2)
    page.get_by_role("button", name="Footnote a", exact=True).click()
    expect(page.locator("[data-note=a]:focus em")).to_have_text("one")
    page.get_by_role("button", name="Back to the text of footnote a").click()
    expect(page.locator("[data-mark=a]:focus")).to_have_count(1)
    expect(page.locator("[data-answer]")).to_contain_text("[^b]")  # which has no text
    assert page.locator("[data-answer]").inner_text() == live
    assert paged.request("GET", f"/sessions/{session_of(page)}/turns")["turns"][0]["answer"] == ANSWER


def test_a_tool_s_call_stands_in_place_with_what_it_recalled_and_why(visit: Visit, paged: PagedSystem) -> None:
    paged.tell("I take my cocoa with cinnamon.", "told")
    page = visit().open()
    ask(page, "How do I take my cocoa?")
    answered(page)
    card = page.locator("[data-state=done].call")
    expect(card.locator("code")).to_have_text("search_memory")
    expect(card.locator("q")).to_have_text("How do I take my cocoa?")
    card.locator(".call-head").click()
    expect(card.locator(".insides pre").last).to_contain_text("cinnamon")
    expect(page.locator(".sources li").first).to_contain_text("memory")
    expect(card.locator(".recalls p", has_text="I take my cocoa with cinnamon").first).to_be_visible()
    expect(card.locator(".recalls small").first).to_contain_text("similarity")


def test_questions_wait_in_a_queue_and_can_be_changed_there_and_the_answer_be_stopped(
    visit: Visit, paged: PagedSystem
) -> None:
    paged.script(
        {"user": "^long story", "replies": [{"content": "word " * 400}]}, chunk_chars=5, chunk_delay_seconds=0.05
    )
    page = visit().open()
    ask(page, "long story")
    expect(page.locator("[data-phase=answering] [data-answer]")).to_contain_text("word word")
    ask(page, "What is 2+2?")
    ask(page, "What is 3+3?")
    expect(page.locator(".queued")).to_have_count(2)
    page.locator(".queued").nth(0).get_by_role("button", name="Edit").click()
    expect(page.locator("#question")).to_have_value("What is 2+2?")
    ask(page, "What is 4+4?")
    page.locator(".queued", has_text="3+3").get_by_role("button", name="Remove").click()
    expect(page.locator(".queued")).to_have_count(1)
    page.focus("#question")
    page.keyboard.press("Escape")
    expect(page.locator("article.turn").first).to_have_attribute("data-state", "cancelled")
    expect(page.locator("article.turn", has_text="4+4").locator("[data-answer]")).to_have_text("4+4 = 8")


def test_a_question_asked_again_is_another_version_beside_the_first(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    ask(page, "What is 2+2?")
    answered(page)
    ask(page, "What is 5+5?")
    answered(page, 1)
    first = session_of(page)
    page.focus("#question")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#question")).to_have_value("What is 5+5?")
    ask(page, "What is 6+6?")
    expect(page.locator("article.turn", has_text="6+6").locator("[data-answer]")).to_have_text("6+6 = 12")
    assert session_of(page) != first
    expect(page.locator("article.turn")).to_have_count(2)
    expect(page.locator(".versions")).to_have_text("‹2/2›")
    page.locator("article.turn").last.focus()
    page.keyboard.press("[")
    expect(page.locator("article.turn", has_text="5+5").locator("[data-answer]")).to_have_text("5+5 = 10")
    expect(page.locator(".versions")).to_have_text("‹1/2›")


def test_files_and_drafts_survive_a_reload_and_go_with_the_question(
    visit: Visit, paged: PagedSystem, tmp_path: Path
) -> None:
    (tmp_path / "roasts.csv").write_text("Monte Verde,Brazil\nHarar,Ethiopia\n")
    (tmp_path / "empty.bin").write_bytes(b"\x00\x01\x02" * 9)
    (tmp_path / "dot.gif").write_bytes(base64.b64decode("R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs="))
    visitor = visit()
    visitor.expected = lambda trouble: "415" in trouble  # the browser's own line about a refused upload
    page = visitor.open()
    page.set_input_files("input[type=file]", [tmp_path / "dot.gif"])
    expect(page.locator(".chip .thumbnail img")).to_be_visible()
    page.get_by_label("Remove dot.gif").click()
    page.set_input_files("input[type=file]", [tmp_path / "roasts.csv", tmp_path / "empty.bin"])
    expect(page.locator(".chip[data-state=ready] .name")).to_have_text("roasts.csv")
    expect(page.locator(".chip[data-state=failed] small")).to_be_visible()
    page.get_by_label("Remove empty.bin").click()
    page.fill("#question", "half a thou")
    page.reload()
    expect(page.locator("#question")).to_have_value("half a thou")
    expect(page.locator(".chip .name")).to_have_text("roasts.csv")
    ask(page, "What is in the file?" + "\nand more" * 20)
    answered(page)
    expect(page.locator(".asked[data-folded=true] p")).to_contain_text("and more")
    page.get_by_role("button", name="Show the whole question").click()
    expect(page.locator(".asked[data-folded=false]")).to_have_count(1)
    expect(page.locator(".files .file")).to_contain_text("roasts.csv")
    expect(page.locator("#question")).to_have_value("")
    (turn,) = paged.request("GET", f"/sessions/{session_of(page)}/turns")["turns"]
    assert [file["name"] for file in turn["attachments"]] == ["roasts.csv"]


def test_conversations_are_named_pinned_searched_exported_and_deleted(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    ask(page, "What is 8+8?")
    answered(page)
    item = page.locator(".conv.on")

    def choose(name: str) -> None:
        item.locator(".menu > button").click()
        page.get_by_role("menuitem", name=name).click()

    choose("Rename")
    page.get_by_role("textbox", name="Title").fill("Zwölf & <i>eight</i>")
    page.keyboard.press("Enter")
    expect(item.locator(".title")).to_have_text("Zwölf & <i>eight</i>")
    expect(page).to_have_title("Zwölf & <i>eight</i> · LoCAL2")
    choose("Pin")
    expect(page.get_by_role("region", name="Pinned").locator(".title", has_text="Zwölf & <i>eight</i>")).to_be_visible()
    page.fill("#search-conversations", "16")
    hit = page.get_by_role("region", name="Found").locator(".conv", has_text="Zwölf")
    expect(hit.locator(".excerpt")).to_contain_text("16")
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Found")).to_have_count(0)
    with page.expect_download() as download:
        choose("Export")
        page.get_by_role("button", name="Save file").click()
    assert "8+8 = 16" in Path(download.value.path()).read_text()
    choose("Delete")
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator(".title", has_text="Zwölf")).to_have_count(0)
    expect(page.locator(".welcome")).to_be_visible()
    assert not [one for one in paged.request("GET", "/sessions")["sessions"] if "Zwölf" in one["title"]]


def test_what_goes_wrong_is_said_in_place_and_incognito_keeps_no_draft(visit: Visit, paged: PagedSystem) -> None:
    visitor = visit()
    visitor.expected = lambda trouble: "429" in trouble
    page = visitor.open()
    page.click("text=Incognito")
    page.fill("#question", "a secret")
    page.reload()
    expect(page.locator("#question")).to_have_value("")
    page.click("text=Incognito")
    paged.fault(kind="status", status=400, body={"error": "this model is <b>ill</b>"}, match="17\\+17", times=1)
    ask(page, "What is 17+17?")
    fault = page.locator("[data-state=failed].fault")
    expect(fault).to_contain_text("this model is <b>ill</b>")
    expect(fault.get_by_role("button")).to_have_count(1)
    fault.get_by_role("button", name="Ask again").click()
    answered(page)
    expect(page.locator("[data-answer]")).to_have_text("17+17 = 34")
    expect(page.locator(".bar .tag")).to_have_text("incognito")
    (one,) = [one for one in paged.request("GET", "/sessions")["sessions"] if one["session_id"] == session_of(page)]
    assert one["incognito"]
    message = "the budget of the day is spent: 20 of 11 tokens by this user"
    refusal = {"error": {"kind": "budget_spent", "message": message}}
    page.route("**/query", lambda route: route.fulfill(status=429, json=refusal, headers={"retry-after": "1"}))
    ask(page, "What does this cost?")
    expect(page.locator("[data-state=unsent]")).to_contain_text(f"Not accepted. {message}")
