"""OpenAI's embeddings: what a request asks, and vectors in its words."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from local.apps.api.errors import RequestRefused
from local.apps.api.openai_chat import refuse_unknown

Json = dict[str, Any]
MAX_TEXTS, MAX_CHARACTERS = 256, 200_000
BATCH = 16


class EmbeddingRequest(BaseModel):
    """The body of POST /v1/embeddings. The vectors are those of the memory's own model, whatever the `model` is called;
    there is no choice of their length."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(min_length=1)
    input: str | list[str]
    encoding_format: Literal["float", "base64"] | None = None
    user: str | None = None

    def texts(self) -> list[str]:
        """What is to be embedded. Raises `RequestRefused` for nothing, too much, and what is not honoured."""
        refuse_unknown(self)
        texts = [self.input] if isinstance(self.input, str) else self.input
        if not texts or not all(text.strip() for text in texts):
            raise RequestRefused("invalid", "input: give a text that says something, or several", "input")
        if len(texts) > MAX_TEXTS or sum(map(len, texts)) > MAX_CHARACTERS:
            fault = f"input: at most {MAX_TEXTS} texts of {MAX_CHARACTERS:,} characters together"
            raise RequestRefused("invalid", fault, "input")
        return texts


def embeddings(request: EmbeddingRequest, model: str, vectors: Sequence[Sequence[float]]) -> Json:
    """The vectors as one object; `model` is the one that has made them. Its tokens are not counted."""
    as_text = request.encoding_format == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _base64(vector) if as_text else list(vector)}
        for index, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": data, "model": model, "usage": {"prompt_tokens": 0, "total_tokens": 0}}


def _base64(vector: Sequence[float]) -> str:
    numbers = array("f", vector)
    if numbers.itemsize != 4:
        raise TypeError("a float of this machine has no four bytes")
    return base64.b64encode(numbers.tobytes()).decode()
