"""From `Routing` to the `ChatModel` that an agent uses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from local.config_models import Endpoint, Routing
from local.environment import secret
from local.models.chat import ChatModel
from local.models.fallback import FallbackPolicy
from local.models.ollama import OllamaModel
from local.models.openai import OpenAIModel
from local.models.router import Router, Target


def connect(routing: Routing, *, timeout_seconds: float) -> Router:
    """The models of all servers, by the names that `Routing.locate` understands; asked for the first model of a chain,
    it asks the chain. `timeout_seconds` limits the wait for an answer's beginning, each later silence and every other
    request. No connection is made yet. Raises `ConfigError` for a key that is not there.
    """
    clients, config = _Clients(routing, timeout_seconds), routing.config
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

    return Router(find, clients.close, policy=policy, max_tools=config.max_tools)


class _Clients:
    """One client for each server, made when it is first needed."""

    def __init__(self, routing: Routing, timeout_seconds: float) -> None:
        self._routing, self._timeout_seconds = routing, timeout_seconds
        self._made: dict[str, ChatModel] = {}

    def target(self, name: str) -> Target:
        provider, model = self._routing.locate(name)
        if provider not in self._made:
            self._made[provider] = self._client(self._routing.endpoints[provider])
        return Target(f"{provider}/{model}", model, self._made[provider])

    async def close(self) -> None:
        for client in self._made.values():
            await client.close()

    def _client(self, endpoint: Endpoint) -> ChatModel:
        keep_alive = self._routing.config.keep_alive
        return open_client(endpoint, timeout_seconds=self._timeout_seconds, keep_alive=keep_alive)


def open_client(
    endpoint: Endpoint, *, timeout_seconds: float, keep_alive: str | int | None = None
) -> OllamaModel | OpenAIModel:
    """A client of one server, which has made no connection yet. Raises `ConfigError` for a key that is not there."""
    key = endpoint.key or (secret(endpoint.api_key_variable) if endpoint.api_key_variable else "")
    kept = partial(OllamaModel, keep_alive=keep_alive)
    make = kept if endpoint.kind == "ollama" else partial(OpenAIModel, api_key=key)
    seconds = timeout_seconds
    return make(endpoint.url, first_token_seconds=seconds, between_tokens_seconds=seconds, timeout_seconds=seconds)
