"""POST /api/embed and /api/embeddings."""

from __future__ import annotations

import time
from typing import Any

from starlette.responses import JSONResponse, Response

from local.models.stand_in.chat_request import whole_number
from local.models.stand_in.endpoint import Asked
from local.models.stand_in.library import Model
from local.models.stand_in.refusal import Refusal
from local.models.stand_in.stand_in import StandIn, now
from local.models.stand_in.tokens import CHARS_PER_TOKEN, OVERFLOW, count
from local.models.stand_in.vectors import DIMENSIONS
from local.models.stand_in.vectors import embed as vector

Json = dict[str, Any]


def embed(stand_in: StandIn, asked: Asked) -> Response:
    """One vector for each text of `input`, in order."""
    return JSONResponse(embedded(stand_in, asked.body))


def embedded(stand_in: StandIn, body: Json) -> Json:
    """The body of /api/embed's answer; `Refusal` for a bad input, an unfit model or a text that is too long."""
    started = time.perf_counter_ns()
    texts = _texts(body.get("input"))
    model = _embedder(stand_in, body)
    options = body.get("options")
    wanted = whole_number(options if isinstance(options, dict) else {}, "num_ctx", model.context_length)
    limit = max(min(wanted, model.context_length), 1)
    if body.get("truncate") is False and any(count(text) > limit for text in texts):
        raise Refusal(400, OVERFLOW)
    texts = [text[: limit * CHARS_PER_TOKEN] for text in texts]
    dimensions = whole_number(body, "dimensions", 0) or DIMENSIONS
    return {
        "model": body["model"],
        "embeddings": [vector(text, dimensions) for text in texts],
        "total_duration": time.perf_counter_ns() - started,
        "load_duration": 0,
        "prompt_eval_count": sum(map(count, texts)),
    }


def embeddings(stand_in: StandIn, asked: Asked) -> Response:
    """The older form: one `prompt`, one vector."""
    _embedder(stand_in, asked.body)
    prompt = asked.body.get("prompt") or ""
    return JSONResponse({"embedding": vector(str(prompt)) if prompt else []})


def _texts(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) and given else given or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Refusal(400, "invalid input type")
    return texts


def _embedder(stand_in: StandIn, body: Json) -> Model:
    name = body.get("model")
    if not isinstance(name, str) or not name:
        raise Refusal(400, "model is required")
    model = stand_in.library.find(name)
    if "embedding" not in model.capabilities:
        raise Refusal(501, "this model does not support embeddings")
    stand_in.library.use(model, now())
    return model
