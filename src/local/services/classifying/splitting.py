"""What a user typed, as sentences: where they end, what is quoted, and which of them tell a story."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from local.services.classifying import moods
from local.services.classifying.sentence import QUOTED, Sentence, folded, occurrences
from local.services.classifying.speaker import Speaker

_TITLES = "dr|mr|mrs|ms|prof|st|sta|sr|sra|srta|sig|dott|mme|mlle|hr|fr|mt|ft|dra|avda|ing|pfr|hl"
_SHORT = (
    r"\w*str|jr|nr|vs|etc|e\.g|i\.e|z\.b|d\.h|bzw|ca|approx|a\.m|p\.m|av|ave|rd|blvd|apt|inc|ltd|co|corp|vol|ch|abs|tel|geb|u\.a"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|o[ck]t|nov|de[cz]"
)
_MONTHS = "(?:jan|feb|mär|mar|apr|mai|maj|jun|jul|aug|sep|okt|oct|nov|dez|des|dec)\\w*|klasse|stock|etage|og"
_STOP = re.compile(r"(?<=[!?…。！？])[\"”’)»]*\s*|(?<=\.)[\"”’)»]*\s+|\n+")
_STOPS = re.compile(r"[.!?]")
_NO_END = re.compile(
    rf"(?:(?<!\w)(?:{_TITLES})|(?<!\w)(?!i\b)[a-z]|(?P<short>(?<!\w)(?:{_SHORT}))|(?P<number>(?<!\w)\d{{1,2}})|(?P<no>(?<!\w)no))\.$",
    re.IGNORECASE,
)
_QUOTATIONS = re.compile(
    "|".join(
        [r'(?<!\d)"(?P<a>[^"\n]*)(?:"|$)', r"“(?P<b>[^”“]*)(?:[”“]|\Z)", r"„(?P<c>[^“”]*)(?:[“”]|\Z)",
         r"«(?P<d>[^»]*)(?:»|\Z)", r"»(?P<e>[^«]*)(?:«|\Z)", r"「(?P<f>[^」]*)(?:」|\Z)", r"『(?P<g>[^』]*)(?:』|\Z)",
         r"《(?P<h>[^》]*)(?:》|\Z)", r"‘(?P<i>[^’\n]*)’(?!\w)", r"(?<![\w])'(?P<j>[^'\n]+)'(?!\w)",
         r"‚(?P<k>[^‘\n]*)‘"]
    ),
    re.MULTILINE,
)  # fmt: skip
_LABEL = re.compile(r"^[^\S\n]*(?:\*\*)?([A-Z]\w{1,20}(?: [A-Z]\w{1,20})?)(?:\*\*)?:[^\S\n]+\S.*$", re.MULTILINE)


def sentences(text: str, value: str = "") -> tuple[Sentence, ...]:
    """The sentences of a text. A stop within `value` as it stands in the text ends none after a short word."""
    return _sentences(text, value if _STOPS.search(value) else "")


@lru_cache(maxsize=8)  # the claims of one reply are about one text
def _sentences(text: str, value: str) -> tuple[Sentence, ...]:
    plain = _without_others_words(text)
    starts = occurrences(folded(text), folded(value)) if value else []
    inside = {at for start in starts for at in range(start, start + len(value))}
    told: list[Sentence] = []
    frame = about_the_user = False
    for start, end in _spans(plain, inside):
        part = plain[start:end]
        if "\n\n" in plain[:start][-3:] or moods.REALITY.search(part):
            frame = about_the_user = False
        if moods.KIDDING.search(part) and told:
            told[-1] = replace(told[-1], is_fiction=True)
        frame = frame or moods.FICTION.search(part) is not None
        about_the_user = about_the_user or moods.ABOUT_ME.match(part) is not None
        if part.strip():
            told.append(Sentence(text[start:end], part, frame, about_the_user))
    return tuple(told)


def _spans(text: str, inside: set[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for stop in _STOP.finditer(text):
        if stop.end() == start or (stop.start() == stop.end() == len(text)) or _goes_on(text, stop, inside):
            continue
        yield start, stop.end()
        start = stop.end()
    yield start, len(text)


def _goes_on(text: str, stop: re.Match[str], inside: set[int]) -> bool:
    """Whether a stop ends no sentence: behind an abbreviation, an initial or the number of a day."""
    before, after = text[max(0, stop.start() - 12) : stop.start()], text[stop.end() :]
    if "\n" in stop[0]:
        return False
    if not before.endswith("."):  # a name such as Yahoo! or Jeopardy!
        return stop.start() in inside and re.search(r"(?<!\w)[A-Z]\w{1,10}!$", before) is not None
    if stop.start() in inside and stop.start() - 1 in inside and re.search(r"(?<!\w)\w{1,4}\.$", before):
        return True
    found = _NO_END.search(before)
    if found is None:
        return False
    if found["short"]:
        return not after[:1].isupper()
    if found["number"]:
        return bool(re.match(_MONTHS, after, re.IGNORECASE)) or after[:1].islower()
    return not found["no"] or after[:1].isdigit()


_COMMENT = re.compile(r"(?<![:\w/])//[^\n]*|/\*.{0,2000}?\*/", re.DOTALL)  # of a program


def _without_others_words(text: str) -> str:
    """The text with what it quotes, in quotation marks or as somebody's speech, as `QUOTED`, character by character."""
    plain = _COMMENT.sub(lambda found: QUOTED * len(found[0]), _QUOTATIONS.sub(_blanked, text))
    is_a_list = any(map(moods.ABOUT_ME.match, plain.splitlines()))
    if not is_a_list and len({label[1] for label in _LABEL.finditer(plain)}) > 1:  # who says what, line by line
        plain = _LABEL.sub(lambda found: QUOTED * len(found[0]), plain)
    for found in moods.SAYS.finditer(plain):
        colon = re.compile(r"[^\n.,:：!?]{0,20}[:：]").match(plain, found.end())
        if colon and Sentence(plain, plain).speaker(found.start()) is not Speaker.USER:
            end = plain.find("\n\n", colon.end())
            stop = len(plain) if end < 0 else end
            plain = plain[: colon.end()] + QUOTED * (stop - colon.end()) + plain[stop:]
    return plain


def _blanked(found: re.Match[str]) -> str:
    name = found.lastgroup or ""
    start, end = found.start(name) - found.start(), found.end(name) - found.start()
    return found[0][:start] + QUOTED * (end - start) + found[0][end:]
