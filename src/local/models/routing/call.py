"""One call at a chain of models while it is made."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from local.errors import ModelError
from local.models.chat import ChatModel
from local.models.routing.attempts import Attempts, Pauses, Policy

log = logging.getLogger(__name__)


class NoModelLeft(ModelError):
    """Every model of a chain failed. `failures` are the reasons by the models' names."""

    def __init__(self, failures: Mapping[str, ModelError], *, kind: str) -> None:
        reasons = "; ".join(f"{name}: {error}" for name, error in failures.items())
        super().__init__(f"none of the models could answer: {reasons}", kind=kind)
        self.failures = failures


@dataclass(frozen=True, slots=True)
class Target:
    """One model on one server. `name` is how people know it, `provider/model`."""

    name: str
    model: str
    client: ChatModel


class Call:
    """Waits as `Attempts` decides, and remembers what went wrong. `notes` are to be told with the answer."""

    def __init__(
        self,
        targets: Sequence[Target],
        policy: Policy,
        pauses: Pauses,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.notes: list[str] = []
        self._targets = {target.name: target for target in targets}
        self._clock, self._sleep = clock, sleep
        self._attempts = Attempts(list(self._targets), policy, pauses, clock())
        self._next = self._attempts.first(clock())
        self._failures: dict[str, ModelError] = {}

    async def next(self) -> Target:
        """The target to ask now."""
        if self._next.wait:
            await self._sleep(self._next.wait)
        return self._targets[self._next.target]

    def failed(self, error: ModelError) -> None:
        """The target that was asked has failed; raises the outcome if none is to be asked any more."""
        name = self._next.target
        self._failures[name] = error
        following = self._attempts.after(error, self._clock())
        if following is None:
            raise outcome(self._failures) from error
        if following.target == name:
            log.info("%s is asked again in %.1f s: %s", name, following.wait, error)
        else:
            log.warning("%s is asked in place of %s: %s", following.target, name, error)
            self.notes.append(f"{name} could not answer ({error}), so {following.target} was asked")
        self._next = following


def outcome(failures: Mapping[str, ModelError]) -> ModelError:
    """The last failure, or all of them if there are several models."""
    *_, last = failures.values()
    return last if len(failures) == 1 else NoModelLeft(failures, kind=last.kind)
