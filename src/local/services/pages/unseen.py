"""What a browser does not show of a page: taken out of its tree, so that nobody reads what no person sees."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from local.services.pages.dropped_elements import drop_elements
from local.services.pages.reading_limit import text_of
from local.services.pages.style_sheet import StyleSheet, colour, length

if TYPE_CHECKING:
    from lxml.html import HtmlElement  # type: ignore[import-untyped]  # has no type stubs of its own

# A page that fades in holds most of its text in elements that are transparent at first; one that hides holds little.
_FADES_IN = 0.3
_OFF_SCREEN = -900.0  # px
_TINY = 1.0  # px
_CLIPPED = re.compile(
    r"rect\((?:\s*[01](?:px)?[\s,]*){4}\)|inset\(\s*(?:[5-9]\d|100)%|circle\(\s*0|scale[xy]?\(\s*0\s*[,)]"
)
_SHIFT = re.compile(r"translate(?:x|y|3d)?\(\s*(-[\d.]+[a-z%]*)")
_CONTROLS = (
    "//*[@role='tab' or @aria-expanded][not(ancestor::nav or ancestor::header[not(ancestor::main)])]/@aria-controls"
)
_ALWAYS_SHOWN = frozenset({"html", "head", "body", "title", "base", "link", "meta", "style", "script"})


def drop_unseen(tree: HtmlElement) -> None:
    """Remove what is hidden, tiny, off the screen, clipped away or written in the colour of its ground.

    Styles are those in the page: `style` and a few old attributes, and rules of one simple selector in `<style>`.
    Panels of tabs and of accordions stay, because a click shows them.
    """
    sheet = StyleSheet(tree)
    panels = _opened_by_click(tree)
    fading: list[HtmlElement] = []
    gone: list[HtmlElement] = []
    for element in [one for one in sheet.styled(tree) if one.tag not in _ALWAYS_SHOWN]:
        styles = sheet.of(element)
        if _is_gone(element, styles) or _is_out_of_sight(styles):
            if element not in panels:
                gone.append(element)
        elif styles.get("opacity", "") in ("0", "0%", "0.0", ".0"):
            fading.append(element)
        else:
            _drop_unreadable(element, styles, sheet)
    drop_elements(gone)
    _drop_transparent(tree, fading)


def _opened_by_click(tree: HtmlElement) -> set[HtmlElement]:
    """What a tab or a heading that folds opens; a menu that a button opens is none of it."""
    controls = {name for value in tree.xpath(_CONTROLS) for name in value.split()}
    opened = [panel for panel in tree.xpath("//*[@id]") if panel.get("id") in controls] if controls else []
    return {panel for panel in opened if panel.get("role") == "tabpanel" or not _is_menu(panel)}


def _is_menu(element: HtmlElement) -> bool:
    if element.tag in ("nav", "dialog", "form") or element.get("role") in ("menu", "navigation", "dialog", "search"):
        return True
    linked = sum(len(text_of(anchor)) for anchor in element.iter("a"))
    return element.find(".//nav") is not None or 2 * linked >= len(text_of(element).strip())


def _is_gone(element: HtmlElement, styles: dict[str, str]) -> bool:
    hidden = element.get("hidden")
    return (
        (hidden is not None and hidden.lower() != "until-found")
        or styles.get("display") == "none"
        or styles.get("content-visibility") == "hidden"
        or (element.tag == "dialog" and element.get("open") is None)
    )


def _is_out_of_sight(styles: dict[str, str]) -> bool:
    placed = styles.get("position") in ("absolute", "fixed")
    sides = ("text-indent", "margin-left", "margin-top", *(("left", "top", "right", "bottom") if placed else ()))
    cut = styles.get("overflow", "") in ("hidden", "clip")
    sizes = ("width", "height", "max-width", "max-height") if cut else ()
    shape = " ".join(styles.get(name, "") for name in ("clip", "clip-path", "transform"))
    shift = _SHIFT.search(shape)
    return (
        any(length(styles.get(side, ""), 0.0) <= _OFF_SCREEN for side in sides)
        or any(length(styles.get(size, ""), 99.0) <= _TINY for size in sizes)
        or "sr-only" in styles
        or _CLIPPED.search(shape) is not None
        or (shift is not None and length(shift[1], 0.0) <= _OFF_SCREEN)
    )


def _drop_unreadable(element: HtmlElement, styles: dict[str, str], sheet: StyleSheet) -> None:
    """Text that is there and cannot be read; what stands inside it and shows again stays."""
    if styles.get("visibility") in ("hidden", "collapse"):
        _silence(element, lambda inner: sheet.of(inner).get("visibility") == "visible")
    if length(styles.get("font-size", ""), 99.0) <= _TINY:
        _silence(element, lambda inner: length(sheet.of(inner).get("font-size", ""), 0.0, relative=False) > _TINY)
    ink = styles.get("color", "")
    if ink and _is_invisible(element, ink, sheet):
        _silence(element, lambda inner: _stands_out(inner, sheet))


def _stands_out(element: HtmlElement, sheet: StyleSheet) -> bool:
    styles = sheet.of(element)
    return any(name in styles for name in ("color", "background", "background-color"))


def _is_invisible(element: HtmlElement, ink: str, sheet: StyleSheet) -> bool:
    written = colour(ink)
    if ink == "transparent" or (written is not None and written[3] == 0.0):
        # Text may be cut out of a coloured ground.
        return not any("text" in value for name, value in sheet.of(element).items() if name.endswith("background-clip"))
    ground = sheet.ground(element)
    if written is None or ground is None:
        return False
    return max(abs(one - other) for one, other in zip(written[:3], ground[:3], strict=True)) <= 8


def _drop_transparent(tree: HtmlElement, fading: list[HtmlElement]) -> None:
    if not fading:
        return
    whole, known = len(text_of(tree)), set(fading)
    outer = [one for one in fading if known.isdisjoint(one.iterancestors())]
    if sum(len(text_of(one)) for one in outer) <= whole * _FADES_IN:
        drop_elements(outer)


def _silence(element: HtmlElement, shows_again: Callable[[HtmlElement], bool]) -> None:
    element.text = None
    for child in element:
        child.tail = None
        if not shows_again(child):
            _silence(child, shows_again)
