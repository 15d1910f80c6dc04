"""Outcomes: the text that the model reads."""

from __future__ import annotations

from datetime import date

from local.web.search import SearchHit, SearchOutcome, render

TODAY = date(2026, 5, 30)


def test_hits_follow_the_date_numbered_with_title_snippet_and_url():
    hits = (SearchHit("Tea", "All about tea.", "https://tea.example/"), SearchHit("", "", "https://b.example/"))
    assert render(SearchOutcome("tea", "brave", hits), TODAY) == (
        "Today's date: 2026-05-30\n\n"
        "[1] Title: Tea\n    Snippet: All about tea.\n    URL: https://tea.example/\n\n"
        "[2] Title: https://b.example/\n    Snippet: (none)\n    URL: https://b.example/"
    )


def test_nothing_found_says_that_the_search_worked_and_who_looked():
    assert render(SearchOutcome("tea", "brave", ()), TODAY) == (
        'Today\'s date: 2026-05-30\n\nThe search worked and found nothing for "tea". Provider asked: brave.'
    )


def test_a_fallback_is_named_in_one_line_at_the_end():
    hits = (SearchHit("Tea", "All about tea.", "https://tea.example/"),)
    text = render(SearchOutcome("tea", "brave", hits, (("searxng", "HTTP 403"), ("tavily", "no key"))), TODAY)
    assert text.splitlines()[-1] == (
        "Note: searxng could not search (HTTP 403); tavily could not search (no key). brave answered instead."
    )
