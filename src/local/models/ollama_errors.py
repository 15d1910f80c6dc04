"""What an Ollama server's failures mean. No I/O."""

from __future__ import annotations

import re

from local.models.model_errors import Meaning, ServerErrors

_BUSY = Meaning("overloaded", "the Ollama server at {server} is busy ({text}): try again in a moment")
_REFUSED = Meaning("unauthorised", "the Ollama server at {server} refused access ({text}): check its key or sign in")

# Texts as Ollama 0.12 to 0.40 and the llama-server inside it write them.
_BY_TEXT = (
    (
        # Not "context deadline exceeded", which is Go's word for a timeout.
        re.compile(r"exceed\w* .*context|longer than .*context|exceed_context_size", re.I | re.S),
        Meaning(
            "context_overflow",
            "the input does not fit into the context of {model} ({text}): shorten it or raise num_ctx",
        ),
    ),
    (
        re.compile(r"model .*not found|try pulling", re.I | re.S),
        Meaning("model_missing", "model {model} is not pulled: ollama pull {model}"),
    ),
    (re.compile(r"server busy|too many requests|pending requests|overloaded", re.I), _BUSY),
    (re.compile(r"does not support", re.I), Meaning("unsupported", "{text}: choose a model that does")),
    (
        re.compile(r"more system memory|out of memory|failed to allocate|insufficient memory", re.I),
        Meaning("out_of_memory", "{model} does not fit into memory ({text}): choose a smaller model or lower num_ctx"),
    ),
)
_BY_STATUS = {
    401: _REFUSED,
    403: _REFUSED,
    404: Meaning("unreachable", "what answers at {server} is no Ollama server ({text}): check the address"),
    429: _BUSY,
    503: _BUSY,
}


def ollama_errors(server: str) -> ServerErrors:
    """The errors of the Ollama server at that address."""
    return ServerErrors(
        server,
        name="Ollama server",
        kin="an Ollama server",
        start="start it with `ollama serve`",
        by_text=_BY_TEXT,
        by_status=_BY_STATUS,
    )
