"""What a search came to, and how the model reads it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from local.services.search.hit import Hit


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """An answered search. No hits means that `provider` looked and found nothing.

    `tried` names those asked before it that could not look, as (provider, reason).
    """

    query: str
    provider: str
    hits: tuple[Hit, ...]
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


def _entry(number: int, hit: Hit) -> str:
    return f"[{number}] Title: {hit.title or hit.url}\n    Snippet: {hit.snippet or '(none)'}\n    URL: {hit.url}"
