"""When a child that has died is started again."""

from __future__ import annotations

from local.backoff import Backoff

FIRST_WAIT = 0.1
LONGEST_WAIT = 5.0
EARLY_SECONDS = 3.0
MOST_EARLY_DEATHS = 5
FIRST_RETRY, LONGEST_RETRY = 5.0, 30.0  # of what is given up


class RestartPolicy:
    """Counts the early deaths of one child in a row: those before it was ready, or within `EARLY_SECONDS` of it.

    A child that lived longer starts with a clean record. The restart intensity of OTP supervisors, for one child.
    """

    def __init__(self, most_early_deaths: int = MOST_EARLY_DEATHS) -> None:
        self._most = most_early_deaths
        self.reset()

    @property
    def has_given_up(self) -> bool:
        """Whether the last death was one too many: the child is tried again, and nobody is to wait for it."""
        return self._early_deaths >= self._most

    def reset(self) -> None:
        """Begin anew, with a clean record."""
        self._early_deaths = 0
        self._backoff = Backoff(FIRST_WAIT, LONGEST_WAIT)
        self._retries = Backoff(FIRST_RETRY, LONGEST_RETRY)

    def died(self, lived: float | None, *, is_hopeless: bool = False) -> float:
        """Seconds to wait before the next start: none at first, then 0.1 s doubling up to 5 s; once the child is given
        up 5 s doubling up to 30 s. A death that is hopeless gives it up at once: only a person can mend that, and soon
        sees whether it helped.

        `lived` is the time from ready to death in seconds, None for a child that never became ready.
        """
        if is_hopeless:
            self._early_deaths = self._most
            return self._retries.next()
        if lived is not None and lived > EARLY_SECONDS:
            self.reset()
            return 0.0
        self._early_deaths += 1
        if self.has_given_up:
            return self._retries.next()
        return 0.0 if self._early_deaths == 1 else self._backoff.next()
