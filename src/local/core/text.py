"""Search in questions and answers, regardless of case. It scans all texts, so that no index must be updated after a
deletion. Runs in the caller's transaction.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import unicodedata
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from local.core.errors import BadRequest

# Text as UTF-8, from the command line or the standard input, where Python lets other bytes pass as half characters.

STANDARD_INPUT = "the standard input"
_WORD_BEGIN = re.compile(r'[^\s"]*\Z')
_WORD_END = re.compile(r'[^\s"]*')
_MOST_SHOWN = 60  # characters on each side of an invalid UTF-8 byte


class NotUtf8(BadRequest):
    """A text that is not valid UTF-8: `word` shows the bytes around the fault, such as `caf\xe9`."""

    kind = "not_utf8"

    def __init__(self, text: str, at: int, place: str = "") -> None:
        """`text` is invalid at index `at`; `place` names where the text was read."""
        begin = _WORD_BEGIN.search(text, max(0, at - _MOST_SHOWN), at)
        end = _WORD_END.match(text, at, at + _MOST_SHOWN)
        self.word = _with_bytes((begin[0] if begin else "") + (end[0] if end else ""))
        line = text.count("\n", 0, at) + 1
        where = f"{place}, line {line}: " if place else ""
        super().__init__(f"{where}'{self.word}' is not UTF-8 text; write it in UTF-8 (`iconv -t UTF-8` makes it so)")


def as_utf8(text: str, place: str = "") -> bytes:
    """The text as UTF-8. Raises `NotUtf8`."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotUtf8(text, error.start, place) from None


def standard_input() -> str:
    """Read the standard input to its end. Raises `NotUtf8`."""
    return utf8_text(sys.stdin.buffer.read(), STANDARD_INPUT)


def utf8_text(content: bytes, place: str) -> str:
    """Decode UTF-8 bytes. Raises `NotUtf8`."""
    text = content.decode("utf-8", "surrogateescape")
    as_utf8(text, place)
    return text


def _with_bytes(text: str) -> str:
    return "".join(f"\\x{ord(each) - 0xDC00:02x}" if "\udc80" <= each <= "\udcff" else each for each in text)


# Secrets in a text of a user or a page: found by their pattern and replaced by a word for their kind.

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


# Judged text made harmless: a judge can read it all, and none of it looks like a part of the prompt.

MARGIN = ">"
NOTHING = "(nothing)"

_HIDDEN = frozenset({"Cc", "Cf", "Cs"})  # controls, format characters, lone surrogates
_INVISIBLE = re.compile(  # the other characters that show as nothing: joiner, fillers, variation selectors, tags
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_LOOKALIKES = str.maketrans("еѕтυετгսӏі", "estuetruli")  # Cyrillic, Greek and Armenian letters for those of "result"

_BOLD_LABEL = re.compile(r"(?<!\*)\*++\s*+(result|reasoning|feedback|score|winner)\s*+(:?)\s*+\*+", re.IGNORECASE)
_KEY = re.compile(r'"\s*(score|winner)\s*"(?=\s*:)', re.IGNORECASE)
_HASHES = re.compile(r"[#＃﹟](?=[#＃﹟])")
_BRACKETED = re.compile(r"[\[［【⟦]([^\[\]［］【】⟦⟧]{1,60})[\]］】⟧]")
_OPEN_MARK = re.compile(r"[\[［【⟦](?=\s*+result\s*+(?:[:：]|[1-5１-５AB]\b))", re.IGNORECASE)  # need not be closed
_MARKS_IN_BRACKETS = frozenset(
    {"result", "inst", "system_prompt", "available_tools", "tool_calls", "tool_results", "tool_content", "think", "img"}
)
_WORD_TAG = re.compile(
    r"<(/?(?:s|bos|eos|pad|unk|sys|think|thinking|system|user|assistant|human|model|tool_call|tool_response"
    r"|start_of_turn|end_of_turn|end_of_text|fim_\w{1,20}|unused\d{1,4})/?)>",
    re.IGNORECASE,
)
_BAR_TAG = re.compile(r"<(/?[|｜][^<>\n]{0,60}|[^<>\n]{0,60}[|｜])>")


def quoted(text: str) -> str:
    """The text as a harmless quotation: each line behind a margin, marks defused, hidden characters left out."""
    lines = map(harmless, text.splitlines())
    return "\n".join(f"{MARGIN} {line}".rstrip() for line in lines) if text.strip() else f"{MARGIN} {NOTHING}"


def harmless(line: str) -> str:
    """Return one line without hidden characters, its marks defused."""
    return _defused(_visible(line)).rstrip()


def _visible(line: str) -> str:
    """Return the visible text of one line: hidden characters can carry unseen instructions, or split a mark."""
    if line.isascii() and line.isprintable():
        return line
    shown = (" " if char == "\t" else char for char in line)
    return _INVISIBLE.sub("", "".join(char for char in shown if unicodedata.category(char) not in _HIDDEN))


def _defused(line: str) -> str:
    line = _BOLD_LABEL.sub(r"\1\2", line)
    line = _KEY.sub(r"'\1'", line)
    line = _HASHES.sub("# ", line)
    line = _OPEN_MARK.sub("(", line)
    line = _BRACKETED.sub(lambda found: f"({found[1]})" if _folded(found[1]) in _MARKS_IN_BRACKETS else found[0], line)
    line, found = _WORD_TAG.sub(r"‹\1›", line), 1
    while found:  # a tag inside another one leaves the outer one, which is one only then
        line, found = _BAR_TAG.subn(r"‹\1›", line)
    return line


def _folded(word: str) -> str:
    """The letters of a word as they look, whatever alphabet, width, case, spacing or accent they are written in."""
    plain = unicodedata.normalize("NFKD", word).casefold().translate(_LOOKALIKES)
    return "".join(char for char in plain if char.isalnum() or char == "_")


AROUND = 60  # characters on each side of a hit
MOST_HITS = 1000
_ESCAPED = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})


class Needle:
    """A text to search for. SQLite ignores the case of ASCII letters only, so other letters are replaced by wildcards
    in SQL, and its hits are checked again.
    """

    def __init__(self, text: str) -> None:
        self._folded = text.casefold()
        pattern = "".join(letter if letter.isascii() else "_" for letter in text.translate(_ESCAPED))
        self._pattern, self._is_exact = f"%{pattern}%", text.isascii()

    def is_in(self, text: str | None) -> bool:
        """Whether a text has it."""
        return text is not None and self._folded in text.casefold()

    def place_in(self, text: str) -> tuple[int, int] | None:
        """Return where the hit begins and ends in a text."""
        at = text.casefold().find(self._folded)
        if at < 0:
            return None
        if len(text.casefold()) != len(text):  # letters that fold into several
            at = next((n for n in range(len(text)) if text[n:].casefold().startswith(self._folded)), 0)
        return at, at + len(self._folded)

    def condition(self, column: str, parameters: dict[str, Any]) -> str:
        """Return an SQL condition that a column contains it, whose parameters are added. It needs `prepare`."""
        number = len(parameters)
        parameters[f"like{number}"] = self._pattern
        like = f"{column} LIKE :like{number} ESCAPE '\\'"
        if self._is_exact:
            return like
        parameters[f"folded{number}"] = self._folded
        return f"({like} AND holds({column}, :folded{number}))"


class TextHit(NamedTuple):
    """One hit of a search in a session: query_id, whether it is in the query, the answer or the thinking, and the text
    around it.
    """

    query_id: str
    where: str
    excerpt: str


def prepare(db: sqlite3.Connection) -> None:
    """Make a connection able to search."""
    db.create_function("holds", 2, lambda text, folded: folded in (text or "").casefold(), deterministic=True)


def excerpt(text: str, needle: Needle) -> str:
    """Return an excerpt around the hit, on one line; the beginning of the text if there is no hit."""
    begins, ends = needle.place_in(text) or (0, 0)
    start, stop = max(0, begins - AROUND), ends + AROUND
    shown = " ".join(text[start:stop].split())
    return f"{'… ' if start else ''}{shown}{' …' if stop < len(text) else ''}"


def matches(db: sqlite3.Connection, respondent_id: str, needles: Sequence[Needle]) -> dict[str, int]:
    """Return the sessions with a turn whose question and answer together contain all of these: the latest turn's
    position.
    """
    parameters: dict[str, Any] = {"own": respondent_id}
    each = [f"({n.condition('query', parameters)} OR {n.condition('answer', parameters)})" for n in needles]
    sql = (
        "SELECT session_id, max(position) AS position FROM turns WHERE respondent_id = :own AND in_history"
        f" AND refused IS NULL AND {' AND '.join(each)} GROUP BY session_id"
    )
    return {row["session_id"]: row["position"] for row in db.execute(sql, parameters)}


def find_in_session(db: sqlite3.Connection, respondent_id: str, session_id: str, text: str) -> list[TextHit]:
    """Find a text in a session: the first thousand hits, oldest first, one per query, answer and thinking."""
    needle, parameters = Needle(text), dict[str, Any](own=respondent_id, session=session_id, most=MOST_HITS)
    columns = ("query", "answer", "json_extract(outcome, '$.thinking')")
    where = " OR ".join(needle.condition(column, parameters) for column in columns)
    sql = (
        "SELECT query_id, query, answer, outcome FROM turns WHERE respondent_id = :own AND session_id = :session"
        f" AND refused IS NULL AND ({where}) ORDER BY position LIMIT :most"
    )
    hits: list[TextHit] = []
    for row in db.execute(sql, parameters):
        thinking = json.loads(row["outcome"]).get("thinking") if row["outcome"] else None
        for name, said in (("query", row["query"]), ("thinking", thinking), ("answer", row["answer"])):
            if said and needle.is_in(said):
                hits.append(TextHit(row["query_id"], name, excerpt(said, needle)))
    return hits[:MOST_HITS]


LEVELS = ("debug", "info", "warning", "error")
"""The levels of log messages, by the names that users give them."""

_ASCII_SPACE = re.compile(r"[^\S\x00-\x7f]")  # white space outside ASCII, such as the no-break space


# Fillers, blanks and variation selectors that count as printable and show as nothing; not the two that emoji have.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0").union(
    map(chr, (*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0)))
)


def visible(text: str) -> str:
    """Return one line without control characters: escapes, line ends, direction marks, fillers and the like show as
    `\\x1b`.
    """
    if text.isprintable() and _BLANK.isdisjoint(text):
        return text
    spaced = _ASCII_SPACE.sub(" ", text)
    return "".join(map(_as_code, spaced))


def _as_code(char: str) -> str:
    return char if char.isprintable() and char not in _BLANK else char.encode("unicode_escape").decode()


# The bytes that a command has written, as text that can be read and shown anywhere.

# Characters that would move a terminal's cursor, ring its bell or be commands to it; line ends and tabs stay.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
# Characters that change how a line looks: marks and overrides of the writing direction.
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
BINARY_SHARE = 0.1  # the share of control characters above which data is not text


def readable_output(data: bytes) -> str:
    """Return the text without loss: an invalid UTF-8 byte and a control character show as \\x and two digits, a
    direction mark as \\u and four.
    """
    text = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", data.decode("utf-8", "backslashreplace"))
    return _DIRECTION.sub(lambda found: f"\\u{ord(found[0]):04x}", text).replace("\r\n", "\n")


def is_binary(data: bytes) -> bool:
    """Whether bytes are not text, by the first 4,096 of them."""
    start = data[:4096]
    return bool(start) and (
        b"\0" in start or len(_CONTROL.findall(start.decode("latin-1"))) > BINARY_SHARE * len(start)
    )
