"""POST /api/embed and /api/embeddings: vectors without a model."""

from __future__ import annotations

import hashlib
import math
import re
import time
from typing import Any

from starlette.responses import JSONResponse, Response

from local.models.stand_in.endpoint import IncomingRequest
from local.models.stand_in.library import Model
from local.models.stand_in.ollama_request import OllamaRefusal, whole_number
from local.models.stand_in.stand_in import StandIn, now
from local.models.stand_in.tokens import CHARS_PER_TOKEN, OVERFLOW, count

Json = dict[str, Any]


def embed(stand_in: StandIn, asked: IncomingRequest) -> Response:
    """One vector for each text of `input`, in order."""
    return JSONResponse(embedded(stand_in, asked.body))


def embedded(stand_in: StandIn, body: Json) -> Json:
    """The body of /api/embed's answer; `OllamaRefusal` for a bad input, an unfit model or a text that is too long."""
    started = time.perf_counter_ns()
    texts = _texts(body.get("input"))
    model = _embedder(stand_in, body)
    options = body.get("options")
    wanted = whole_number(options if isinstance(options, dict) else {}, "num_ctx", model.context_length)
    limit = max(min(wanted, model.context_length), 1)
    if body.get("truncate") is False and any(count(text) > limit for text in texts):
        raise OllamaRefusal(400, OVERFLOW)
    texts = [text[: limit * CHARS_PER_TOKEN] for text in texts]
    dimensions = whole_number(body, "dimensions", 0) or DIMENSIONS
    return {
        "model": body["model"],
        "embeddings": [vector_of(text, dimensions) for text in texts],
        "total_duration": time.perf_counter_ns() - started,
        "load_duration": 0,
        "prompt_eval_count": sum(map(count, texts)),
    }


def embeddings(stand_in: StandIn, asked: IncomingRequest) -> Response:
    """The older form of the route: one `prompt`, one vector."""
    _embedder(stand_in, asked.body)
    prompt = asked.body.get("prompt") or ""
    return JSONResponse({"embedding": vector_of(str(prompt)) if prompt else []})


def _texts(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) and given else given or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise OllamaRefusal(400, "invalid input type")
    return texts


def _embedder(stand_in: StandIn, body: Json) -> Model:
    name = body.get("model")
    if not isinstance(name, str) or not name:
        raise OllamaRefusal(400, "model is required")
    model = stand_in.library.find(name)
    if "embedding" not in model.capabilities:
        raise OllamaRefusal(501, "this model does not support embeddings")
    stand_in.library.use(model, now())
    return model


DIMENSIONS = 768


def vector_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A deterministic vector of length one (all zeros for a text without words); shape (`dimensions`,).

    Feature hashing (Weinberger et al. 2009): each word adds or subtracts one at a position that its hash names.
    """
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        digest = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest())
        vector[digest % DIMENSIONS] += 1.0 if digest >> 63 else -1.0
    vector = vector[:dimensions]
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else vector
