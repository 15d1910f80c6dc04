"""Secrets that a user or a page lets slip: found by their pattern and replaced by a word that says what was there."""

from __future__ import annotations

import re
from functools import partial

_TOKEN = r"[A-Za-z0-9_\-]"
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "private key",  # to its end, or, where that was cut off, as long as lines look like one
        re.compile(
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[\s\S]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\:,\-]*)"
        ),
    ),
    (
        "API key",
        re.compile(
            r"(?<![A-Za-z0-9])(?:"
            rf"sk-{_TOKEN}{{20,}}|(?:sk|rk|pk)_(?:live|test)_{_TOKEN}{{10,}}"  # OpenAI, Anthropic, OpenRouter; Stripe
            rf"|gh[pousr]_[A-Za-z0-9]{{30,}}|github_pat_{_TOKEN}{{20,}}|glpat-{_TOKEN}{{20,}}"
            r"|(?:AKIA|ASIA)[A-Z0-9]{16}"  # AWS
            rf"|AIza{_TOKEN}{{35}}|ya29\.{_TOKEN}{{20,}}"  # Google
            rf"|xox[abeoprs]-{_TOKEN}{{10,}}|xapp-{_TOKEN}{{20,}}"  # Slack
            rf"|hf_[A-Za-z0-9]{{30,}}|npm_[A-Za-z0-9]{{36}}|pypi-{_TOKEN}{{40,}}|tvly-{_TOKEN}{{20,}}"
            rf"|SG\.{_TOKEN}{{16,}}\.{_TOKEN}{{16,}}"  # SendGrid
            rf"|eyJ{_TOKEN}{{8,}}\.eyJ{_TOKEN}{{8,}}\.{_TOKEN}*"  # a JSON web token
            r")"
        ),
    ),
    ("key", re.compile(r"(?<=\bBearer )[A-Za-z0-9._~+/\-]{16,}=*", re.IGNORECASE)),
    (
        "key",  # named as such and looking like one: 16 characters or more with a digit among them
        re.compile(
            r"(?:(?<=key)|(?<=token)|(?<=secret))(?P<said>[\"']?(?: is |: ?| ?= ?)[\"']?)"
            r"(?=[A-Za-z+/_.\-]*[0-9])[A-Za-z0-9+/_.\-]{16,}=*",
            re.IGNORECASE,
        ),
    ),
)
_CARD = re.compile(r"(?<![\w.,+])\d(?:[ \-]?\d){12,18}(?![\w]|[.,]\d)")
_ISSUERS = re.compile(r"(?:4|5[1-5]|2[2-7]|3[47]|3[0689]|6)")  # Visa, Mastercard, Amex, Diners and JCB, Discover & Co.


def masked(text: str) -> str:
    """The text without keys, tokens, private keys and card numbers."""
    for what, pattern in _PATTERNS:
        text = pattern.sub(partial(_replacement, what), text)
    return _CARD.sub(_without_card, text)


def _replacement(what: str, found: re.Match[str]) -> str:
    said = found.groupdict().get("said") or ""
    return said + _mask(what)


def _mask(what: str) -> str:
    return f"[{what} not stored]"


def _without_card(found: re.Match[str]) -> str:
    digits = re.sub(r"\D", "", found[0])
    is_card = _ISSUERS.match(digits) and len(set(digits)) > 1 and _luhn(digits)
    return _mask("card number") if is_card else found[0]


def _luhn(digits: str) -> bool:
    """The check digit of ISO/IEC 7812-1."""
    doubled = (int(digit) * (1 + number % 2) for number, digit in enumerate(reversed(digits)))
    return sum(value - 9 * (value > 9) for value in doubled) % 10 == 0
