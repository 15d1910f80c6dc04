"""Decides after each failure of a judge's model whether it is asked again, and when it is left alone. No I/O."""

from __future__ import annotations

import logging

from local.errors import ModelBusy, ModelError
from local.models.model_errors import ErrorClass, classify

log = logging.getLogger(__name__)

WAITS = (5.0, 30.0)  # seconds before the second and the third time; the router has had its own tries each time
PAUSE_SECONDS = 300.0  # where only a person can help, such as for a model that is not there
SHORT_PAUSE_SECONDS = 60.0
# Failures that lie in what was asked: another answer may be judged all the same.
_OF_THE_REQUEST = frozenset({"bad_request", "bad_call", "filtered", "context_overflow"})


class JudgeAway(ModelError):
    """The judge's model has failed, and is not asked for a while."""


class Patience:
    """Times are seconds of one monotonic clock that the caller reads. `problem` is what is wrong now, if anything."""

    def __init__(self) -> None:
        self.problem = ""
        self._kind = ""
        self._until = float("-inf")

    def check(self, now: float) -> None:
        """Raises `JudgeAway` while the model is to be left alone."""
        if now < self._until:
            raise JudgeAway(f"the judge was not asked, as it has just failed: {self.problem}", kind=self._kind)

    def after(self, error: ModelError, failures: int, now: float) -> float | None:
        """The model has failed so many times in a row at one question: seconds to wait before it is asked again, or
        None, which is the end of it."""
        if error.kind in _OF_THE_REQUEST:
            return None
        is_permanent = classify(error) is ErrorClass.PERMANENT
        if not is_permanent and failures <= len(WAITS):
            wish = error.retry_after if isinstance(error, ModelBusy) else None
            return max(WAITS[failures - 1], wish or 0.0)
        seconds = PAUSE_SECONDS if is_permanent else SHORT_PAUSE_SECONDS
        if self.problem != str(error):  # said once, however many answers are in hand
            log.error("nothing is judged for now, the next answer in %g s: %s", seconds, error)
        self.problem, self._kind, self._until = str(error), error.kind, now + seconds
        return None

    def answered(self) -> None:
        """The model has answered: whatever was wrong is over."""
        if self.problem:
            log.info("the judge answers again")
        self.problem, self._until = "", float("-inf")
