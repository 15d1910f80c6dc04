"""The probabilities of generated tokens as Ollama and OpenAI's API both write them. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from local.models.chat import Json, TokenScore, TokenScores


def token_scores(holder: Any, key: str) -> Iterator[TokenScores]:
    """The scores under that key of an object: `[{"token", "logprob", "top_logprobs": [{"token", "logprob"}]}]`.

    None where there are none. They are an extra: what is not in that form is left out and breaks no answer.
    """
    entries = holder.get(key) if isinstance(holder, dict) else None
    if isinstance(entries, list) and entries:
        yield TokenScores(tuple(_score(entry) for entry in entries if isinstance(entry, dict)))


def _score(entry: Json) -> TokenScore:
    top = entry.get("top_logprobs")
    found = [entry, *(top if isinstance(top, list) else ())]
    alternatives = {
        str(one.get("token", "")): float(one["logprob"])
        for one in found
        if isinstance(one, dict) and isinstance(one.get("logprob"), int | float)
    }
    return TokenScore(str(entry.get("token", "")), alternatives)
