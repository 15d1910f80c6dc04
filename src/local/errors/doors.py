"""What can go wrong between a command and the system that it talks to."""

from __future__ import annotations

from local.errors.base import LocalError


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


class BadQuestion(LocalError):
    """Something is wrong with what was to be asked."""

    kind = "bad_question"
