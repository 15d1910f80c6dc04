"""A `ChatModel` that is a chain of models: when one cannot answer, the next one does."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from local.errors import ModelError
from local.models.chat import AwayDelta, ChatModel, Degraded, Delta, Json, ModelInfo, ProgressDelta, RestartDelta
from local.models.fallback import Attempt, Attempts, FallbackPolicy, Pauses
from local.models.sight import Names, cannot_see, is_blind

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


class ChainCall:
    """Waits as `Attempts` decides, and remembers what went wrong. `notes` are to be told with the answer."""

    def __init__(
        self,
        targets: Sequence[Target],
        policy: FallbackPolicy,
        pauses: Pauses,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.notes: list[str] = []
        self._is_away, self._untold = False, list[Degraded]()
        self._most_seconds = policy.max_wait_seconds
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

    def take_untold(self) -> Sequence[Degraded]:
        """What is to be told before `next` waits, once."""
        untold, self._untold = self._untold, []
        return untold

    def failed(self, error: ModelError) -> None:
        """The target that was asked has failed; raises the outcome if none is to be asked any more."""
        self._follow(error, self._attempts.after(error, self._clock()))

    def cut_off(self, error: ModelError) -> None:
        """As `failed`, in the middle of an answer: what was said of it does not count any more."""
        name = self._next.target
        following = self._attempts.after_a_beginning(error, self._clock())
        if following is not None:
            note = f"{name} stopped in the middle of an answer, which was begun again: {error}"
            self._untold.append(RestartDelta(note))
            log.warning("%s", note)
        self._follow(error, following)

    def _follow(self, error: ModelError, following: Attempt | None) -> None:
        name = self._next.target
        self._failures[name] = error
        if following is None:
            raise outcome(self._failures) from error
        if following.is_return:
            self._tell_away(error)
        elif following.target == name:
            log.info("%s is asked again in %.1f s: %s", name, following.wait, error)
        else:
            log.warning("%s is asked in place of %s: %s", following.target, name, error)
            self.notes.append(f"{name} could not answer ({error}), so {following.target} was asked")
        self._next = following

    def _tell_away(self, error: ModelError) -> None:
        if not self._is_away:
            note = f"the model is away and is waited for, at most {self._most_seconds:g} s: {error}"
            self._untold.append(AwayDelta(note))
            log.warning("%s", note)
        self._is_away = True


def outcome(failures: Mapping[str, ModelError]) -> ModelError:
    """The last failure, or all of them if there are several models."""
    *_, last = failures.values()
    return last if len(failures) == 1 else NoModelLeft(failures, kind=last.kind)


class Router:
    """Asks the targets that `find` gives for a name, the best first. See `Attempts` for when it goes on to the next.

    An answer that has begun is begun again, with a `RestartDelta`, where its server has died; any other failure of it
    is the caller's. That another model answers is told as `Degraded`. When nobody can, and there was more than one to
    ask, it is `NoModelLeft`.
    """

    def __init__(
        self,
        find: Callable[[str], Sequence[Target]],
        close_clients: Callable[[], Awaitable[None]],
        *,
        policy: FallbackPolicy = FallbackPolicy(),  # noqa: B008 frozen
        seeing: Names | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._find, self._close_clients = cache(find), close_clients
        self._policy, self.seeing = policy, seeing
        self._clock, self._sleep = clock, sleep
        self._pauses = Pauses()
        self._infos: dict[str, ModelInfo] = {}
        self._followed: dict[str, Sequence[Target]] = {}  # chains of a later choice, by the name of their first target

    def follow(self, chain: Sequence[str]) -> None:
        """Ask these models one after the other, from now on, where the first of them is asked for."""
        targets = [self._find(name)[0] for name in chain]
        self._followed[targets[0].name] = targets

    def _targets(self, model: str) -> Sequence[Target]:
        found = self._find(model)
        return self._followed.get(found[0].name, found)

    async def chat(
        self,
        model: str,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json] = (),
        think: bool = False,
        options: Mapping[str, Any] | None = None,
        format: Json | None = None,
        logprobs: bool = False,
    ) -> AsyncGenerator[Delta, None]:
        """See `ChatModel.chat`."""
        call = self._call(self._targets(model), self._policy)
        while True:
            for untold in call.take_untold():
                yield untold
            target = await call.next()
            begun = False
            try:
                await self._check_sight(target, messages)
                for note in call.notes:
                    yield Degraded(note)
                stream = target.client.chat(
                    target.model, messages, tools=tools, think=think, options=options, format=format,
                    logprobs=logprobs,
                )  # fmt: skip
                async with aclosing(stream):
                    async for delta in stream:
                        begun = begun or not isinstance(delta, Degraded | ProgressDelta)
                        yield delta
                return
            except ModelError as error:
                self._infos.pop(target.name, None)
                (call.cut_off if begun else call.failed)(error)

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """See `ChatModel.embed`. Only the same model on another server takes over: vectors of two models are not
        comparable. One that is away is not waited for: who searches has words, too."""
        targets = self._find(model)
        policy = replace(self._policy, waits_for_return=False)
        call = self._call([target for target in targets if target.model == targets[0].model], policy)
        while True:
            target = await call.next()
            try:
                return await target.client.embed(target.model, texts)
            except ModelError as error:
                call.failed(error)

    async def show(self, model: str) -> ModelInfo:
        """What the server knows of the first model that is there; asked once, and again after a failure."""
        failures: dict[str, ModelError] = {}
        for target in self._targets(model):
            try:
                return await self._info(target)
            except ModelError as error:
                failures[target.name] = error
        raise outcome(failures)

    async def load(self, model: str, options: Mapping[str, Any]) -> None:
        """See `ChatModel.load`. It is the first model that can be loaded."""
        failures: dict[str, ModelError] = {}
        for target in self._targets(model):
            try:
                return await target.client.load(target.model, options)
            except ModelError as error:
                failures[target.name] = error
        raise outcome(failures)

    async def close(self) -> None:
        """Close every connection."""
        await self._close_clients()

    def _call(self, targets: Sequence[Target], policy: FallbackPolicy) -> ChainCall:
        return ChainCall(targets, policy, self._pauses, self._clock, self._sleep)

    async def _info(self, target: Target) -> ModelInfo:
        if target.name not in self._infos:
            self._infos[target.name] = await target.client.show(target.model)
        return self._infos[target.name]

    async def _check_sight(self, target: Target, messages: Sequence[Json]) -> None:
        """Some servers drop pictures without a word when the model cannot see."""
        if any(message.get("images") for message in messages) and is_blind(await self._info(target)):
            raise await cannot_see(target.name)
