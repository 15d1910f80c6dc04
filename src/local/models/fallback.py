"""Decides after each failure of a model whether, when and which one to ask next. No I/O and no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from local.errors import ModelBusy, ModelError
from local.models.model_errors import ErrorClass, classify

FIRST_WAIT = 0.5
LONGEST_WAIT = 5.0
# For so long a model that failed is asked after all others of its chain: where the failure stays, and where it passes.
SHUNNED_SECONDS = 60.0
SHUNNED_SHORTLY_SECONDS = 15.0
# Failures that lie in what was asked say nothing about the next call.
_OF_THE_REQUEST = frozenset({"bad_request", "bad_call", "filtered", "unsupported"})
# Who failed so is away for a while, as a server is that is restarted or loads its model.
_AWAY = frozenset({"unreachable", "stream_cut", "overloaded"})
# Who failed so in the middle of an answer has died, and may say all of it when it is back.
_DIED = _AWAY | {"server_error"}
# What another try at the same model cannot mend, or would mend at the price of waiting as long again.
_NO_RETRY = (ErrorClass.PERMANENT, ErrorClass.TIMEOUT)


@dataclass(frozen=True, slots=True)
class FallbackPolicy:
    """`max_retries` counts for each model, `max_wait_seconds` for one call with all its attempts. With
    `waits_for_return` whoever is away is asked again until then."""

    fallback_on_rate_limit: bool = True
    fallback_on_error: bool = True
    max_retries: int = 2
    max_wait_seconds: float = 30.0
    waits_for_return: bool = True


@dataclass(frozen=True, slots=True)
class Attempt:
    """Ask the model of this name, in so many seconds; it `is_return` if nobody has answered, and who is away may be
    back."""

    target: str
    wait: float = 0.0
    is_return: bool = False


class Pauses:
    """What models' failures mean for the calls after: whom to ask last, and whom not before when.

    Times are seconds of one monotonic clock that the caller reads.
    """

    def __init__(self) -> None:
        self._not_before: dict[str, float] = {}
        self._shunned_until: dict[str, float] = {}

    def wait(self, target: str, now: float) -> float:
        """Seconds until the model may be asked."""
        return max(0.0, self._not_before.get(target, now) - now)

    def is_shunned(self, target: str, now: float) -> bool:
        """Whether any other model is rather asked."""
        return max(self._shunned_until.get(target, now), self._not_before.get(target, now)) > now

    def hold(self, target: str, until: float) -> None:
        """The model wants to be left alone."""
        self._not_before[target] = until

    def shun(self, target: str, until: float) -> None:
        """The model does not work."""
        self._shunned_until[target] = until


class Attempts:
    """The attempts of one call at a chain of models, which share `pauses` with all other calls.

    A rate limit leads to the next model, a failure that passes to another try and then to the next, one that stays to
    the next at once; what does not fit the context is for the caller, who can shorten it. When the next may not be
    asked, or nobody is left, or it would take longer than allowed, that is the end; but those that are away are asked
    again for as long as is allowed.
    """

    def __init__(self, targets: Sequence[str], policy: FallbackPolicy, pauses: Pauses, now: float) -> None:
        self._policy, self._pauses = policy, pauses
        self._left = sorted(targets, key=lambda target: pauses.is_shunned(target, now))
        self._retries = self._returns = 0
        self._waited = 0.0
        self._away: list[str] = []
        self._failing_since: float | None = None

    def first(self, now: float) -> Attempt:
        """Whom to ask first. One that must still be waited for, for longer than allowed, may say so itself."""
        target = self._left[0]
        return self._attempt(target, min(self._pauses.wait(target, now), self._policy.max_wait_seconds))

    def after(self, error: ModelError, now: float) -> Attempt | None:
        """What comes after a failure; None: nothing, the failure is the outcome."""
        target, kind = self._left[0], classify(error)
        self._note(target, error, now)
        if kind is ErrorClass.CONTEXT_OVERFLOW:
            return None
        delay = self._delay(error)
        limited = kind is ErrorClass.RATE_LIMIT
        if limited or isinstance(error, ModelBusy):
            self._pauses.hold(target, now + delay)
        may_move_on = self._policy.fallback_on_rate_limit if limited else self._policy.fallback_on_error
        following = self._following(now) if may_move_on else None
        may_retry = self._retries < self._policy.max_retries and kind not in _NO_RETRY and self._fits(delay)
        if may_retry and not (limited and following):
            self._retries += 1
            return self._attempt(target, delay)
        if not limited and error.kind not in _OF_THE_REQUEST:
            seconds = SHUNNED_SECONDS if kind is ErrorClass.PERMANENT else SHUNNED_SHORTLY_SECONDS
            self._pauses.shun(target, now + seconds)
        if following is None:
            return self._return(now)
        self._left = self._left[self._left.index(following) :]
        self._retries = 0
        return self._attempt(following, self._pauses.wait(following, now))

    def after_a_beginning(self, error: ModelError, now: float) -> Attempt | None:
        """What comes after a failure in the middle of an answer: another try at all of it where the server has died,
        for as long as is allowed, counted from the first failure; else nothing."""
        failing_since = now if self._failing_since is None else self._failing_since
        is_late = now - failing_since > self._policy.max_wait_seconds
        if error.kind not in _DIED or is_late or not self._policy.max_retries:
            return None
        return self.after(error, now)

    def _note(self, target: str, error: ModelError, now: float) -> None:
        self._failing_since = now if self._failing_since is None else self._failing_since
        others = [other for other in self._away if other != target]
        self._away = [*others, target] if error.kind in _AWAY else others

    def _return(self, now: float) -> Attempt | None:
        """The models that are away in turn, after pauses that grow."""
        policy = self._policy
        if not (self._away and policy.waits_for_return and policy.max_retries):
            return None
        target = self._away[0]
        pause = min(FIRST_WAIT * 2 ** (policy.max_retries + self._returns), LONGEST_WAIT)
        wait = max(pause, self._pauses.wait(target, now))
        elapsed = max(self._waited, now - (self._failing_since or now))
        if elapsed + wait > policy.max_wait_seconds:
            return None
        self._left, self._retries = [target], policy.max_retries
        self._returns += 1
        self._waited += wait
        return Attempt(target, wait, is_return=True)

    def _delay(self, error: ModelError) -> float:
        """What the server wishes, else 0.5 s and double from one try to the next."""
        wish = error.retry_after if isinstance(error, ModelBusy) else None
        return float(FIRST_WAIT * 2**self._retries) if wish is None else wish

    def _following(self, now: float) -> str | None:
        return next((target for target in self._left[1:] if self._fits(self._pauses.wait(target, now))), None)

    def _fits(self, wait: float) -> bool:
        return self._waited + wait <= self._policy.max_wait_seconds

    def _attempt(self, target: str, wait: float) -> Attempt:
        self._waited += wait
        return Attempt(target, wait)
