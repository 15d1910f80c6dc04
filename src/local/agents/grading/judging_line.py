"""The answers that wait for the judge. Of a long line the newest are judged: a backlog is worth less than what a user
has just read, and the judge has to catch up at some time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

MOST = 24  # answers that wait; well below those that the journal gives at once, where the oldest comes first
REASON = f"not judged: more than {MOST} answers waited for the judge, and it judges the newest"


class JudgingLine:
    """`is_asked(task)` tells whether the judge reads the answer of a task at this moment: that one is not left out."""

    def __init__(self, is_asked: Callable[[asyncio.Task[Any]], bool]) -> None:
        self._is_asked = is_asked
        self._tasks: dict[asyncio.Task[None], float] = {}  # with the time of each answer
        self._left_out: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks) - len(self._left_out)

    async def judge(self, sent_at: float, work: Coroutine[Any, Any, None]) -> bool:
        """Do the work, and return whether it was done: False if newer answers have taken its place."""
        task = asyncio.create_task(work)
        self._tasks[task] = sent_at
        self._leave_out()
        try:
            await task
        except asyncio.CancelledError:
            task.cancel()  # nobody waits for it any more
            waiting = asyncio.current_task()
            if task in self._left_out and not (waiting and waiting.cancelling()):
                return False
            raise
        finally:
            del self._tasks[task]
            self._left_out.discard(task)
        return True

    def _leave_out(self) -> None:
        """Make the line as short as it may be."""
        waiting = sorted(
            (task for task in self._tasks if task not in self._left_out and not self._is_asked(task)),
            key=lambda task: self._tasks[task],
        )
        for task in waiting[: max(0, len(self) - MOST)]:
            self._left_out.add(task)
            task.cancel()
