"""What can go wrong with participants and their processes, and for commands that talk to a system."""

from __future__ import annotations

from collections.abc import Iterable

from local.errors.base import BadRequest, LocalError


class HandedBack(LocalError):
    """Work that was begun and is left to whoever serves next, as when a participant is asked to stop."""

    kind = "handed_back"


class IllegalTransition(LocalError):
    """An action that the table does not allow in this state; nothing was changed."""

    kind = "illegal_transition"

    def __init__(self, state: str, action: str) -> None:
        super().__init__(f"action {action} is not allowed in state {state}")
        self.state, self.action = state, action


class AlreadyRunning(LocalError):
    """A second instance on the same data."""

    kind = "already_running"


class UnknownParticipant(BadRequest):
    """A name that no participant of this system has."""

    kind = "unknown_participant"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no participant {name}; there are {', '.join(sorted(known))}")
        self.name = name


class UnknownConsumer(BadRequest):
    """A durable consumer that the journal does not know."""

    kind = "unknown_consumer"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no durable consumer {name}; there are {', '.join(sorted(known)) or 'none'}")
        self.name = name


class StartFailed(LocalError):
    """A participant that the system cannot do without did not start."""

    kind = "start_failed"

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name} could not be started: {detail}; its own log lines above say why")
        self.name, self.detail = name, detail


class StartInterrupted(LocalError):
    """Somebody has ended the system before it was ready."""

    kind = "start_interrupted"

    def __init__(self) -> None:
        super().__init__("LoCAL2 was stopped before it was ready")


class SetUpFailed(LocalError):
    """The environment cannot be made; the text says what failed and what to do about it."""

    kind = "set_up_failed"


class NoAnswer(LocalError):
    """A system did not answer, or answered with an error; the text is the system's own.

    `status` is the HTTP status and `retry_after` the seconds after which it may be asked again, None where there is
    none.
    """

    def __init__(self, kind: str, message: str, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind, self.status, self.retry_after = kind, status, retry_after


class NoApi(LocalError):
    """A system runs, but nobody can ask it over HTTP."""

    kind = "no_api"


class BadQuestion(BadRequest):
    """Something is wrong with what was to be asked."""

    kind = "bad_question"
