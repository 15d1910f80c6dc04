"""Several servers with the same model: which of them each conversation is asked at.

Problem: a server keeps the prompts that it has read, so the next turn of a conversation costs little there and much
elsewhere. But a conversation must not wait for a server that is busy or dead while another one is free.

Idea: a new conversation begins at the server that ranks first for it (a weighted rendezvous hash); later turns are
asked where it was answered last. It moves if another server would begin sooner, by more than reading the conversation
again costs. Turns in flight are counted by the arbiter; the speed of a server is learned from its answers.

Invariants: all processes rank alike, also after a restart. A server that fails moves its own conversations alone. A
server that has failed gets one call at a time until it answers.

Rejected: the server with the fewest calls, or each in turn (every turn would be read again from its beginning); the
hash alone (a busy server would keep its conversations waiting); the cost of reading for the moving conversation alone
(in a simulation of servers in use for 93 % of the time, 15 % of the turns moved instead of 3 %, for nearly the same
waits); a table of conversations on disk (after a restart, the hash finds the first server of each).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from local.core.routing import ModelGroup
from local.models.chat import Usage

MOST_CONVERSATIONS = 10_000  # whose server is remembered
SECONDS_A_CALL = 1.0  # until a server has answered
SECONDS_A_TOKEN = 0.001  # for reading a prompt, until a server has reported its time
_NEW = 0.2  # the weight of the last call in the mean of the seconds of a call
_FADES = 0.98  # of the slowest reading that is remembered, with every call: most calls find the prompt in the cache


@dataclass(slots=True)
class _Server:
    """A member of a group, and what its answers show: seconds of a call, seconds for each token of a prompt that it
    reads, and the failure since its last answer."""

    name: str
    provider: str
    slots: int
    weight: float
    call_seconds: float = 0.0
    token_seconds: float = 0.0
    failure: str = ""

    def wait(self, turns: int) -> float:
        """Return the seconds until it begins another call while it has so many turns."""
        return max(0, turns + 1 - self.slots) * (self.call_seconds or SECONDS_A_CALL) / self.slots

    def cost(self, tokens: int) -> float:
        """Return the seconds that reading a prompt of so many tokens takes from its conversation, and as many from
        those that wait meanwhile."""
        return 2 * tokens * (self.token_seconds or SECONDS_A_TOKEN)

    def rank(self, key: bytes) -> float:
        """Return its rank for a conversation: each server is first for its share of all conversations."""
        digest = hashlib.blake2b(key + self.name.encode(), digest_size=8).digest()
        return -self.weight / math.log((int.from_bytes(digest) + 1) / (2**64 + 1))


@dataclass(frozen=True, slots=True)
class _Home:
    """Where a conversation was answered last, and the tokens that the server has read of it."""

    provider: str
    tokens: int


class ServerChoice:
    """The choice among the servers of each group, for one process. Without groups every model is asked where its name
    says."""

    def __init__(
        self, groups: Iterable[ModelGroup] = (), is_shunned: Callable[[str], bool] = lambda name: False
    ) -> None:
        """`is_shunned(provider/model)` says that the server has failed and is not to be asked now."""
        self._is_shunned = is_shunned
        self._groups: dict[str, list[_Server]] = {}  # by each member
        self._homes: dict[bytes, _Home] = {}
        for group in groups:
            servers = [_server(name, group) for name in group.of]
            self._groups |= dict.fromkeys(group.of, servers)
        self.providers = frozenset(server.provider for servers in self._groups.values() for server in servers)

    def peers(self, name: str) -> tuple[str, ...]:
        """The members of the group of a provider/model, itself first; empty if it is in none."""
        names = [server.name for server in self._groups.get(name, ())]
        at = names.index(name) if names else 0
        return (*names[at:], *names[:at])

    def choose(self, name: str, conversation: str, turns_at: Callable[[str], int]) -> str:
        """The member of the group of `name`, a provider/model, at which the next turn of a conversation is asked;
        `turns_at(provider)` are the turns in flight there."""
        servers = self._groups.get(name)
        if servers is None:
            return name
        may_begin = [each for each in self._living(servers) if not (each.failure and turns_at(each.provider))]
        living = may_begin or servers
        waits = {each.name: each.wait(turns_at(each.provider)) for each in living}
        key = _key(conversation)
        found, tokens = self._at_home(living, key)
        best = min(living, key=lambda each: (waits[each.name], -each.rank(key)))
        return (best if waits[found.name] - waits[best.name] > best.cost(tokens) else found).name

    def home(self, name: str, conversation: str) -> str:
        """As `choose`, for a call that waits until its conversation's server has time."""
        servers = self._groups.get(name)
        return name if servers is None else self._at_home(self._living(servers), _key(conversation))[0].name

    def answered(self, conversation: str, usage: Usage) -> None:
        """A turn of a conversation was answered: the server of that call has read it."""
        if usage.server in self.providers:
            key = _key(conversation)
            self._homes.pop(key, None)
            self._homes[key] = _Home(usage.server, usage.prompt_tokens + usage.completion_tokens)
            if len(self._homes) > MOST_CONVERSATIONS:
                del self._homes[next(iter(self._homes))]

    def learn(self, name: str, usage: Usage, seconds: float) -> None:
        """A member has answered a call, in so many seconds as seen from here."""
        server = next((each for each in self._groups.get(name, ()) if each.name == name), None)
        if server is None:
            return
        server.failure = ""
        read, wrote = (usage.durations.get(part, 0.0) for part in ("prompt_eval", "eval"))
        took = read + wrote or seconds
        server.call_seconds += (_NEW if server.call_seconds else 1.0) * (took - server.call_seconds)
        if usage.prompt_tokens:
            server.token_seconds = max(read / usage.prompt_tokens, server.token_seconds * _FADES)

    def failed(self, name: str, reason: str) -> None:
        """A member could not answer a call."""
        for server in self._groups.get(name, ()):
            if server.name == name:
                server.failure = reason

    def details(self, turns_at: Callable[[str], int]) -> dict[str, str]:
        """The state of each server, in words."""
        servers = {each.provider: each for servers in self._groups.values() for each in servers}
        return {f"server_{name}": _in_words(server, turns_at(name)) for name, server in servers.items()}

    def _living(self, servers: list[_Server]) -> list[_Server]:
        return [each for each in servers if not self._is_shunned(each.name)] or servers

    def _at_home(self, living: list[_Server], key: bytes) -> tuple[_Server, int]:
        """The server of a conversation among those that live, and the tokens that it has read of it."""
        home = self._homes.get(key)
        last = next((each for each in living if home is not None and each.provider == home.provider), None)
        if last is not None and home is not None:
            return last, home.tokens
        return max(living, key=lambda each: each.rank(key)), 0


def _server(name: str, group: ModelGroup) -> _Server:
    provider = name.partition("/")[0]
    slots = group.slots.get(provider, 1)
    return _Server(name, provider, slots, group.weights.get(provider, slots))


def _key(conversation: str) -> bytes:
    """A digest, since what names a conversation may be its text."""
    return hashlib.blake2b(conversation.encode(errors="surrogatepass"), digest_size=16).digest()


def _in_words(server: _Server, turns: int) -> str:
    if server.failure:
        return f"does not answer ({server.failure}); its conversations are continued elsewhere"
    speed = f"{server.call_seconds:.2g} s a call" if server.call_seconds else "not asked yet"
    return f"turns: {turns}, at once: {server.slots}, {speed}"
