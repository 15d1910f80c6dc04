"""The verdict in a reply of plain text: what stands right behind the judge's mark, alone to the end of its line."""

from __future__ import annotations

import re
from typing import Final

from local.services.judging.prompt import Reading

# Anything else on the line ("4 or 5", "4.5", "3-4", "45", "4/10", "4 is too high") and there is no verdict: whoever
# guesses here gives a score that the judge did not.
_BEFORE = r"[\s:=*_`\"'(\[]*"
_AFTER = r"[^\S\n]*[)\]*_`\"'.!]*[^\S\n]*(?:\n|\Z)"
SCORE: Final = re.compile(
    rf"{_BEFORE}(?:(?:score|rating|grade){_BEFORE})?(?P<said>[1-5])(?:\.0)?(?:\s?/\s?5| out of 5)?{_AFTER}",
    re.IGNORECASE,
)
_SCORE_BEGUN = re.compile(SCORE.pattern.removesuffix(_AFTER) + r"(?!\w)", re.IGNORECASE)
WINNER: Final = re.compile(rf"{_BEFORE}(?:response\s)?(?P<said>[AB]){_AFTER}", re.IGNORECASE)
_WINNER_BEGUN = re.compile(WINNER.pattern.removesuffix(_AFTER) + r"(?!\w| or B)", re.IGNORECASE)
_BEGUN: Final = {SCORE: _SCORE_BEGUN, WINNER: _WINNER_BEGUN}  # the same, whatever comes behind on the line
_LABEL = re.compile(r"\A[\s*#]*(?:feedback|reasoning)\s*:?[\s*]*", re.IGNORECASE)
_END_OF_TEXT = re.compile(
    r"</s>|<\|(?:im_end|end_of_text|endoftext|eot_id|eot|end)\|>|<(?:eos|end_of_turn|pad)>|\[/INST\]", re.IGNORECASE
)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>|\[/THINK\]|<\|channel\|>final<\|message\|>", re.IGNORECASE)
_THOUGHT_BEGINS = re.compile(r"<think(?:ing)?>|\[THINK\]|<\|channel\|>analysis", re.IGNORECASE)
_FULL_WIDTH = str.maketrans(
    "０１２３４５６７８９ＡＢａｂ．。：／（）［］【】！", "0123456789ABab..:/()[][]!"
)  # one for one


def plain(text: str) -> str:
    """What is said, without thoughts and what follows the end, in full width or not; no place in the text moves."""
    begin = spoken(text)
    said = _END_OF_TEXT.split(_THOUGHT_BEGINS.split(text[begin:], maxsplit=1)[0], maxsplit=1)[0]
    return " " * begin + said.translate(_FULL_WIDTH)


def spoken(text: str) -> int:
    """Where a reply begins that was thought out loud: no mark counts that was weighed before."""
    return max((thought.end() for thought in _THOUGHT_ENDS.finditer(text)), default=0)


def marked(text: str, mark: re.Pattern[str], form: re.Pattern[str]) -> Reading[str] | None:
    """What stands behind the last mark; None if that cannot be read, or another mark says something else."""
    reply = plain(text)
    marks = list(mark.finditer(reply))
    said = form.match(reply, marks[-1].end()) if marks else None
    begun = [_BEGUN[form].match(reply, each.end()) for each in marks]
    if said is None or len({each["said"].upper() for each in begun if each}) > 1:
        return None
    return Reading(
        said["said"].upper(), _LABEL.sub("", text[spoken(text) : marks[-1].start()]).strip(), said.start("said")
    )


def score(found: Reading[str] | None) -> Reading[int] | None:
    """A reading with the score as a number."""
    return Reading(int(found.value), found.feedback, found.at) if found else None
