"""What others have said of the answer to one query."""

from __future__ import annotations

from typing import Any

from local.protocol.judgement_messages import CritiqueResult, PairwiseResult, UserFeedback

Judgement = CritiqueResult | PairwiseResult | UserFeedback

CRITIQUE, PAIRWISE, FEEDBACK = "critique", "pairwise", "feedback"
JUDGEMENTS: dict[type[Judgement], str] = {CritiqueResult: CRITIQUE, PairwiseResult: PAIRWISE, UserFeedback: FEEDBACK}


class Judgements:
    """A critic's word, the comparison with the second respondent's answer, and the user's latest rating. They come live
    and are found on record, so each is taken once, by its envelope."""

    def __init__(self) -> None:
        self._latest: dict[str, Judgement] = {}
        self._heard: set[str] = set()
        self._ruled_out: set[str] = set()

    @property
    def settled(self) -> frozenset[str]:
        """Which kinds have come, or never will."""
        return frozenset(self._latest) | self._ruled_out

    def rule_out(self, kind: str) -> None:
        """None of that kind will come."""
        self._ruled_out.add(kind)

    def hear(self, message: Judgement, envelope_id: str) -> bool:
        """Take a judgement in; says whether it was news."""
        if envelope_id in self._heard:
            return False
        self._heard.add(envelope_id)
        kind = JUDGEMENTS[type(message)]
        known = self._latest.get(kind)
        if isinstance(known, UserFeedback) and isinstance(message, UserFeedback) and message.rated_at < known.rated_at:
            return False
        self._latest[kind] = message
        return True

    def as_json(self) -> dict[str, Any]:
        """The scores of an answer; null is what is not known, a rating also where it was withdrawn."""
        feedback = self._latest.get(FEEDBACK)
        return {
            CRITIQUE: self._shown(CRITIQUE),
            PAIRWISE: self._shown(PAIRWISE),
            "rating": feedback.rating if isinstance(feedback, UserFeedback) else None,
        }

    def _shown(self, kind: str) -> dict[str, Any] | None:
        message = self._latest.get(kind)
        return None if message is None else message.model_dump(mode="json", exclude={"query_id", "respondent_id"})
