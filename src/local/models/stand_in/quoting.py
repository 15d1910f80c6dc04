"""Takes the quotable parts out of what tools came back with: hits of a search, sentences of a page."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HIT = re.compile(
    r"^\[(?P<number>\d+)\]\s*(?:Title:\s*)?(?P<title>.+)\n"
    r"(?:\s+(?:Snippet:\s*)?(?P<snippet>(?!\s*(?:URL:|https?://)).+)\n)?"
    r"\s+(?:URL:\s*)?(?P<url>https?://\S+)",
    re.M,
)
_MEMORY = re.compile(
    r"^\[\d+\] (?P<when>.+)\n(?P<outdated>(?:This no longer holds.*\n)*)The user (?:asked|said):\n(?P<said>(?:>.*\n)+)"
    r"The assistant answered.*:\n(?P<answered>(?:>.*(?:\n|\Z))+)",
    re.M,
)
_FACT = re.compile(r"^- (?P<slot>.+?): (?P<values>“.+)$", re.M)
_URL = re.compile(r"https?://[^\s<>\"'\])]+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"”’)]*\s+(?=[\"“‘(]?[A-Z0-9À-Þ])")
# Lines that tools put around the text itself.
_HEADER = re.compile(
    r"^(?:(?:title|url|source|today's date|extracted text|links on the page):|\[characters \d|- .*: https?://\S+$)",
    re.I,
)
_TRAILING = ".,;:!?"


@dataclass(frozen=True, slots=True)
class QuotedHit:
    """One search result as it was numbered."""

    number: int
    title: str
    snippet: str
    url: str


@dataclass(frozen=True, slots=True)
class Memory:
    """A remembered exchange as search_memory tells it; `outdated` is the sentence that says what no longer holds."""

    when: str
    said: str
    answered: str
    outdated: str


def memories(text: str) -> list[Memory]:
    """The remembered exchanges in the text of search_memory."""
    return [
        Memory(m["when"], _without_margin(m["said"]), _without_margin(m["answered"]), m["outdated"].strip())
        for m in _MEMORY.finditer(text)
    ]


def facts(text: str) -> list[str]:
    """What the user has said of themselves, in the text of search_memory, each as `slot: “value” (said …)`."""
    return [f"{m['slot']}: {m['values']}" for m in _FACT.finditer(text)]


def _without_margin(quotation: str) -> str:
    return " ".join(line.removeprefix(">").strip() for line in quotation.splitlines()).strip()


def hits(text: str) -> list[QuotedHit]:
    """The numbered results in a search tool's text."""
    return [
        QuotedHit(
            int(m["number"]),
            m["title"].strip(),
            (m["snippet"] or "").strip().replace("(none)", ""),
            m["url"].rstrip(_TRAILING),
        )
        for m in _HIT.finditer(text)
    ]


def first_url(text: str) -> str | None:
    """The first http(s) address in a text, without the punctuation that follows it."""
    found = _URL.search(text)
    return found.group().rstrip(_TRAILING) if found else None


def sentences(text: str, limit: int = 3, characters: int = 600) -> str:
    """The first whole sentences of a text, at most `limit` of them; only a single too long one is cut."""
    body = " ".join(line.strip() for line in text.splitlines() if line.strip() and not _HEADER.match(line.strip()))
    taken = ""
    for sentence in _SENTENCE_END.split(body)[:limit]:
        if taken and len(taken) + len(sentence) >= characters:
            break
        taken = f"{taken} {sentence}".strip()
    return taken if len(taken) <= characters else taken[:characters].rsplit(" ", 1)[0] + " …"


def title(text: str) -> str | None:
    """The title a fetch tool put at the head of a page."""
    found = re.search(r"^Title:\s*(.+)$", text, re.M)
    return found[1].strip() if found else None
