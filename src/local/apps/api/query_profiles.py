"""The profiles that a caller of the API may ask with."""

from __future__ import annotations

import asyncio

from local.apps.api.context import api
from local.apps.api.errors import RequestRefused
from local.apps.api.principals import Principal
from local.instructions.assistant_profile import AssistantProfile
from local.instructions.profile_registry import NoSuchProfile, Profiles


async def profiles_for(caller: Principal) -> Profiles:
    """The profiles that there are now: a workspace's are its owner's."""
    return await asyncio.to_thread(api().profiles.read, of_owner=caller.is_owner)


async def profile_of(name: str, caller: Principal) -> AssistantProfile:
    """The one that a query names. Raises `RequestRefused`."""
    try:
        return (await profiles_for(caller)).find(name)
    except NoSuchProfile as error:
        raise RequestRefused("invalid", f"profile: {error}", "profile") from None
