"""The tool that asks a critic which of two answers is better."""

from __future__ import annotations

from typing import Annotated

from local.bus.envelope import Envelope
from local.bus.messages import ParticipantStatus
from local.core.config import Settings
from local.core.errors import RequestTimeout, ToolError
from local.critic.messages import ComparisonRequest, ComparisonResult
from local.runtime.participant import Settingless, on
from local.runtime.runner import Presence
from local.tools.tool import Tool

CRITIC = "critic"
COMPARISON_SECONDS = 120.0
PRESENCE_SECONDS = 3.0
MOST_CHARACTERS = 20_000  # of each text


class CompareAnswersTool(Tool):
    """Compare two answers to the same question by an independent critic, which reads them in both orders. Use it only
    when you have two different answers and cannot decide between them, or when the user asks which of two texts is
    better. It takes a while."""

    name = "compare_answers"
    publishes = (ComparisonRequest,)
    effect = "none"
    safety = "L0"
    category = "meta"
    trusted = True
    repeatable = False
    timeout_seconds = COMPARISON_SECONDS + PRESENCE_SECONDS + 1.0  # running out of its time explains itself

    def __init__(self, config: Settings | None = None) -> None:
        super().__init__(config or Settingless())
        self._critic = Presence(CRITIC)

    @on(ParticipantStatus)
    async def notice(self, status: ParticipantStatus, envelope: Envelope) -> None:
        """A critic lives or leaves."""
        self._critic.update(status)

    async def run(
        self,
        question: Annotated[str, "The question that both answer"],
        answer_a: Annotated[str, "The first answer, whole"],
        answer_b: Annotated[str, "The second answer, whole"],
    ) -> str:
        """Which is better, and why."""
        texts = {"question": question, "answer_a": answer_a, "answer_b": answer_b}
        _check(texts)
        if not await self._critic.lives_within(PRESENCE_SECONDS):  # so that no call waits two minutes for it then
            raise ToolError("no critic runs that could compare answers; decide yourself", kind="unavailable")
        request = ComparisonRequest(**texts, respondent_id=self.asked_for())
        try:
            result = await self.bus.request(request, ComparisonResult, COMPARISON_SECONDS, self.asked_by())
        except RequestTimeout as error:
            raise ToolError(f"the critic did not answer within {error.seconds:g} s", kind="timeout") from None
        if result.error is not None:
            raise ToolError(f"the answers could not be compared: {result.error.message}", kind=result.error.kind)
        return _in_words(result)


def _check(texts: dict[str, str]) -> None:
    for name, text in texts.items():
        if not text.strip():
            raise ToolError(f"{name} is empty", kind="bad_arguments")
        if len(text) > MOST_CHARACTERS:
            message = f"{name} has {len(text):,} characters, at most {MOST_CHARACTERS:,} can be compared"
            raise ToolError(message, kind="bad_arguments")


def _in_words(result: ComparisonResult) -> str:
    if result.winner != "tie":
        return f"Answer {result.winner} is better. {result.feedback}".strip()
    doubt = "" if result.order_consistent else " (the judge preferred another one when their order was changed)"
    return f"Neither is better: it is a tie{doubt}. {result.feedback}".strip()
