"""Self-tests of models: each result in a small file of its own, so that a model is tested once; and the test beside
the work that it is for."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from local.core.errors import ModelError
from local.core.files import write_private

log = logging.getLogger(__name__)
FOLDER = "self_tests"  # in the data directory


class SelfTestFile:
    """The stored result of one test of one model. `key` names the inputs of the result: the model, its prompts, the
    test set.
    """

    def __init__(self, data_dir: Path, test: str, key: Sequence[str]) -> None:
        self._key = list(key)
        digest = hashlib.blake2b(json.dumps(self._key).encode(), digest_size=8).hexdigest()
        self._path = data_dir / FOLDER / f"{test}-{digest}.json"

    def read(self) -> dict[str, Any] | None:
        """Return the result, None if there is no readable one."""
        try:
            stored = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        result = stored.get("result") if isinstance(stored, dict) and stored.get("key") == self._key else None
        return result if isinstance(result, dict) else None

    def write(self, result: dict[str, Any]) -> None:
        """Store a result. A disk that does not take it is logged: the test runs again after the next start."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private(self._path, json.dumps({"key": self._key, "result": result}, ensure_ascii=False))
        except OSError as error:
            log.warning("the result of a self-test could not be stored: %s", error)


class BackgroundTest:
    """A self-test that runs beside the work that it is for, one at a time."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def begin(self, test: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run the test unless it is under way. If its model fails, that is logged, and the next `begin` repeats it."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(test), name="self-test")

    def stop(self) -> None:
        """Stop the test."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, test: Callable[[], Coroutine[Any, Any, object]]) -> None:
        try:
            await test()
        except ModelError as error:
            log.info("the self-test is postponed: %s", error)
