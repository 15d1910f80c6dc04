"""Judged text made harmless: a judge can read it all, and none of it looks like a word of the prompt.

Two measures, each enough for most attacks. Every line gets a margin, so that no line of judged text can pass for a
heading, a rubric, a reply or another speaker. Within the lines the marks that judges and chat templates give a
meaning (`[RESULT]`, `###`, `**Result:**`, `<|im_start|>`, `[INST]` …) are changed into something that reads the same.
"""

from __future__ import annotations

import re
import unicodedata

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
    """One line without what hides in it, its marks defused."""
    return _defused(_visible(line)).rstrip()


def _visible(line: str) -> str:
    """What a reader sees of one line: hidden characters carry instructions unseen, or cut a mark in two."""
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
