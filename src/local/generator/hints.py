"""The line behind a small model's question: that it is to be answered, or which tool is to be called. No I/O.

Small models follow what stands last in a prompt: with this line a model of 1.5 billion parameters answered 28 of 30
plain questions and called the right tool for 19 of 20 others, without it 25 and 10 [m]. A model of half a billion calls
tools because a line names them: "Answer in words" names none [m]. A wrong line is worse than none, so there is none
unless one kind of question is ahead of all others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

ANSWER = "(Answer in words.)"
CALL = "(Call {tool} for this.)"
MARGIN_TO_ANSWER, MARGIN_TO_CALL = 0.05, 0.1  # ahead of the next kind
LONGEST = 600  # characters of a question; a longer one contains material, which the vector is then about
FILE_TOOLS: Final = ("read_file", "list_files", "write_file")
_ADDRESS = re.compile(r"https?://\S|\bwww\.\S|\b(?:[\w-]+\.)+(?:com|org|net|info|example|at|de|eu|uk)\b/?")
_FILE = re.compile(
    r"[\w-]+\.(?:txt|md|csv|tsv|json|ya?ml|toml|ini|cfg|log|pdf|docx?|xlsx?|html?|xml|py|js|ts|c|h|cpp|rs|go|java|sh|sql)\b"
)
_SEARCH = re.compile(
    r"\b(?:top|first|best) (?:search )?(?:results?|hits?)\b|\bsearch results?\b|\bsearch (?:the )?(?:web|internet)\b",
    re.I,
)
OF_ADDRESS, OF_FILE = 0.6, 0.3  # added to the scores of the tools that such a name is for


def tool_in(line: str) -> str:
    """The tool that a line says to call; empty for any other line."""
    before, after = CALL.split("{tool}")
    return line.removeprefix(before).removesuffix(after) if line.startswith(before) and line.endswith(after) else ""


def hint(question: str, kinds: Mapping[str, float], tools: Collection[str]) -> str:
    """Return the line; empty if no kind is clearly ahead. `kinds` are the memory's scores (`QuestionKinds`), by the
    name of a tool or "" for none; `tools` are those that the model may call.
    """
    if not tools or len(question) > LONGEST:
        return ""
    scores = dict(kinds)
    if _ADDRESS.search(question):
        scores["web_fetch"] = scores.get("web_fetch", 0.0) + OF_ADDRESS
    elif _SEARCH.search(question):
        scores["web_search"] = scores.get("web_search", 0.0) + OF_ADDRESS
    elif _FILE.search(question):
        scores |= {tool: scores.get(tool, 0.0) + OF_FILE for tool in FILE_TOOLS}
    best, *others = sorted(scores, key=scores.__getitem__, reverse=True) or [""]
    ahead = scores.get(best, 0.0) - (scores[others[0]] if others else 0.0)
    if best == "":
        return ANSWER if ahead >= MARGIN_TO_ANSWER else ""
    return CALL.format(tool=best) if best in tools and ahead >= MARGIN_TO_CALL else ""
