"""What is decided while one question of a story is answered: of each call that asks for leave, in a user's place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from local.apps.story import Approval, Saying
from local.apps.story_checks import Check, check_card, says, told_call

Json = dict[str, Any]
DOOR = "story"  # in `by`


class ApprovalScript:
    """Use `decision` for each event that asks. `checks` are those of the cards, `missing` those that nobody asked."""

    def __init__(self, approvals: Sequence[Approval]) -> None:
        self._open = list(approvals)
        self._decided: set[str] = set()
        self.checks: list[Check] = []

    def decision(self, asked: Mapping[str, Any]) -> Json | None:
        """The body that decides it, by an `approval.request`; a denial if nobody has foreseen it, None if it is decided
        already."""
        if asked["call_id"] in self._decided:
            return None
        self._decided.add(asked["call_id"])
        approval = next((each for each in self._open if _is_about(each, asked)), None)
        if approval is None:
            self.checks.append(Check(False, "only what the story foresees asks for leave", told_call(asked)))
            return {"decision": "deny", "by": DOOR}
        if not approval.often:
            self._open.remove(approval)
        self.checks.append(check_card(approval, asked))
        answer = {} if approval.answer is None else {"answer": approval.answer}
        return {"decision": approval.decision, **answer, "by": DOOR}

    def missing(self) -> list[Check]:
        """A failure for each question that has not come and had to."""
        return [Check(False, f"{each.tool} asks for leave", "it has not") for each in self._open if not each.often]


def _is_about(approval: Approval, asked: Mapping[str, Any]) -> bool:
    args = Saying(one_of=(approval.args,) if approval.args else ())
    return approval.tool == asked["tool"] and says(args, asked["args"])
