"""Three ways to use the page: with a mouse, with the keyboard alone, and on a phone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.page.typist import Typist

Size = tuple[int, int]
THEMES = ("light", "dark")

# Replaces texts, such as the paths of this machine, in what the page shows.
RENAME = """texts => {
  const renamed = (text) => Object.entries(texts).reduce((all, [from, to]) => all.replaceAll(from, to), text);
  const shown = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (shown.nextNode()) shown.currentNode.data = renamed(shown.currentNode.data);
  for (const field of document.querySelectorAll("input[type=text], textarea")) field.value = renamed(field.value);
}"""
OVERFLOW = "[...document.querySelectorAll('#page, main, .screen')].some(one => one.scrollWidth > one.clientWidth)"


class Mouse:
    """Somebody with a mouse; `sizes` are the windows in which `look` looks at the page, the first one is theirs."""

    name = "mouse"
    sizes: tuple[Size, ...] = ((1280, 800), (768, 1024), (1920, 1080))

    def __init__(self, page: Page, renamed: Mapping[str, str]) -> None:
        """`renamed` are texts, such as the paths of this machine, with what a picture shows instead."""
        self.page, self._renamed = page, dict(renamed)

    def press(self, wanted: Locator) -> None:
        """Press a button or follow a link."""
        wanted.click()

    def write(self, field: Locator, text: str) -> None:
        """Replace what is in a field."""
        self.press(field)
        field.fill(text)

    def choose(self, field: Locator, option: str) -> None:
        """Choose from the list of a field, by the words."""
        field.select_option(label=option)

    def pick(self, item: Locator) -> None:
        """Choose an item of the menu that is open."""
        self.press(item)

    def turn_to(self, tab: Locator) -> None:
        """Choose a tab beside the one that is shown."""
        self.press(tab)

    def send(self, question: str) -> None:
        """Ask in the conversation that is shown."""
        self.write(self.page.locator("#question"), question)
        self.press(self.page.get_by_role("button", name="Send"))

    def go(self, title: str) -> None:
        """Go to a screen."""
        self.press(self.page.get_by_role("navigation", name="Screens").get_by_role("link", name=title))

    def look(self, name: str) -> None:
        """Nothing overflows at any size in either theme. `LOCAL2_LOOK=FOLDER` keeps a picture of each."""
        folder = os.environ.get("LOCAL2_LOOK")
        if folder:
            self.page.evaluate(RENAME, self._renamed)
        for width, height in self.sizes:
            self.page.set_viewport_size({"width": width, "height": height})
            for theme in THEMES:
                self.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                assert not self.page.evaluate(OVERFLOW), f"{name} overflows at {width} pixels"
                if folder:
                    self.page.screenshot(path=Path(folder) / f"{name}-{width}-{theme}.png")
        if self.sizes:
            width, height = self.sizes[0]
            self.page.set_viewport_size({"width": width, "height": height})
            self.page.emulate_media(color_scheme="light")


class Phone(Mouse):
    """Somebody with a phone: taps, and has the bar at the bottom."""

    name = "phone"
    sizes = ((360, 740),)

    def press(self, wanted: Locator) -> None:
        wanted.tap()

    def go(self, title: str) -> None:
        bar = self.page.get_by_role("navigation", name="Screens")
        if bar.get_by_role("link", name=title).is_visible():
            super().go(title)
            return
        self.press(bar.get_by_role("button", name="More"))
        self.press(self.page.get_by_role("dialog", name="More").get_by_role("link", name=title))


IS_BEFORE = "node => Boolean(node.compareDocumentPosition(document.activeElement) & Node.DOCUMENT_POSITION_FOLLOWING)"
IS_IN_FIELD = "document.activeElement.matches('input, textarea, select')"
LETTERS = {
    "Chat": "c", "Memory": "m", "Schedules": "d", "Tools": "t", "Participants": "p", "Settings": "s", "System": "y",
}  # fmt: skip


class Keyboard(Mouse):
    """Somebody without a mouse: all that they use is reached by the tab key, and seen to have the focus."""

    name = "keyboard"
    sizes = ()

    def __init__(self, page: Page, renamed: Mapping[str, str]) -> None:
        super().__init__(page, renamed)
        self._typist = Typist(page)

    def press(self, wanted: Locator) -> None:
        self._reach(wanted)
        self.page.keyboard.press("Enter")

    def write(self, field: Locator, text: str) -> None:
        self._reach(field)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)

    def choose(self, field: Locator, option: str) -> None:
        self._reach(field)
        self.page.keyboard.type(option)

    def pick(self, item: Locator) -> None:
        self._typist.reach(item, "ArrowDown")
        self.page.keyboard.press("Enter")

    def turn_to(self, tab: Locator) -> None:
        self._reach(self.page.get_by_role("tab", selected=True))
        self._typist.reach(tab, "ArrowRight")

    def send(self, question: str) -> None:
        self.write(self.page.locator("#question"), question)
        self.page.keyboard.press("Enter")

    def go(self, title: str) -> None:
        while self.page.evaluate(IS_IN_FIELD):
            self.page.keyboard.press("Tab")
        self.page.keyboard.type(f"g{LETTERS[title]}")

    def _reach(self, wanted: Locator) -> None:
        expect(wanted).to_be_visible()
        self._typist.reach(wanted, "Shift+Tab" if wanted.evaluate(IS_BEFORE) else "Tab")
