"""Every place where words of strangers stand, each with every one of 250 hostile words: as the API would give them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from tests.page.conftest import Visitor
from tests.page.test_hostile_words import TAGS, WORDS, check

Visit = Callable[..., Visitor]

RUN = ("top.pwned&#40;1&#41;", "pwned``", "eval('pwn'+'ed()')", "location='javascript:pwned()'", "open('//evil')")
ALL = list(dict.fromkeys([*WORDS, *(tag.format(run) for tag, run in product(TAGS, RUN))]))
SESSION = "hostile"
# What stands out of its turn cannot be read: it is cut off there.
CUT_OFF = """() => {
  const turns = [...document.querySelectorAll(".turn")];
  for (const turn of turns) turn.style.contentVisibility = "visible";
  const clips = (node) => getComputedStyle(node).overflowX !== "visible";
  const isOut = (node, turn, edge) => {
    if (node.getBoundingClientRect().right <= edge) return false;
    for (let above = node.parentElement; above !== turn; above = above.parentElement) if (clips(above)) return false;
    return true;
  };
  return turns.flatMap((turn) => {
    const edge = turn.getBoundingClientRect().right + 1;
    const out = [...turn.querySelectorAll("*")].filter((node) => isOut(node, turn, edge));
    return out.map((node) => `${node.tagName}.${node.className} of ${node.parentElement.className}`);
  });
}"""


def turn(number: int, word: str) -> dict[str, Any]:
    """A turn that has the word wherever it has any."""
    is_bad, is_recalled = number % 5 == 0, number % 7 == 0  # which take their time to draw
    call = {
        "call_id": f"c{number}", "tool": word, "args": {"query": word, word: [word]}, "result": word, "error": None,
        "sources": [word, f"https://evil.example/{word}", f"engram:e{number}"], "duration_ms": 3, "tainted": True,
        "recalled": [{"engram_id": f"e{number}", "similarity": 0.5, "parts": {word: 0.3}, "outdated": [{"now": word}]}],
    }  # fmt: skip
    if not is_recalled:
        call["recalled"] = []
    failed = {**call, "call_id": f"d{number}", "result": None, "error": {"kind": word, "message": word}, "recalled": []}
    return {
        "query_id": f"q{number}", "session_id": SESSION, "query": word, "answer": word, "thinking": word, "model": word,
        "attachments": [{"id": "a", "name": word, "media_type": word, "size": 3}], "tool_calls": [call, failed],
        "status": "failed" if is_bad else "answered", "error": {"kind": word, "message": word} if is_bad else None,
        "degraded": [word], "scores": {"critique": {"score": 3, "feedback": word}}, "created_at": 1.0,
    }  # fmt: skip


def serve(browser: BrowserContext, words: list[str]) -> None:
    """Answer as the API with these words."""
    turns = [turn(number, word) for number, word in enumerate(words)]
    listed = [
        {"session_id": f"s{number}", "title": word, "updated_at": 1.0, "started_at": 1.0, "turns": 1}
        for number, word in enumerate(words)
    ]
    answers: dict[str, Callable[[str], Any]] = {
        f"**/sessions/{SESSION}/turns*": lambda path: {"session_id": SESSION, "turns": turns, "total": len(turns)},
        f"**/sessions/{SESSION}": lambda path: {"session_id": SESSION, "branches": [], "messages": []},
        "**/sessions?*": lambda path: {"sessions": listed, "cursor": None},
        "**/memory/e*": lambda path: {"engram": {"engram_id": "e", "query": words[int(path.split("/e")[-1])]}},
    }

    def answer(make: Callable[[str], Any]) -> Callable[[Route], None]:
        return lambda route: route.fulfill(body=json.dumps(make(route.request.url)), content_type="application/json")

    for pattern, make in answers.items():
        browser.route(pattern, answer(make))


@pytest.mark.thorough
def test_a_hostile_word_is_a_word_in_every_place(visit: Visit) -> None:
    assert len(ALL) >= 250
    visitor = visit(viewport={"width": 360, "height": 780})
    visitor.follow_requests()
    serve(visitor.context, ALL)
    page = visitor.open(f"#/c/{SESSION}")
    expect(page.locator("article.turn")).to_have_count(len(ALL))
    page.eval_on_selector_all(".thinking summary, .call-head", "all => all.forEach(one => one.click())")
    expect(page.locator(".insides")).to_have_count(2 * len(ALL))
    assert page.locator(".asked p").all_text_contents() == ALL
    check(page)
    assert Counter(page.evaluate(CUT_OFF)) == {}
