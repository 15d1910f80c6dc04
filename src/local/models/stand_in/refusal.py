"""A request that is answered with an error status."""

from __future__ import annotations

from local.errors import LocalError


class Refusal(LocalError):
    """Becomes HTTP `status` with Ollama's error body; the message is Ollama's own wording where it has one."""

    kind = "refused"

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def model_missing(name: str) -> Refusal:
    """What Ollama says of a model it does not have."""
    return Refusal(404, f"model '{name}' not found")
