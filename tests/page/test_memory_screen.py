"""The screen of the memory: exchanges, facts, notes and MEMORY.md, by mouse and by keyboard."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from local.core.versioned_text import Soul, TextProposals
from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit
from tests.page.test_hostile_words import WORDS, check
from tests.page.test_screens import overflow
from tests.page.typist import Typist

PHONE = {"width": 360, "height": 740}
GONE = "404"  # what is deleted may be asked for once more


def told(page: Page, address: str) -> None:
    """A part of the screen is there, with what it shows."""
    page.evaluate("address => (location.hash = address)", f"#/memory/{address}")
    expect(page.locator(".screen [aria-busy=true]")).to_have_count(0)


def row(page: Page, words: str) -> Any:
    return page.get_by_role("row").filter(has_text=words).first


def recalling(paged: PagedSystem, question: str) -> None:
    """Ask what the memory is searched for."""
    search = {"tool_calls": [{"name": "search_memory", "arguments": {"query": question}}]}
    paged.script({"user": f"^{re.escape(question)}", "replies": [search, {"content": "As you said."}]})
    paged.tell(question, f"memory-{len(question)}")


def test_an_exchange_is_found_with_its_why_opened_pinned_and_deleted(visit: Visit, paged: PagedSystem) -> None:
    paged.tell("I am severely allergic to walnuts", "memory-walnuts")
    paged.tell("I park my tricycle in Lisbon Street", "memory-tricycle")
    recalling(paged, "Where is my tricycle?")
    visitor = visit()
    visitor.expected = lambda trouble: GONE in trouble
    page = visitor.open("#/memory")
    page.get_by_role("searchbox", name="Search the memory").fill("where is my tricycle parked?")
    page.keyboard.press("Enter")
    found = page.get_by_role("table", name="Found exchanges")
    expect(found.locator(".why").first).to_contain_text("match")
    first = found.get_by_role("button", name="I park my tricycle in Lisbon Street")
    first.click()
    expect(first).to_have_attribute("aria-expanded", "true")
    opened = page.locator(".exchange")
    expect(opened.get_by_role("heading", name="Answer", exact=True)).to_be_visible()
    assert violations(page, ".screen") == []
    opened.get_by_role("link", name="Where is my tricycle?").click()
    expect(opened.get_by_role("heading", name="It rests on")).to_be_visible()
    expect(page).to_have_url(re.compile("#/memory/engrams/"))
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.get_by_role("link", name="All exchanges").click()
    page.get_by_role("button", name="I am severely allergic to walnuts").click()
    expect(opened.get_by_role("heading", name="Facts from here")).to_be_visible()
    opened.get_by_role("button", name="Pin").click()
    expect(row(page, "I am severely allergic to walnuts").locator(".tag")).to_have_text("pinned")
    expect(opened).to_contain_text("You pinned it.")
    opened.get_by_role("button", name="Unpin").click()
    expect(opened).to_contain_text("You unpinned it.")
    opened.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog", name="Forget this?")
    expect(dialog).to_contain_text(re.compile("Facts that are deleted with it: .*walnuts"))
    assert violations(page, "dialog") == []
    dialog.get_by_role("button", name="Forget").click()
    expect(page.get_by_role("button", name="I am severely allergic to walnuts")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export all").click()
    lines = [json.loads(line) for line in Path(saved.value.path()).read_text().split("\n") if line]
    assert any("tricycle" in line.get("query", "") for line in lines) and "walnuts" not in json.dumps(lines)


def test_a_fact_is_corrected_with_its_days_and_taken_back_by_keyboard(visit: Visit, paged: PagedSystem) -> None:
    paged.request("POST", "/memory/facts", json={"slot": "my boat", "value": "Argo"})
    person = Typist(page := visit(viewport=PHONE, color_scheme="dark").open("#/memory/facts"))
    correct = page.get_by_role("button", name="Correct my boat: Argo")
    person.do(correct)
    person.is_at(page.get_by_label("What is true"))
    person.press("Escape")
    person.is_at(correct)
    person.press("Enter", "Control+a")
    person.write("Beagle")
    assert violations(page, ".screen") == []
    assert overflow(page) == [0, 0, 0]
    page.get_by_label("Holds until").fill("2031-05-06")
    person.do(page.get_by_role("button", name="Save correction"))
    expect(row(page, "Beagle")).to_contain_text("2031")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    (fact,) = [one for one in paged.request("GET", "/memory/facts")["facts"] if one["slot"] == "my boat"]
    assert (fact["value"], fact["holds_until"]) == ("Beagle", "2031-05-06")
    person.do(page.get_by_role("button", name="Take back my boat: Beagle"))
    person.is_at(page.get_by_role("group").get_by_role("button", name="Cancel"))
    person.do(page.get_by_role("button", name="Take it back"))
    expect(page.get_by_role("button", name="Correct my boat: Beagle")).to_have_count(0)
    page.get_by_label("Show what no longer holds").check()
    expect(row(page, "Argo")).to_contain_text("no longer holds")
    page.get_by_role("button", name="Add a fact").click()
    page.get_by_label("About").fill("my boat")
    page.get_by_label("What is true").fill("Calypso")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Correct my boat: Calypso")).to_be_visible()
    person.is_at(page.get_by_role("button", name="Add a fact"))


def test_the_file_is_edited_and_a_note_of_it_is_withdrawn_and_restored(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open("#/memory/file")
    box = page.get_by_label("MEMORY.md")
    expect(box).to_have_value(re.compile("## Notes"))
    box.fill(box.input_value().replace("## Notes", "## Notes\n- Bring the orange rope"))
    page.get_by_role("button", name="Show the changes").click()
    expect(page.locator(".outcomes")).to_contain_text("Add Bring the orange rope")
    assert violations(page, ".screen") == []
    page.get_by_role("button", name="Change the memory").click()
    expect(page.locator(".outcomes")).to_contain_text("Added Bring the orange rope")
    expect(box).to_have_value(re.compile(r"- Bring the orange rope <!-- n\w+"))
    box.fill(re.sub(r"- Bring the orange rope <!-- .*\n", "", box.input_value()))
    page.get_by_role("button", name="Show the changes").click()
    expect(page.locator(".outcomes")).to_contain_text("Remove Bring the orange rope")
    page.get_by_role("button", name="Change the memory").click()
    expect(page.locator(".outcomes")).to_contain_text("Removed")
    page.get_by_role("link", name="Notes").click()
    page.get_by_label("Show what was replaced or withdrawn").check()
    page.get_by_role("button", name="Restore Bring the orange rope").click()
    expect(page.get_by_role("button", name="Restore Bring the orange rope")).to_have_count(0)
    held = paged.request("GET", "/memory/notes")["notes"]
    assert "Bring the orange rope" in [note["answer"] for note in held]


def test_what_is_remembered_elsewhere_appears_by_itself(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open("#/memory")
    told(page, "engrams")
    paged.ask("What is 611+612?", "memory-elsewhere")
    expect(page.get_by_role("button", name="What is 611+612?")).to_be_visible()


def engram(number: int, word: str) -> dict[str, Any]:
    return {
        "engram_id": f"e{number}", "query_id": f"q{number}", "respondent_id": word, "session_id": word, "query": word,
        "answer": word, "origin": word, "asked_at": 1.0 + number, "pinned": True, "score": 4, "sentiment": 1,
        "winner": word, "superseded_by": None, "recalled": [f"r{number}"], "intent": word, "entities": [word],
        "tainted": True, "note_of": None, "cut": True,
    }  # fmt: skip


def test_hostile_words_are_words_in_every_part(visit: Visit, paged: PagedSystem) -> None:
    words = WORDS[:40]
    rows = [engram(number, word) for number, word in enumerate(words)]
    hits = [
        one | {"relevance": 0.5, "similarity": 0.5, "parts": {one["query"]: 0.3}, "folded": [],
               "outdated": [{"slot": one["query"], "value": one["query"], "values": [one["query"]]}]}
        for one in rows
    ]  # fmt: skip
    facts = [
        {"slot": word, "value": word, "stated_at": 1.0, "engram_id": "e0", "superseded_at": None, "certain": False,
         "confirmed": number % 2 == 0, "questioned": True, "fact_id": number + 1, "holds_from": word}
        for number, word in enumerate(words)
    ]  # fmt: skip
    made: dict[str, Any] = {
        "**/memory?query=*": {"hits": hits, "degraded": words},
        "**/memory?limit=*": {"engrams": rows, "cursor": None},
        "**/memory/facts": {"facts": facts[::2], "unconfirmed": facts[1::2], "told": words, "pinned": words},
        "**/memory/notes": {"notes": [one | {"note_of": "q"} for one in rows]},
        "**/memory/file": {"text": "\n".join(words)},
    }
    visitor = visit(viewport=PHONE)
    visitor.follow_requests()
    for pattern, answer in made.items():
        visitor.context.route(pattern, lambda route, _, answer=answer: route.fulfill(json=answer))
    page = visitor.open("#/memory")
    for part in ("engrams", "facts", "notes", "file"):
        told(page, part)
        expect(page.locator(".table tr, .memory-file").first).to_be_visible()
        check(page)
        assert overflow(page) == [0, 0, 0], part


SIZES = {1440: 900, 1000: 800, 390: 844, 360: 740}


@pytest.mark.thorough
def test_its_parts_fit_at_four_sizes_in_both_themes(visit: Visit, paged: PagedSystem, tmp_path: Path) -> None:
    """`LOCAL2_PICTURES=docs/images` keeps the picture that the documentation shows, `LOCAL2_LOOK` all of them."""
    paged.tell("I take my coffee black, since I stopped with milk in November.", "memory-office")
    paged.tell("I am severely allergic to hazelnuts", "memory-cake")
    recalling(paged, "How do I take my coffee, with milk?")
    text = paged.request("GET", "/memory/file")["text"].replace(
        "## Notes", "## Notes\n- The cabin has no stove: bring one"
    )
    paged.request("POST", "/memory/file", json={"text": text, "apply": True})
    page = visit().open(paged.sign_in())
    page.get_by_role("button", name="Close this note").click()
    for part, open_one in (
        ("engrams", "I am severely allergic to hazelnuts"),
        ("search", ""),
        ("facts", "Correct"),
        ("notes", ""),
        ("file", ""),
    ):
        told(page, "engrams" if part == "search" else part)
        if part == "search":
            page.get_by_role("searchbox", name="Search the memory").fill("coffee, milk")
            page.keyboard.press("Enter")
            page.get_by_role("button", name="I take my coffee black").click()
            expect(page.get_by_role("link", name="How do I take my coffee")).to_be_visible()
        elif open_one:
            page.get_by_role("button", name=open_one).first.click()
            expect(page.locator(".exchange h2, .fact-form input").first).to_be_visible()
        for (width, height), theme in ((size, theme) for size in SIZES.items() for theme in ("light", "dark")):
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            name = f"memory-{part}-{width}-{theme}.png"
            assert len(page.screenshot(path=tmp_path / name)) > 15_000, "blank"
            assert overflow(page) == [0, 0, 0], name
            if look := os.environ.get("LOCAL2_LOOK"):
                shutil.copy(tmp_path / name, Path(look) / name)
            if (folder := os.environ.get("LOCAL2_PICTURES")) and (part, width, theme) == ("search", 1000, "light"):
                shutil.copy(tmp_path / name, Path(folder) / "memory.png")
        found: dict[int, list[str]] = {360: [], 1280: []}
        for width in found:
            page.set_viewport_size({"width": width, "height": 780})
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                found[width] += violations(page, ".screen")
        assert found == {360: [], 1280: []}, part


def test_the_soul_is_written_a_proposal_applied_and_a_version_restored(visit: Visit, paged: PagedSystem) -> None:
    page = visit(viewport=PHONE, color_scheme="dark").open(paged.sign_in())
    told(page, "soul")
    page.get_by_label("SOUL.md", exact=True).fill("Be kind.\nCall me Ann.")
    page.get_by_role("button", name="Save").click()
    part = page.get_by_role("listitem").filter(has_text="SOUL.md").locator("details").first
    part.locator("summary").click()
    expect(part).to_contain_text("Call me Ann.")
    settings = Path(paged.request("GET", "/soul")["path"]).parent
    TextProposals(Soul(settings, paged.system.data_dir)).propose("Be brief.\nCall me Ann.", "dreamer")
    page.reload()
    expect(page.get_by_role("region", name="Proposed change of SOUL.md")).to_contain_text("+Be brief.")
    assert (violations(page, ".screen"), overflow(page)) == ([], [0, 0, 0])
    page.get_by_role("button", name="Apply this change").click()
    expect(page.get_by_label("SOUL.md", exact=True)).to_have_value("Be brief.\nCall me Ann.")
    page.get_by_role("button", name="Restore version 1").click()
    page.get_by_role("button", name="Restore it").click()
    expect(page.get_by_label("SOUL.md", exact=True)).to_have_value("Be kind.\nCall me Ann.")
    paged.request("PUT", "/soul", json={"text": ""}, headers=paged.authorization)
