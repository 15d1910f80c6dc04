"""Whether a call of a model server evicts what the server keeps of a conversation: its prompt cache."""

from __future__ import annotations

from collections.abc import Sequence

from local.config_address import is_cloud
from local.config_models import Provider, Routing

SECONDS = 5.0
_STAND_IN = "stand_in"
_CACHE, _SLOTS = ("--cache-ram", "-cram"), ("--parallel", "-np")


async def loses_prefix(routing: Routing, provider: str) -> bool | None:
    """Whether a call in between makes the next turn of a conversation evaluate all of it again; None where the server
    could not be asked.

    It does on a server of one slot without a memory cache. That is known of a server that LoCAL2 starts by its `args`
    in models.yaml; llama.cpp tells how many slots it has; of others at home, such as Ollama, the worst is assumed, and
    of servers on the internet that it does not matter.
    """
    endpoint = routing.endpoints[provider]
    if provider == _STAND_IN or is_cloud(endpoint.url):
        return False
    settings = routing.config.providers.get(provider)
    if settings is not None and settings.kind == "llama_server":
        known = _by_args(settings)
        if known is not None:
            return known
    if endpoint.kind == "ollama":
        return True
    slots = await _slots(endpoint.url)
    return None if slots is None else slots < 2


def _by_args(settings: Provider) -> bool | None:
    cache, slots = _number(settings.args, _CACHE), _number(settings.args, _SLOTS)
    if cache or (slots or 0) > 1:  # a limit of -1 is none
        return False
    return True if slots == 1 else None


def _number(args: Sequence[str], names: Sequence[str]) -> int | None:
    """The whole number that an option has, the last one; None where it has none."""
    found = None
    for argument, following in zip(args, (*args[1:], ""), strict=True):
        name, equals, value = argument.partition("=")
        if name in names:
            text = value if equals else following
            found = int(text) if text.removeprefix("-").isdecimal() else None
    return found


async def _slots(url: str) -> int | None:
    """How many slots a server of llama.cpp has; 1 for one that does not tell, None if it does not answer."""
    import httpx  # the arbiter has no other use for it

    try:
        async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client:
            reply = await client.get(f"{url.removesuffix('/v1')}/props")
        told = reply.json() if reply.is_success else {}
    except httpx.HTTPError:
        return None
    except ValueError:
        return 1
    slots = told.get("total_slots") if isinstance(told, dict) else None
    return slots if isinstance(slots, int) else 1
