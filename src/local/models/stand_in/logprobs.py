"""The probabilities of what was said, as Ollama tells them (api/types.go, `Logprob`). A rule is certain: each is 1."""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]

# A digit is a token of its own, as it is for the models that grade.
_TOKEN = re.compile(r"\d|[^\W\d]+|\s+|[^\w\s]|_")


def logprobs_of(text: str, alternatives: int) -> list[Json]:
    """One entry for each token; joined, the tokens are the text. `alternatives` 0 leaves them out."""
    entries = (
        {"token": token, "logprob": 0.0, "bytes": list(token.encode("utf-8", "replace"))}
        for token in _TOKEN.findall(text)
    )
    return [entry | ({"top_logprobs": [entry]} if alternatives else {}) for entry in entries]
