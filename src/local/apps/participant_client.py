"""One participant as a door sees it: asked over the bus, and perhaps not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeVar

from local.bus.bus import Bus
from local.errors import LocalError, RequestTimeout
from local.protocol.envelope import Trace, new_id
from local.protocol.message import ErrorInfo, Message

M = TypeVar("M", bound=Message)

UNSEEN_SECONDS = 1.5  # for one that is there all the same: its first status beat may be on its way
_MISSING = ("unknown_participant", "model_missing")


class ParticipantAway(LocalError):
    """Nobody takes part who would answer."""

    kind = "unavailable"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} does not answer: it takes part if `{name}` is among the `participants` in system.yaml; if it is,"
            " it comes back, so ask again"
        )


class ParticipantRefused(LocalError):
    """What was asked for was not done; `kind` and text are those of whoever was asked."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.kind = "not_found" if error.kind in _MISSING else error.kind


class ParticipantClient:
    """Asks the participant of the name `participant`. `expects(name)` says whether one is ready, or will be.

    Every request raises `ParticipantAway`, `ParticipantRefused`, and `RequestTimeout` of one that is expected and does
    not answer within `answer_seconds`.
    """

    participant: ClassVar[str]
    answer_seconds: ClassVar[float] = 10.0

    def __init__(self, bus: Bus, expects: Callable[[str], bool]) -> None:
        self._bus, self._expects = bus, expects

    @property
    def is_expected(self) -> bool:
        """Whether the participant is ready, or will be."""
        return self._expects(self.participant)

    async def _request(self, request: Message, reply: type[M], user_id: str | None = None) -> M:
        """The answer, which has a field `error`."""
        seconds = self.answer_seconds if self.is_expected else UNSEEN_SECONDS
        try:
            result = await self._bus.request(request, reply, seconds, Trace(new_id(), user_id=user_id))
        except RequestTimeout:
            if self.is_expected:
                raise
            raise ParticipantAway(self.participant) from None
        return accepted(result)


def accepted(result: M) -> M:
    """An answer that has a field `error`. Raises `ParticipantRefused` if that says why there is none."""
    error: ErrorInfo | None = getattr(result, "error", None)
    if error is not None:
        raise ParticipantRefused(error)
    return result
