"""How an answer is wanted over HTTP: the tools that the model is offered, and what becomes of calls that need leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from local.apps.api.errors import RequestRefused
from local.apps.api.principals import Principal
from local.instructions.assistant_profile import AssistantProfile
from local.protocol.answer_options import AnswerOptions, AnswerProfile
from local.protocol.safety import NOBODY_THERE, Mode

GATEKEEPER = "gatekeeper"
LOOSER = frozenset({"acceptEdits", "bypassPermissions"})  # than what the owner's settings are by themselves


def mode_of(
    wanted: Mode | None, caller: Principal, gatekeeper: Callable[[], Mapping[str, str]], *, is_followed: bool
) -> Mode | None:
    """The mode of a query: the one that is wanted, else that of the settings; but where nobody follows it, whom a
    question could reach, nobody is asked. `gatekeeper()` is what that says of itself.

    Raises `RequestRefused` for a looser one without the owner's token, or one that the owner has not set that it may
    be.
    """
    if wanted in LOOSER:
        caller.require_owner()
        caller.require_token()
    if wanted == "bypassPermissions" and gatekeeper().get("may_bypass") != "yes":
        text = "mode: bypassPermissions is not for this system, unless gatekeeper.yaml has may_bypass: true"
        raise RequestRefused("forbidden", text, "mode")
    return wanted or (None if is_followed else NOBODY_THERE)


def with_profile(options: AnswerOptions | None, profile: AssistantProfile) -> AnswerOptions:
    """An asker's options with what a profile says where the asker says nothing; it only narrows the tools."""
    options = options or AnswerOptions()
    told = AnswerProfile(
        name=profile.name,
        origin=profile.origin,
        tools=profile.tools,
        model=profile.model,
        instructions=profile.instructions,
    )
    temperature = profile.temperature if options.temperature is None else options.temperature
    most = [limit for limit in (options.max_tokens, profile.max_tokens) if limit is not None]
    changes = {"profile": told, "temperature": temperature, "max_tokens": min(most, default=None)}
    return options.model_copy(update=changes)


def with_mode(options: AnswerOptions | None, mode: Mode | None) -> AnswerOptions | None:
    """An asker's options with the mode that counts for the query."""
    if mode is None:
        return options
    return AnswerOptions(mode=mode) if options is None else options.model_copy(update={"mode": mode})
