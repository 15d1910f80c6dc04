"""The styles that a page itself gives its elements, as far as it takes to know what is seen of them."""

from __future__ import annotations

import colorsys
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.html import HtmlElement  # type: ignore[import-untyped]  # has no type stubs of its own

Colour = tuple[float, float, float, float]

_MAX_CSS = 200_000  # characters of all <style> elements
_COMMENT = re.compile(r"/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|$)")
_SELECTOR = re.compile(r"[a-z][a-z0-9]*|(?:[a-z][a-z0-9]*)?[.#][\w-]+")
_LENGTH = re.compile(r"([+-]?\d*\.?\d+)\s*([a-z%]*)")
_PIXELS = {"": 1.0, "px": 1.0, "pt": 1.333, "pc": 16.0, "cm": 37.8, "mm": 3.78, "in": 96.0, "rem": 16.0, "q": 0.945}
_RELATIVE = {"em": 16.0, "ex": 8.0, "ch": 8.0, "%": 10.0, "vw": 10.0, "vh": 10.0, "vmin": 10.0, "vmax": 10.0}
_FONT_SIZES = {"small", "medium", "large", "x-small", "xx-small", "x-large", "xx-large", "initial"}
_FONT_SHORTHAND = re.compile(r"(?:^|\s)([\d.]+[a-z%]*)\s*(?:/|\s)")
_FUNCTION = re.compile(r"(rgb|hsl)a?\(([^()]*)\)")
_COLOUR_WORD = re.compile(r"#[0-9a-f]{3,8}|(?:rgb|hsl)a?\([^()]*\)|[a-z]+")
_NAMES = {
    **{"white": "ffffff", "black": "000000", "red": "ff0000", "lime": "00ff00", "blue": "0000ff", "green": "008000"},
    **{
        "yellow": "ffff00",
        "gray": "808080",
        "grey": "808080",
        "silver": "c0c0c0",
        "maroon": "800000",
        "navy": "000080",
    },
    **{"whitesmoke": "f5f5f5", "snow": "fffafa", "ivory": "fffff0", "ghostwhite": "f8f8ff", "transparent": "00000000"},
    **{"purple": "800080", "teal": "008080", "aqua": "00ffff", "orange": "ffa500", "olive": "808000"},
}
_HIDING_CLASSES = frozenset({"sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text"})
_STYLED = "//*[@style or @hidden or @color or @bgcolor or self::dialog{}]".format(
    "".join(f" or contains(@class, '{name}')" for name in sorted(_HIDING_CLASSES))
)


class StyleSheet:
    """Rules of one simple selector (`p`, `.note`, `#top`, `p.note`) in `<style>`, and what elements say themselves."""

    def __init__(self, tree: HtmlElement) -> None:
        """Reads the `<style>` elements of a tree; media queries and compound selectors are passed over."""
        self._rules: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._ground_is_white = tree.find(".//link[@rel='stylesheet']") is None
        self._known: dict[HtmlElement, dict[str, str]] = {}
        css = "".join(style.text or "" for style in tree.iter("style"))[:_MAX_CSS]
        for selectors, body in _rules(_COMMENT.sub("", css).lower()):
            self._add(selectors, body)

    def _add(self, selectors: str, body: str) -> None:
        declared = declarations(body)
        for selector in map(str.strip, selectors.split(",")):
            if _SELECTOR.fullmatch(selector):
                self._rules[selector].update(declared)
            elif any(name.startswith("background") for name in declared):
                self._ground_is_white = False

    def styled(self, tree: HtmlElement) -> Iterator[HtmlElement]:
        """The elements that anything is said of, in document order."""
        if not self._rules:
            return iter(tree.xpath(_STYLED))
        bare = set(tree.xpath(_STYLED))
        return (one for one in tree.iter() if one in bare or any(rule in self._rules for rule in _selectors(one)))

    def of(self, element: HtmlElement) -> dict[str, str]:
        """What is declared for an element, property by property, in lower case; `sr-only` for classes of that use."""
        if element not in self._known:
            self._known[element] = self._declared(element)
        return self._known[element]

    def _declared(self, element: HtmlElement) -> dict[str, str]:
        found = {old: element.get(old).lower() for old in ("color", "bgcolor") if element.get(old)}
        if "bgcolor" in found:
            found["background-color"] = found.pop("bgcolor")
        for selector in _selectors(element) if self._rules else ():
            found |= self._rules.get(selector, {})
        if not _HIDING_CLASSES.isdisjoint((element.get("class") or "")[:500].lower().split()):
            found["sr-only"] = ""
        return found | declarations(_COMMENT.sub("", (element.get("style") or "")[:_MAX_CSS]).lower())

    def ground(self, element: HtmlElement) -> Colour | None:
        """The colour behind an element's text; None if the page alone does not say."""
        for one in (element, *element.iterancestors()):
            styles = self.of(one)
            said = [styles[name] for name in ("background", "background-color", "background-image") if name in styles]
            if any("url(" in value or "gradient" in value for value in said):
                return None
            if found := next((shade for value in said if (shade := colour(value)) and shade[3] > 0), None):
                return found
        return colour("white") if self._ground_is_white else None


def declarations(body: str) -> dict[str, str]:
    """The declarations of a rule or a `style` attribute in lower case; the last of a name counts."""
    pairs = (part.partition(":") for part in body.split(";"))
    found = {name.strip(): value.replace("!important", "").strip() for name, _, value in pairs if value}
    if "font-size" not in found and (size := _FONT_SHORTHAND.search(found.get("font", ""))):
        found["font-size"] = size[1]
    return found


def length(value: str, otherwise: float, *, relative: bool = True) -> float:
    """A length in CSS pixels, roughly where it is relative (0 of it if `relative` is off); `otherwise` for none."""
    match = _LENGTH.fullmatch(value)
    if match is None:
        return 16.0 if value in _FONT_SIZES else otherwise
    scale = _PIXELS.get(match[2]) or (_RELATIVE.get(match[2], 0.0) if relative else 0.0)
    return float(match[1]) * scale


def colour(value: str) -> Colour | None:
    """Red, green and blue (0 to 255) and opacity (0 to 1) of the first colour in a value, None if there is none."""
    for match in _COLOUR_WORD.finditer(value):
        word = match[0]
        if function := _FUNCTION.fullmatch(word):
            return _computed(function[1], function[2])
        if digits := word[1:] if word.startswith("#") else _NAMES.get(word):
            return _hexadecimal(digits)
    return None


def _hexadecimal(digits: str) -> Colour | None:
    wide = "".join(2 * digit for digit in digits) if len(digits) in (3, 4) else digits
    if len(wide) not in (6, 8):
        return None
    red, green, blue, opacity = (int((wide + "ff")[at : at + 2], 16) for at in (0, 2, 4, 6))
    return red, green, blue, opacity / 255


def _computed(kind: str, arguments: str) -> Colour | None:
    parts = re.findall(r"-?\d*\.?\d+%?", arguments)
    if len(parts) not in (3, 4):
        return None
    opacity = _part(parts[3], 1.0) if len(parts) == 4 else 1.0
    if kind == "rgb":
        red, green, blue = (_part(part, 255.0) for part in parts[:3])
        return red, green, blue, opacity
    hue, saturation, light = float(parts[0].rstrip("%")) / 360, _part(parts[1], 1.0), _part(parts[2], 1.0)
    red, green, blue = colorsys.hls_to_rgb(hue % 1.0, light, saturation)
    return red * 255, green * 255, blue * 255, opacity


def _part(text: str, whole: float) -> float:
    return float(text[:-1]) / 100 * whole if text.endswith("%") else float(text)


def _selectors(element: HtmlElement) -> list[str]:
    tag, classes, name = element.tag, (element.get("class") or "")[:500].lower().split(), element.get("id")
    ids = [f"#{name.lower()}", f"{tag}#{name.lower()}"] if name else []
    return [tag, *(f".{one}" for one in classes), *(f"{tag}.{one}" for one in classes), *ids]


def _rules(css: str) -> list[tuple[str, str]]:
    """Selectors and declarations of the rules that stand in no block of their own."""
    found, depth, start, selectors = [], 0, 0, ""
    for brace in re.finditer(r"[{}]", css):
        piece, start = css[start : brace.start()], brace.end()
        if brace[0] == "{":
            depth += 1
            selectors = piece.rpartition(";")[2] if depth == 1 else "@"
        else:
            if depth == 1 and not selectors.strip().startswith("@"):
                found.append((selectors, piece))
            depth = max(0, depth - 1)
    return found
