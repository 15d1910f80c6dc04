"""When a child that died is started again, and when no more."""

from __future__ import annotations

FIRST_WAIT = 0.1
LONGEST_WAIT = 5.0
EARLY_SECONDS = 3.0
MOST_EARLY_DEATHS = 5


class RestartPolicy:
    """Counts the early deaths of one child in a row: those before it was ready, or within `EARLY_SECONDS` of it.

    A child that lived longer starts with a clean record. The restart intensity of OTP supervisors, for one child.
    """

    def __init__(self, most_early_deaths: int = MOST_EARLY_DEATHS) -> None:
        self._most = most_early_deaths
        self._early_deaths = 0

    def died(self, lived: float | None) -> float | None:
        """Seconds to wait before the next start: none at first, then 0.1 s doubling up to 5 s; None means give up.

        `lived` is the time from ready to death in seconds, None for a child that never became ready.
        """
        if lived is not None and lived > EARLY_SECONDS:
            self._early_deaths = 0
            return 0.0
        self._early_deaths += 1
        if self._early_deaths >= self._most:
            return None
        if self._early_deaths == 1:
            return 0.0
        return float(min(LONGEST_WAIT, FIRST_WAIT * 2 ** (self._early_deaths - 2)))
