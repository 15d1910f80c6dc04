"""What a screen reader is given: the roles and names of the main screens, as they stand in `aria/*.yaml`. Where one is
meant to be another one: delete its file, run this test, and read what it has written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.conftest import PagedSystem
from tests.page.test_approvals import card_of
from tests.page.test_changes import write
from tests.page.test_chat import Visit, answered, ask
from tests.page.test_inspector import READY, long_trace
from tests.page.test_palette import SCHEMA, open_palette

FOLDER = Path(__file__).parent / "aria"
NODE = re.compile(r"""(?P<indent> *)- (?P<node>'?[a-z]+(?: "(?:[^"\\]|\\.)*")?(?: \[[^\]]+\])*'?)(?::.*)?""")

# What a model was told of the user depends on what other tests have told the memory.
WITHOUT_MEMORY = "document.querySelectorAll('[data-context]').forEach(card => (card.style.display = 'none'))"


def names_and_roles(screen: Locator) -> str:
    """A screen's tree, each node with its role, name and state, without its texts; a figure is `#`."""
    found = (NODE.fullmatch(line) for line in screen.aria_snapshot().splitlines())
    lines = [f"{one['indent']}- {one['node']}" for one in found if one and one["node"] != "text"]
    return re.sub(r"(?<!level=)\b\d+(?:[.,\u202f]\d+)*( (?:ms|s|B|kB))?\b", "#", "\n".join(lines)) + "\n"


class Screens:
    """The screens as they are in this run, beside those in git."""

    def __init__(self) -> None:
        self.seen: dict[str, str] = {}

    def see(self, name: str, screen: Locator) -> None:
        self.seen[name] = names_and_roles(screen)

    def compare(self) -> None:
        """Raises if a screen is another one; writes those that have no file, and then fails."""
        new = [name for name in self.seen if not (FOLDER / f"{name}.yaml").exists()]
        for name in new:
            (FOLDER / f"{name}.yaml").write_text(self.seen[name])
        assert not new, f"written anew, to be read and committed: {new}"
        assert self.seen == {name: (FOLDER / f"{name}.yaml").read_text() for name in self.seen}
        assert {file.stem for file in FOLDER.iterdir()} == set(self.seen), "a file of no screen"


def see_inspector(page: Page, screens: Screens) -> None:
    trace = long_trace()
    trace.update(spans=trace["spans"][:2], envelopes=trace["envelopes"][:2], self_time={"tool": 1.0})
    page.route("**/trace", lambda route: route.fulfill(json=trace))
    page.locator(".why-button").click()
    for tab, ready in READY.items():
        page.click(f"[role=tab][data-tab={tab}]")
        expect(page.locator(ready if tab != "sources" else ".panel[data-tab=sources] .empty").first).to_be_visible()
        screens.see(f"inspector_{tab}", page.locator(".inspector"))
    page.keyboard.press("Escape")


def see_dialogs(page: Page, screens: Screens) -> None:
    settings = {"name": "critic", "schema": SCHEMA, "file": "/x/critic.yaml", "restart_needed": [],
                "values": {"max_tokens": 100, "mode": "auto", "is_strict": True}, "defaults": {}}  # fmt: skip
    page.route("**/settings/critic", lambda route: route.fulfill(json=settings))
    open_palette(page)
    page.keyboard.type("settings of critic")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Settings of critic")
    screens.see("palette", page.get_by_role("dialog"))
    page.keyboard.press("Enter")
    expect(page.locator(".setting").last).to_be_visible()
    screens.see("settings", page.locator(".section"))


def see_places(page: Page, screens: Screens) -> None:
    """Each screen, with what it has in a system that has just been started, one exchange, and two models."""
    one = {"engram_id": "e", "query_id": "q", "respondent_id": "A", "query": "How old is the moon?", "origin": "user",
           "answer": "Old.", "asked_at": 1.0, "pinned": True, "score": 4, "sentiment": 1, "winner": None}  # fmt: skip
    models = [{"name": "small:4b", "size": 3_000_000_000, "current": True}, {"name": "large:12b"}]
    page.route("**/models", lambda route: route.fulfill(json={"models": models, "current": "small:4b", "pulls": []}))
    page.route("**/memory?limit=*", lambda route: route.fulfill(json={"engrams": [one], "cursor": None}))
    for name in ("memory", "agents", "schedules", "system"):
        page.evaluate(f"location.hash = '#/{name}'")
        expect(page.locator(f".screen[data-screen={name}] [aria-busy=true]")).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        if name == "system":  # the memory names its model once it has embedded something
            expect(page.locator(".facts")).to_contain_text("Embeds memories")
            expect(page.get_by_role("heading", name="Download")).to_be_visible()
        screens.see(f"screen_{name}", page.locator("main"))


@pytest.mark.thorough
def test_the_main_screens_have_the_names_and_roles_that_stand_in_git(visit: Visit, paged: PagedSystem) -> None:
    paged.script({"user": "^a list of names", "replies": [write("names.txt", "Ada\n"), {"content": "Listed."}]})
    page = visit().open(paged.sign_in())
    screens = Screens()
    page.fill("#search-conversations", "zzzz")
    expect(page.locator("[aria-label=Found] h2")).to_contain_text("No conversation contains")
    screens.see("empty", page.locator("#page"))
    ask(page, "a list of names")
    expect(card_of(page)).to_be_visible()
    screens.see("approval_card", card_of(page))
    card_of(page).get_by_role("button", name="Allow once").click()
    answered(page)
    expect(page.locator(".line .grade")).to_be_visible()
    page.evaluate(WITHOUT_MEMORY)
    screens.see("conversation", page.locator("main"))
    see_inspector(page, screens)
    see_dialogs(page, screens)
    see_places(page, screens)
    screens.compare()
