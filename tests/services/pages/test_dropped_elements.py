"""What is left of a tree from which elements were taken: the same as with lxml, one by one."""

from __future__ import annotations

import pytest
from lxml import etree
from lxml.html import HtmlElement, fromstring

from local.web.text import drop_elements

PAGES = [
    "<p>a<i>1</i>b<i>2</i>c<b>d</b><i>3</i>e</p>",
    "<p><i>1</i><i>2</i>a<i>3</i>b</p>",
    "<p>a<i>1<i>2</i>3</i>b<b><i>4</i></b></p>",
    "<p>a<i>1<b>2</b><i>3</i>4</i><i>5</i>b</p>",
    "<p><i></i><!--c--><i></i>d</p>",
]


def doomed(tree: HtmlElement) -> list[HtmlElement]:
    return list(tree.iter("i"))


@pytest.mark.parametrize("page", PAGES)
def test_what_stands_behind_dropped_elements_stays(page: str) -> None:
    one_by_one, at_once = fromstring(page), fromstring(page)
    for element in doomed(one_by_one):
        element.drop_tree()
    drop_elements(doomed(at_once))
    assert etree.tostring(at_once) == etree.tostring(one_by_one)


def test_what_has_no_parent_stays() -> None:
    tree = fromstring("<p>a</p>")
    drop_elements([tree])
    assert tree.text == "a"
