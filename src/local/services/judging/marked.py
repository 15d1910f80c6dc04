"""The verdict in a reply of plain text: it stands right behind a mark, alone to the end of its line."""

from __future__ import annotations

import re

from local.services.judging.prompt import Reading

# Anything else on the line ("4 or 5", "4.5", "3-4", "45", "4/10", "4 is too high") and there is no verdict: whoever
# guesses here gives a score that the judge did not.
_BEFORE = r"[\s:=*_`\"'(\[]*"
_AFTER = r"[^\S\n]*[)\]*_`\"'.!]*[^\S\n]*(?:\n|\Z)"
_SCORE = re.compile(
    rf"{_BEFORE}(?:(?:score|rating|grade){_BEFORE})?(?P<said>[1-5])(?:\.0)?(?:\s?/\s?5| out of 5)?{_AFTER}",
    re.IGNORECASE,
)
_WINNER = re.compile(rf"{_BEFORE}(?:[Rr]esponse\s)?(?P<said>[AB]){_AFTER}")
_LABEL = re.compile(r"\A[\s*#]*(?:feedback|reasoning)\s*:?[\s*]*", re.IGNORECASE)


def read_score(text: str, mark: re.Pattern[str]) -> Reading[int] | None:
    """The score, 1 to 5, behind the last mark."""
    found = _verdict(text, mark, _SCORE)
    return Reading(int(found.value), found.feedback, found.at) if found else None


def read_winner(text: str, mark: re.Pattern[str]) -> Reading[str] | None:
    """`A` or `B`, the response that stands behind the last mark."""
    return _verdict(text, mark, _WINNER)


def _verdict(text: str, mark: re.Pattern[str], form: re.Pattern[str]) -> Reading[str] | None:
    marks = list(mark.finditer(text))
    said = form.match(text, marks[-1].end()) if marks else None
    return (
        Reading(said["said"], _LABEL.sub("", text[: marks[-1].start()]).strip(), said.start("said")) if said else None
    )
