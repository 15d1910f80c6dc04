"""What of a message is the user's own: not what they quote, paste as material, or put into a block."""

from __future__ import annotations

import re

_LONG_QUOTATION = 60  # characters; less is a name or a phrase that the user uses
_FENCE = re.compile(r"(`{3,}|~{3,}).*?(?:\1|\Z)", re.DOTALL)
_ADDRESS = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_QUOTED_LINE = re.compile(r"^\s*[>|].*$", re.MULTILINE)
_TAGGED = re.compile(r"<([a-zA-Z][\w-]*)(?=[\s/>])[^>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL)
_QUOTATIONS = tuple(
    re.compile(rf"{opening}[^{closing}]*(?:[{closing}]|\Z)")
    for opening, closing in (('"', '"'), ("“", "”"), ("„", "“”"), ("«", "»"), ("»", "«"), ("「", "」"), ("『", "』"))
)
# "Summarise this mail:" – what comes after that is not what the user has to say.
_MATERIAL = re.compile(
    r"\b(?:summari[sz]e|translate|proofread|rewrite|rephrase|paraphrase|shorten|correct|improve|edit|review|analy[sz]e"
    r"|explain|classify|reply to|respond to|answer this|(?:this|the following) (?:text|mail|e-?mail|message|letter|page"
    r"|article|post|document|code|log|list|conversation|story|poem)"
    r"|fasse?|übersetze?|korrigiere?|verbessere?|résume|traduis|corrige|resume|traduce|riassumi|traduci)\b"
    r"[^\n:]{0,80}:\s.*",
    re.DOTALL | re.IGNORECASE,
)


def own_words(text: str) -> str:
    """The text without fences, quoted lines, tagged spans, web addresses, long quotations, and what follows an order to
    work on it."""
    for pattern in (_FENCE, _TAGGED, _QUOTED_LINE, _MATERIAL):
        text = pattern.sub("\n", text)
    text = _ADDRESS.sub("", text)
    for pattern in _QUOTATIONS:
        text = pattern.sub(lambda found: found[0] if len(found[0]) < _LONG_QUOTATION else "\n", text)
    return text.strip()
