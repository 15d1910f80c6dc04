"""One search hit, how what a provider sent becomes one, and how the model reads those of a search."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from urllib.parse import urldefrag, urlsplit

from local.errors import SearchUnavailable

TITLE_CHARS = 200
SNIPPET_CHARS = 500
URL_CHARS = 2048

# Names are listed because much of what comes is plain text, where `List<String>` or `a <b` is no markup.
_TAG = re.compile(
    r"</?(?:a|abbr|article|b|big|blockquote|body|br|center|cite|code|dd|del|div|dl|dt|em|figure|font|form|h[1-6]|head|"
    r"hr|html|i|iframe|img|input|ins|kbd|label|li|link|mark|meta|object|ol|p|picture|pre|q|s|samp|script|section|small|"
    r"span|strike|strong|style|sub|sup|svg|table|tbody|td|th|thead|time|title|tr|tt|u|ul|var|video|wbr)"
    r"(?:[\s/][^<>]*)?>"
    r"|<![^<>]*>",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One page that a provider found. Title and snippet are plain text on one line; the snippet may be empty."""

    title: str
    snippet: str
    url: str


def plain_text(value: object, limit: int) -> str:
    """`value` without markup, entities, control characters and runs of whitespace, cut at a word to `limit` characters.

    Anything but a string gives "".
    """
    if not isinstance(value, str):
        return ""
    # Entities come last, so that an escaped "&lt;div&gt;" in a title about HTML survives as text.
    text = _CONTROL.sub(" ", html.unescape(_TAG.sub("", value)))
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    if len(text) <= limit:
        return text
    whole_words = text[: limit - 1].rpartition(" ")[0]
    return (whole_words or text[: limit - 1]) + "…"


def _is_web_address(value: object) -> bool:
    if not isinstance(value, str) or len(value) > URL_CHARS or not value.isprintable() or " " in value:
        return False
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def hits_of(provider: str, results: object, max_results: int, *, snippet: str, url: str = "url") -> list[SearchHit]:
    """The usable hits of a provider's list of results, at most `max_results`; the keywords name the fields of an item.

    Addresses that are not http(s) and pages seen before are dropped. Raises SearchUnavailable when `results` is no list
    of objects or none of them has an address at all: such an answer was not understood, which is not "nothing found".
    """
    if not isinstance(results, list) or not all(isinstance(item, Mapping) for item in results):
        raise SearchUnavailable(provider, "its answer has no list of results")
    if results and not any(isinstance(item.get(url), str) for item in results):
        raise SearchUnavailable(provider, f"none of its results has a '{url}'")
    hits = (
        SearchHit(plain_text(item.get("title"), TITLE_CHARS), plain_text(item.get(snippet), SNIPPET_CHARS), item[url])
        for item in results
        if _is_web_address(item.get(url))
    )
    return _distinct(hits, max_results)


def _distinct(hits: Iterable[SearchHit], limit: int) -> list[SearchHit]:
    """The first `limit` pages; two addresses that differ in fragment or final slash alone are one page."""
    pages: dict[str, SearchHit] = {}
    for hit in hits:
        pages.setdefault(urldefrag(hit.url).url.rstrip("/"), hit)
        if len(pages) >= limit:
            break
    return list(pages.values())


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """An answered search. No hits means that `provider` looked and found nothing.

    `tried` names those asked before it that could not look, as (provider, reason).
    """

    query: str
    provider: str
    hits: tuple[SearchHit, ...]
    tried: tuple[tuple[str, str], ...] = ()


def render(outcome: SearchOutcome, today: date) -> str:
    """The text for the model: today's date first, then each hit with its number, or that there is none."""
    if outcome.hits:
        body = [_entry(number, hit) for number, hit in enumerate(outcome.hits, start=1)]
    else:
        body = [f'The search worked and found nothing for "{outcome.query}". Provider asked: {outcome.provider}.']
    if outcome.tried:
        failed = "; ".join(f"{provider} could not search ({reason})" for provider, reason in outcome.tried)
        body.append(f"Note: {failed}. {outcome.provider} answered instead.")
    return "\n\n".join([f"Today's date: {today.isoformat()}", *body])


def _entry(number: int, hit: SearchHit) -> str:
    return f"[{number}] Title: {hit.title or hit.url}\n    Snippet: {hit.snippet or '(none)'}\n    URL: {hit.url}"
