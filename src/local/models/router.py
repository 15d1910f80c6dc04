"""A `ChatModel` that is a chain of models: when one cannot answer, the next one does."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from local.core.environment import secret
from local.core.errors import ConfigError, ModelBusy, ModelError
from local.core.routing import Endpoint, ModelGroup, Routing
from local.models.chat import (
    AwayDelta,
    ChatModel,
    Degraded,
    Delta,
    Done,
    ErrorClass,
    Json,
    ModelInfo,
    ProgressDelta,
    RestartDelta,
    classify,
)
from local.models.groups import ServerChoice
from local.models.ollama import OllamaModel
from local.models.openai import OpenAIModel
from local.models.settings import Names, cannot_see, is_blind

# Decides after each failure of a model whether, when and which one to ask next. No I/O and no clock.

FIRST_WAIT = 0.5
LONGEST_WAIT = 5.0
# For so long a model that failed is asked after all others of its chain: where the failure stays, and where it passes.
SHUNNED_SECONDS = 60.0
SHUNNED_SHORTLY_SECONDS = 15.0
# Failures due to the request itself have no effect on later calls.
_OF_THE_REQUEST = frozenset({"bad_request", "bad_call", "filtered", "unsupported"})
# Who failed so is away for a while, as a server is that is restarted or loads its model.
_AWAY = frozenset({"unreachable", "stream_cut", "overloaded"})
# Who failed so in the middle of an answer has died, and may say all of it when it is back.
_DIED = _AWAY | {"server_error"}
# What another try at the same model cannot mend, or would mend at the price of waiting as long again.
_NO_RETRY = (ErrorClass.PERMANENT, ErrorClass.TIMEOUT)


@dataclass(frozen=True, slots=True)
class FallbackPolicy:
    """The settings of a chain: `max_retries` counts for each model, `max_wait_seconds` for one call with all its
    attempts. With `waits_for_return` models that are away are asked again until then.
    """

    fallback_on_rate_limit: bool = True
    fallback_on_error: bool = True
    max_retries: int = 2
    max_wait_seconds: float = 30.0
    waits_for_return: bool = True


@dataclass(frozen=True, slots=True)
class Attempt:
    """The next attempt: ask the model of this name, in `wait` seconds. It `is_return` if all have failed and one that
    was away may be back."""

    target: str
    wait: float = 0.0
    is_return: bool = False


class Pauses:
    """The effect of models' failures on later calls: which to ask last, and which not before what time.

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

    A rate limit leads to the next model, a temporary failure to a retry and then to the next, a permanent one to the
    next at once; a prompt that exceeds the context is left to the caller, who can shorten it. The call fails when no
    model is left, the next may not be asked, or it would take longer than allowed; but models that are away are asked
    again for as long as is allowed.
    """

    def __init__(
        self, targets: Sequence[str], policy: FallbackPolicy, pauses: Pauses, now: float, peers: Sequence[str] = ()
    ) -> None:
        """`peers` are those targets that are one model on several servers: if one is away, another is asked at once."""
        self._policy, self._pauses, self._peers = policy, pauses, peers
        self._left = sorted(targets, key=lambda target: pauses.is_shunned(target, now))
        self._retries = self._returns = 0
        self._waited = 0.0
        self._away: list[str] = []
        self._failing_since: float | None = None

    def first(self, now: float) -> Attempt:
        """Return the first model to ask. One that must be waited for longer than allowed may report that itself."""
        target = self._left[0]
        return self._attempt(target, min(self._pauses.wait(target, now), self._policy.max_wait_seconds))

    def after(self, error: ModelError, now: float) -> Attempt | None:
        """Return the next attempt after a failure; None: the failure is the result."""
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
        moves_at_once = limited or (following in self._peers and error.kind in _AWAY)
        if may_retry and not (following and moves_at_once):
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
        """Return the next attempt after a failure in the middle of an answer: a retry of the whole answer if the server
        has died, for as long as is allowed, counted from the first failure; else None.
        """
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
        """Return the server's requested delay, else 0.5 s, doubled with each retry."""
        wish = error.retry_after if isinstance(error, ModelBusy) else None
        return float(FIRST_WAIT * 2**self._retries) if wish is None else wish

    def _following(self, now: float) -> str | None:
        return next((target for target in self._left[1:] if self._fits(self._pauses.wait(target, now))), None)

    def _fits(self, wait: float) -> bool:
        return self._waited + wait <= self._policy.max_wait_seconds

    def _attempt(self, target: str, wait: float) -> Attempt:
        self._waited += wait
        return Attempt(target, wait)


log = logging.getLogger(__name__)


class NoModelLeft(ModelError):
    """Every model of a chain failed. `failures` are the reasons by the models' names."""

    def __init__(self, failures: Mapping[str, ModelError], *, kind: str) -> None:
        reasons = "; ".join(f"{name}: {error}" for name, error in failures.items())
        super().__init__(f"none of the models could answer: {reasons}", kind=kind)
        self.failures = failures


@dataclass(frozen=True, slots=True)
class Target:
    """One model on one server. `name` is its name for people, `provider/model`."""

    name: str
    model: str
    client: ChatModel

    @property
    def provider(self) -> str:
        """The server's name in the settings."""
        return self.name.partition("/")[0]


class ChainCall:
    """One call through a chain: it waits as `Attempts` decides, and remembers the failures. `notes` are added to the
    answer.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        policy: FallbackPolicy,
        pauses: Pauses,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        peers: Sequence[str] = (),
    ) -> None:
        self.notes: list[str] = []
        self._peers = peers
        self._is_away, self._unreported = False, list[Degraded]()
        self._most_seconds = policy.max_wait_seconds
        self._targets = {target.name: target for target in targets}
        self._clock, self._sleep = clock, sleep
        self._attempts = Attempts(list(self._targets), policy, pauses, clock(), peers)
        self._next = self._attempts.first(clock())
        self._failures: dict[str, ModelError] = {}

    async def next(self) -> Target:
        """The target to ask now."""
        if self._next.wait:
            await self._sleep(self._next.wait)
        return self._targets[self._next.target]

    def take_unreported(self) -> Sequence[Degraded]:
        """Return, once, the notes to publish before `next` waits."""
        unreported, self._unreported = self._unreported, []
        return unreported

    def failed(self, error: ModelError) -> None:
        """The target that was asked has failed; raises the outcome if none is to be asked any more."""
        self._follow(error, self._attempts.after(error, self._clock()))

    def cut_off(self, error: ModelError) -> None:
        """As `failed`, in the middle of an answer: its earlier output is discarded."""
        name = self._next.target
        following = self._attempts.after_a_beginning(error, self._clock())
        if following is not None:
            note = f"{name} stopped in the middle of an answer, which was begun again: {error}"
            self._unreported.append(RestartDelta(note))
            log.warning("%s", note)
        self._follow(error, following)

    def _follow(self, error: ModelError, following: Attempt | None) -> None:
        name = self._next.target
        self._failures[name] = error
        if following is None:
            raise outcome(self._failures) from error
        if following.is_return:
            self._report_away(error)
        elif following.target == name:
            log.info("%s is asked again in %.1f s: %s", name, following.wait, error)
        else:
            log.warning("%s is asked in place of %s: %s", following.target, name, error)
            if following.target not in self._peers:
                self.notes.append(f"{name} could not answer ({error}), so {following.target} was asked")
        self._next = following

    def _report_away(self, error: ModelError) -> None:
        if not self._is_away:
            note = f"the model is away and is waited for, at most {self._most_seconds:g} s: {error}"
            self._unreported.append(AwayDelta(note))
            log.warning("%s", note)
        self._is_away = True


def outcome(failures: Mapping[str, ModelError]) -> ModelError:
    """The last failure, or all of them if there are several models."""
    *_, last = failures.values()
    return last if len(failures) == 1 else NoModelLeft(failures, kind=last.kind)


class Router:
    """Asks the targets that `find` returns for a name, the best first. `Attempts` decides when it continues with the
    next.

    An answer that has begun is repeated, with a `RestartDelta`, if its server has died; any other failure of it is
    raised. An answer of another model is marked by a `Degraded`. If no model can answer, of several, it raises
    `NoModelLeft`.
    """

    def __init__(
        self,
        find: Callable[[str], Sequence[Target]],
        close_clients: Callable[[], Awaitable[None]],
        *,
        policy: FallbackPolicy = FallbackPolicy(),
        seeing: Names | None = None,
        groups: Iterable[ModelGroup] = (),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._find, self._close_clients = cache(find), close_clients
        self._policy, self.seeing = policy, seeing
        self._clock, self._sleep = clock, sleep
        self._pauses = Pauses()
        self._infos: dict[str, ModelInfo] = {}
        self.servers = ServerChoice(groups, lambda name: self._pauses.is_shunned(name, clock()))
        self._followed: dict[str, Sequence[Target]] = {}  # chains of a later choice, by the name of their first target

    def follow(self, chain: Sequence[str]) -> None:
        """Ask these models one after the other, from now on, where the first of them is asked for."""
        targets = [self._find(name)[0] for name in chain]
        self._followed[targets[0].name] = targets

    def _targets(self, model: str) -> Sequence[Target]:
        """The chain of a model; of one on several servers these first, and then the rest of their chains."""
        first, *others = self._chain(model)
        peers = [self._chain(name) for name in self.servers.peers(first.name)[1:]]
        behind = (target for chain in ([first, *others], *peers) for target in chain[1:])
        return list(dict.fromkeys((first, *(chain[0] for chain in peers), *behind)))

    def _chain(self, model: str) -> Sequence[Target]:
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
        in_words: bool = False,
    ) -> AsyncGenerator[Delta, None]:
        """See `ChatModel.chat`."""
        call = self._call(self._targets(model), self._policy)
        while True:
            for unreported in call.take_unreported():
                yield unreported
            target = await call.next()
            begun, asked_at = False, self._clock()
            try:
                await self._check_sight(target, messages)
                for note in call.notes:
                    yield Degraded(note)
                stream = target.client.chat(
                    target.model, messages, tools=tools, think=think, options=options, format=format,
                    logprobs=logprobs, in_words=in_words,
                )  # fmt: skip
                async with aclosing(stream):
                    async for delta in stream:
                        begun = begun or not isinstance(delta, Degraded | ProgressDelta)
                        if isinstance(delta, Done) and self.servers.providers:
                            delta = replace(delta, usage=replace(delta.usage, server=target.provider))
                            self.servers.learn(target.name, delta.usage, self._clock() - asked_at)
                        yield delta
                return
            except ModelError as error:
                self._infos.pop(target.name, None)
                if error.kind not in _OF_THE_REQUEST:
                    self.servers.failed(target.name, str(error))
                (call.cut_off if begun else call.failed)(error)

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """See `ChatModel.embed`. Only the same model on another server takes over: vectors of two models are not
        comparable. One that is away is not waited for: who searches has words, too."""
        targets = self._targets(model)
        policy = replace(self._policy, waits_for_return=False)
        call = self._call([target for target in targets if target.model == targets[0].model], policy)
        while True:
            target = await call.next()
            try:
                return await target.client.embed(target.model, texts)
            except ModelError as error:
                call.failed(error)

    async def show(self, model: str) -> ModelInfo:
        """Return the server's description of the first available model; requested once, and again after a failure."""
        failures: dict[str, ModelError] = {}
        for target in self._targets(model):
            try:
                return await self._info(target)
            except ModelError as error:
                failures[target.name] = error
        raise outcome(failures)

    async def load(self, model: str, options: Mapping[str, Any]) -> None:
        """See `ChatModel.load`. It is the first model that can be loaded; of one on several servers each."""
        failures: dict[str, ModelError] = {}
        targets = self._targets(model)
        peers, loaded = self.servers.peers(targets[0].name), False
        for target in targets:
            if loaded and target.name not in peers:
                return
            try:
                await target.client.load(target.model, options)
                loaded = True
            except ModelError as error:
                failures[target.name] = error
        if not loaded:
            raise outcome(failures)

    async def close(self) -> None:
        """Close every connection."""
        await self._close_clients()

    def _call(self, targets: Sequence[Target], policy: FallbackPolicy) -> ChainCall:
        peers = self.servers.peers(targets[0].name)
        return ChainCall(targets, policy, self._pauses, self._clock, self._sleep, peers)

    async def _info(self, target: Target) -> ModelInfo:
        if target.name not in self._infos:
            self._infos[target.name] = await target.client.show(target.model)
        return self._infos[target.name]

    async def _check_sight(self, target: Target, messages: Sequence[Json]) -> None:
        """Some servers drop pictures without a word when the model cannot see."""
        if any(message.get("images") for message in messages) and is_blind(await self._info(target)):
            raise await cannot_see(target.name)


# From `Routing` to the `ChatModel` that an agent uses.


def connect(routing: Routing, *, timeout_seconds: float, limit: str = "") -> Router:
    """The models of all servers, by the names that `Routing.locate` understands; asked for the first model of a chain,
    it asks the chain; for a model of a group, its other servers next. `timeout_seconds` limits each silence in an
    answer and every other request; `limit` names the setting behind it, for the message of an error. No connection is
    made yet. Raises `ConfigError` for a key that is not there.
    """
    clients, config = _Clients(routing, timeout_seconds, limit), routing.config
    chains = [[clients.target(name) for name in chain] for chain in config.roles.chains()]
    groups = [
        group.model_copy(update={"of": tuple(clients.target(name).name for name in group.of)})
        for group in config.groups.values()
    ]
    policy = FallbackPolicy(
        fallback_on_rate_limit=config.fallback_on_rate_limit,
        fallback_on_error=config.fallback_on_error,
        max_retries=config.max_retries,
        max_wait_seconds=config.max_wait_seconds,
    )

    def find(name: str) -> Sequence[Target]:
        target = clients.target(name)
        return next((chain for chain in chains if chain[0] == target), [target])

    return Router(find, clients.close, policy=policy, seeing=clients.seeing, groups=groups)


class _Clients:
    """One client for each server, made when it is first needed."""

    def __init__(self, routing: Routing, timeout_seconds: float, limit: str) -> None:
        self._routing, self._timeout_seconds, self._limit = routing, timeout_seconds, limit
        self._made: dict[str, OllamaModel | OpenAIModel] = {}

    def target(self, name: str) -> Target:
        provider, model = self._routing.locate(name)
        return Target(f"{provider}/{model}", model, self._at(provider))

    def _at(self, provider: str) -> OllamaModel | OpenAIModel:
        if provider not in self._made:
            self._made[provider] = self._client(self._routing.endpoints[provider])
        return self._made[provider]

    async def seeing(self) -> list[str]:
        """The models of all servers that say that they can look at pictures."""
        found = list[str]()
        for provider in self._routing.endpoints:
            try:
                found += await self._seeing_at(provider)
            except (ModelError, ConfigError):
                continue
        return found

    async def _seeing_at(self, provider: str) -> list[str]:
        client = self._at(provider)
        names = await client.models()
        return [f"{provider}/{name}" for name in names if "vision" in (await client.show(name)).capabilities]

    async def close(self) -> None:
        for client in self._made.values():
            await client.close()

    def _client(self, endpoint: Endpoint) -> OllamaModel | OpenAIModel:
        keep_alive, seconds = self._routing.config.keep_alive, self._timeout_seconds
        return open_client(endpoint, timeout_seconds=seconds, keep_alive=keep_alive, limit=self._limit)


def open_client(
    endpoint: Endpoint, *, timeout_seconds: float, keep_alive: str | int | None = None, limit: str = ""
) -> OllamaModel | OpenAIModel:
    """A client of one server, which has made no connection yet. `limit` names the setting of the time limit in errors.
    Raises `ConfigError` for a key that is not there."""
    key = endpoint.key or (secret(endpoint.api_key_variable) if endpoint.api_key_variable else "")
    kept = partial(OllamaModel, keep_alive=keep_alive)
    make = kept if endpoint.kind == "ollama" else partial(OpenAIModel, api_key=key)
    seconds = timeout_seconds
    return make(
        endpoint.url,
        first_token_seconds=seconds,
        between_tokens_seconds=seconds,
        timeout_seconds=seconds,
        limit=limit,
    )
