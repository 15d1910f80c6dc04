"""What the failures of Ollama and of OpenAI-compatible servers mean, one table for each kind. No I/O."""

from __future__ import annotations

import re

from local.models.model_errors import Meaning, ServerErrors

_OLLAMA_BUSY = Meaning("overloaded", "the Ollama server at {server} is busy ({text}): try again in a moment")
_OLLAMA_REFUSED = Meaning(
    "unauthorised", "the Ollama server at {server} refused access ({text}): check its key or sign in"
)

# Texts as Ollama 0.12 to 0.40 and the llama-server inside it write them.
_OLLAMA_BY_TEXT = (
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
    (re.compile(r"server busy|too many requests|pending requests|overloaded", re.I), _OLLAMA_BUSY),
    (re.compile(r"does not support", re.I), Meaning("unsupported", "{text}: choose a model that does")),
    (
        re.compile(r"more system memory|out of memory|failed to allocate|insufficient memory", re.I),
        Meaning("out_of_memory", "{model} does not fit into memory ({text}): choose a smaller model or lower num_ctx"),
    ),
)
_OLLAMA_BY_STATUS = {
    401: _OLLAMA_REFUSED,
    403: _OLLAMA_REFUSED,
    404: Meaning("unreachable", "what answers at {server} is no Ollama server ({text}): check the address"),
    429: _OLLAMA_BUSY,
    503: _OLLAMA_BUSY,
}


def ollama_errors(server: str) -> ServerErrors:
    """The errors of the Ollama server at that address."""
    return ServerErrors(
        server,
        name="Ollama server",
        kin="an Ollama server",
        start="start it with `ollama serve`",
        by_text=_OLLAMA_BY_TEXT,
        by_status=_OLLAMA_BY_STATUS,
    )


_OPENAI_BUSY = Meaning(
    "overloaded", "the model server at {server} is busy or still loading ({text}): try again in a moment"
)
_SLOW_DOWN = Meaning("rate_limit", "the model server at {server} wants to be asked less often ({text}): wait and retry")
_OPENAI_REFUSED = Meaning("unauthorised", "the model server at {server} refused access ({text}): check the API key")
_NO_CREDIT = Meaning("quota", "the account at {server} has no credit left ({text}): add some or use another server")
_FILTERED = Meaning("filtered", "the model server at {server} filters this ({text}): rephrase or use another model")
_GAVE_UP = Meaning("timeout", "the model server at {server} gave up waiting ({text}): try again")
_MOVED = Meaning("unreachable", "the model server is not at {server} ({text}): check the address")
_TOO_LONG = Meaning(
    "context_overflow",
    "the input does not fit into the context of {model} ({text}): shorten it, or start the server with a larger one",
)


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.I | re.S)


# The sentences and codes as the servers write them; the first that matches decides.
_OPENAI_BY_TEXT = (
    (_words("insufficient_quota", "insufficient credits", "requires more credits", "insufficient balance"), _NO_CREDIT),
    (
        _words(
            "context_length_exceeded",
            "exceed_context_size",
            r"maximum (context|model) length",
            r"exceed\w* (the |its )?(available |maximum )?context (size|length|window)",
            r"context size has been exceeded",
            r"input token count .*exceeds",
            r"max_tokens must be at least 1, got -",
            r"prompt is too long",
            r"input .*is too large to process",
        ),
        _TOO_LONG,
    ),
    (
        _words("support tool use", "requires --jinja", "enable-auto-tool-choice", "image input is not supported"),
        Meaning("unsupported", "{model} cannot do this at {server} ({text}): choose a model that can"),
    ),
    (
        _words(
            r"model .*(not found|does not exist|not exist)",
            "model_not_found",
            "not a valid model",
            "no endpoints found for",
            r"models/\S+ is not found",
        ),
        Meaning("model_missing", "{server} has no model {model} ({text}): choose one that it lists"),
    ),
    (_words(r"api key not valid", r"(invalid|incorrect|missing) api key", "invalid_api_key"), _OPENAI_REFUSED),
    (_words("content_filter", "content management policy", "input was flagged", "requires moderation"), _FILTERED),
    (
        _words("out of memory", "failed to allocate", "insufficient memory"),
        Meaning("out_of_memory", "{model} does not fit into memory ({text}): use a smaller model or context"),
    ),
    (_words("rate.?limit", "resource_exhausted", "too many requests"), _SLOW_DOWN),
    (_words("loading model", "overloaded", "at capacity", "unavailable_error"), _OPENAI_BUSY),
    (_words("does not support", "is not supported", "unsupported_"), Meaning("unsupported", "{text}: choose another")),
)
_OPENAI_BY_STATUS = {
    **dict.fromkeys((301, 302, 303, 307, 308, 404, 405), _MOVED),
    **dict.fromkeys((401, 403), _OPENAI_REFUSED),
    402: _NO_CREDIT,
    **dict.fromkeys((408, 504, 524), _GAVE_UP),
    413: _TOO_LONG,
    429: _SLOW_DOWN,
    **dict.fromkeys((502, 503, 529), _OPENAI_BUSY),
}


def openai_errors(server: str, api_key: str = "") -> ServerErrors:
    """The errors of the OpenAI-compatible server at that address; none of them shows the key."""
    return ServerErrors(
        server,
        name="model server",
        kin="an OpenAI-compatible server",
        start="start it or check the address",
        by_text=_OPENAI_BY_TEXT,
        by_status=_OPENAI_BY_STATUS,
        secret=api_key,
    )
