"""What keeps a model from an answer."""

from __future__ import annotations

from collections.abc import Mapping

from local.errors.base import BadRequest, LocalError


class ModelError(LocalError):
    """The model server failed or cannot do what was asked; the text says what to do about it."""

    kind = "model_error"

    def __init__(self, message: str, *, kind: str = "model_error", status: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.status = kind, status


class NoSuchModel(ModelError, BadRequest):
    """A model that is not here, or a name that no model can have."""


class ModelBusy(ModelError):
    """The model server wants to be asked later: after `retry_after` seconds, None if it does not say."""

    def __init__(self, message: str, *, kind: str, status: int | None, retry_after: float | None) -> None:
        super().__init__(message, kind=kind, status=status)
        self.retry_after = retry_after


class ContextTooLarge(LocalError):
    """What must be in a prompt does not fit into the model's context. `parts` are tokens by part, estimated."""

    kind = "context_overflow"

    def __init__(self, limit: int, parts: Mapping[str, int]) -> None:
        numbers = ", ".join(f"{part} {tokens:,}" for part, tokens in parts.items())
        found = f"too large for the context of {limit:,} tokens: {numbers}"
        super().__init__(f"{found}; shorten the question, offer fewer tools or raise num_ctx")
        self.limit, self.parts = limit, dict(parts)
