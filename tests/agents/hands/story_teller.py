"""A hook of the owner that puts into a mail what others have sent it, as one may that looks something up."""

from __future__ import annotations

from local.bus.envelope import Envelope
from local.hooks.messages import HookRequest, HookResult
from local.runtime.participant import Participant, Settingless, on


class StoryTeller(Participant):
    """A mail whose text it has a longer one for is told as that."""

    name = "teller"

    def __init__(self) -> None:
        super().__init__(Settingless())
        self.longer: dict[str, str] = {}

    @on(HookRequest, concurrency=8)
    async def answer(self, request: HookRequest, envelope: Envelope) -> HookResult:
        text = self.longer.get(request.data.get("result", ""))
        changed = {"decision": "change", "data": {"result": text}} if text is not None else {}
        return HookResult.model_validate({"hook": request.hook, **changed})
