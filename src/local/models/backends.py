"""From `Routing` to the `ChatModel` that an agent uses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from local.config_models import Endpoint, Routing
from local.environment import secret
from local.errors import ConfigError, ModelError
from local.models.fallback import FallbackPolicy
from local.models.ollama import OllamaModel
from local.models.openai import OpenAIModel
from local.models.router import Router, Target


def connect(routing: Routing, *, timeout_seconds: float, limit: str = "") -> Router:
    """The models of all servers, by the names that `Routing.locate` understands; asked for the first model of a chain,
    it asks the chain. `timeout_seconds` limits each silence in an answer and every other request; `limit` names the
    setting behind it, for the message of an error. No connection is made yet. Raises `ConfigError` for a key that is
    not there.
    """
    clients, config = _Clients(routing, timeout_seconds, limit), routing.config
    chains = [[clients.target(name) for name in chain] for chain in config.roles.chains()]
    policy = FallbackPolicy(
        fallback_on_rate_limit=config.fallback_on_rate_limit,
        fallback_on_error=config.fallback_on_error,
        max_retries=config.max_retries,
        max_wait_seconds=config.max_wait_seconds,
    )

    def find(name: str) -> Sequence[Target]:
        target = clients.target(name)
        return next((chain for chain in chains if chain[0] == target), [target])

    return Router(find, clients.close, policy=policy, seeing=clients.seeing)


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
