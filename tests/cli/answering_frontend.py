"""The frontend of a system that a command finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


class AnsweringFrontend:
    """Answers each request by its method and path, and keeps what it was sent."""

    def __init__(self, answer: Callable[[str, str], Json]) -> None:
        self._answer = answer
        self.asked: list[tuple[Any, ...]] = []

    def request(self, method: str, path: str, *body: Json) -> Json:
        """As `SystemClient.request`."""
        self.asked.append((method, path, *body))
        return self._answer(method, path)
