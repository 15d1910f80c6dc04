"""Which models can look at pictures, and the error for one that cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from local.errors import ModelError
from local.models.chat import ModelInfo

SEEING = "gemma4:12b"
_LOOK_SECONDS = 5.0
_MOST_NAMED = 5

Names = Callable[[], Awaitable[Sequence[str]]]


def is_blind(info: ModelInfo) -> bool:
    """Whether a model cannot look at pictures. One whose server does not say what it can do may be able to."""
    return bool(info.capabilities) and "vision" not in info.capabilities


async def cannot_see(name: str, others: Names | None = None) -> ModelError:
    """The error for pictures that a model cannot look at. It names those of the `others` that can; where none can, or
    the servers do not say in time, one to pull."""
    there: Sequence[str] = ()
    if others is not None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                there = await others()
    named = ", ".join(there[:_MOST_NAMED])
    advice = f"{named} can: name one" if named else f"pull one that can (`local2 model pull {SEEING}`) and name it"
    return ModelError(
        f"{name} cannot look at pictures; {advice} for the role vision in models.yaml", kind="unsupported"
    )
