"""Own pages by kind: the words that have to be in what is read of them, and those that may not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.core.web_url import MediaType
from local.web.fetch import Document, read_article

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
KINDS: dict[str, Any] = yaml.load(
    (Path(__file__).parents[2] / "data" / "page_kinds.yaml").read_text("utf-8"), Loader=_LOADER
)


def html_of(case: dict[str, Any]) -> str:
    """The page of a case: its body in its frame, with its paragraphs."""
    body = re.sub(r"\[([1-8])\]", lambda match: KINDS["paragraphs"][int(match[1])], case["body"])
    return str(KINDS["frames"][case["frame"]]["html"]).replace("BODY", body)


def words_of(case: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What has to be in the text of a case, and what may not."""
    named = re.findall(r"\[([1-8])\]", case["body"])
    keywords = [KINDS["paragraphs"][int(number)].rstrip(".").rpartition(" ")[2] for number in named]
    return [*case["keep"], *keywords], [*case.get("drop", ()), *KINDS["frames"][case["frame"]]["drop"]]


def text_of(case: dict[str, Any]) -> str:
    """What is read of a case, sent without a charset."""
    body = html_of(case).encode(case.get("charset", "utf-8"))
    return read_article(Document("http://pages.example/", MediaType("text/html"), body)).text


@pytest.mark.parametrize("case", KINDS["pages"], ids=[f"{case['kind']}: {case['name']}" for case in KINDS["pages"]])
def test_a_page_of_each_kind_is_its_content(case: dict[str, Any]) -> None:
    text = text_of(case)
    keep, drop = words_of(case)
    assert [word for word in keep if word not in text] == []
    assert [word for word in drop if word in text] == []


def test_there_are_pages_of_every_kind() -> None:
    kinds = {case["kind"] for case in KINDS["pages"]}
    assert kinds >= {"tables", "code", "lists", "forums", "docs", "shops", "non-English", "hidden text"}
    assert len(KINDS["pages"]) >= 60
