"""The profiles that a caller of the API may use, and the choice from a query's options."""

from __future__ import annotations

import asyncio

from local.api.context import api
from local.api.http import RequestRefused
from local.api.security import Principal
from local.bus.messages import AnswerOptions, AnswerProfile
from local.core.profiles import AssistantProfile, NoSuchProfile, Profiles


async def profiles_for(caller: Principal) -> Profiles:
    """The profiles that there are now for the caller: other users have the built-in and the shared ones."""
    return await asyncio.to_thread(api().profiles.read, of_owner=caller.is_owner)


async def profile_of(name: str, caller: Principal) -> AssistantProfile:
    """The one that a query names. Raises `RequestRefused`."""
    try:
        return (await profiles_for(caller)).find(name)
    except NoSuchProfile as error:
        raise RequestRefused("invalid", f"profile: {error}", "profile") from None


def with_profile(options: AnswerOptions | None, profile: AssistantProfile) -> AnswerOptions:
    """Return an asker's options, completed from a profile; the profile only narrows the tools."""
    options = options or AnswerOptions()
    told = AnswerProfile(
        name=profile.name,
        tools=profile.tools,
        model=profile.model,
        instructions=profile.instructions,
    )
    temperature = profile.temperature if options.temperature is None else options.temperature
    most = [limit for limit in (options.max_tokens, profile.max_tokens) if limit is not None]
    changes = {"profile": told, "temperature": temperature, "max_tokens": min(most, default=None)}
    return options.model_copy(update=changes)
