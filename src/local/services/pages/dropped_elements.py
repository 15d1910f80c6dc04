"""Elements that are taken out of a tree, each in its own time however much text stands around them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from local.services.pages.reading_limit import count_steps

if TYPE_CHECKING:
    from lxml.html import HtmlElement  # type: ignore[import-untyped]  # has no type stubs of its own


def drop_elements(elements: Iterable[HtmlElement]) -> None:
    """Take elements out of their tree, with what is in them; the text behind each stays.

    lxml's `drop_tree` copies all text before an element to add what stands behind it: of many elements among much text
    the time grows with the square. Here what stands behind neighbours is put together first.
    """
    doomed = dict.fromkeys(element for element in elements if element.getparent() is not None)
    for first in [element for element in doomed if element.getprevious() not in doomed]:
        _drop_run(first, doomed)


def _drop_run(first: HtmlElement, doomed: dict[HtmlElement, None]) -> None:
    """Take out an element and those right after it that go, too."""
    parent, before = first.getparent(), first.getprevious()
    run = [first]
    while (following := run[-1].getnext()) is not None and following in doomed:
        run.append(following)
    behind = "".join(element.tail or "" for element in run)
    for element in run:
        element.tail = None
        parent.remove(element)
    joined_to = (parent.text if before is None else before.tail) or ""
    count_steps(len(joined_to) + len(behind))
    if behind and before is not None:
        before.tail = joined_to + behind
    elif behind:
        parent.text = joined_to + behind
