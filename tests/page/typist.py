"""Somebody at a page who has no mouse."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

MOST_TABS = 60

# What is wrong with how somebody sees where they are, or nothing. Two boxes have a border.
SIGHT = """node => {
  const { outlineStyle, outlineWidth } = getComputedStyle(node), box = node.getBoundingClientRect();
  const bordered = node.matches("#question, [role=combobox]");
  if (!node.matches(":focus-visible")) return "it has the focus, and does not show it";
  if (!bordered && (outlineStyle === "none" || outlineWidth === "0px")) return "it has no outline";
  if (box.bottom < 0 || box.top > innerHeight || box.right < 0 || box.left > innerWidth) return "it is out of sight";
  return "";
}"""


class Typist:
    """Somebody at a page who has no mouse."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.question = page.locator("#question")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def write(self, text: str) -> None:
        self.page.keyboard.type(text)

    def reach(self, wanted: Locator, key: str = "Tab") -> None:
        """Go on with a key until something has the focus. Fails where it never gets it."""
        expect(wanted).to_be_visible()
        for _ in range(MOST_TABS):
            if wanted.evaluate("node => node === document.activeElement"):
                self.is_at(wanted)
                return
            self.press(key)
        raise AssertionError(f"{wanted} is not reached by {key}")

    def is_at(self, place: Locator) -> None:
        """Something has the focus, and it is seen."""
        expect(place).to_be_focused()
        trouble = place.evaluate(SIGHT)
        assert not trouble, f"{place}: {trouble}"

    def do(self, wanted: Locator, key: str = "Tab") -> None:
        """Reach a button and press it."""
        self.reach(wanted, key)
        self.press("Enter")

    def leave_field(self) -> None:
        """Where letters are commands."""
        expect(self.question).to_be_focused()
        self.press("Tab")
        expect(self.question).not_to_be_focused()

    def ask(self, question: str, answer: str | None = None) -> None:
        expect(self.question).to_be_focused()
        self.write(question)
        self.press("Enter")
        if answer:
            expect(self.page.locator("[data-answer]").last).to_have_text(answer)

    def command(self, name: str, title: str) -> None:
        """Do something by its name."""
        self.press("Control+k")
        expect(self.page.get_by_role("combobox", name="Search and commands")).to_be_focused()
        self.write(name)
        results = self.page.get_by_role("listbox", name="Results")
        expect(results.get_by_role("option", selected=True)).to_contain_text(title)
        self.press("Enter")
