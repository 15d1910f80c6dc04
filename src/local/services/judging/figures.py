"""A judge's running figures: how often it could not be read, agreed with itself, and preferred the longer answer."""

from __future__ import annotations

from dataclasses import dataclass

from local.services.judging.judgement import ComparisonOutcome, JudgingStatus, Verdict, Winner
from local.services.judging.prompt import Pair


@dataclass(slots=True)
class Figures:
    """Counts since the start; the shares are between 0 and 1, None while there is nothing to divide by."""

    graded: int = 0  # answers
    unparsed: int = 0  # answers and comparisons
    replies: int = 0
    unread_replies: int = 0
    comparisons: int = 0
    consistent: int = 0
    decided: int = 0  # in favour of one of two answers that differ in length
    longer_won: int = 0
    longer_is_a: int = 0  # of those decided
    a_won: int = 0

    def count_verdict(self, verdict: Verdict) -> None:
        """One answer was graded, or could not be."""
        self._count(verdict)
        self.graded += verdict.status is JudgingStatus.GRADED

    def count_outcome(self, outcome: ComparisonOutcome, pair: Pair) -> None:
        """Two answers were compared, or could not be."""
        self._count(outcome)
        if outcome.status is JudgingStatus.UNPARSED:
            return
        self.comparisons += 1
        self.consistent += outcome.order_consistent is True
        longer = len(pair.answer_a) - len(pair.answer_b)
        if outcome.winner is not Winner.TIE and longer:
            self.decided += 1
            self.longer_is_a += longer > 0
            self.a_won += outcome.winner is Winner.A
            self.longer_won += outcome.winner is (Winner.A if longer > 0 else Winner.B)

    def shares(self) -> dict[str, float | None]:
        """`parse_failures` of all replies, `order_consistency` of all comparisons, `longer_wins` of those decided, and
        what that would be if the judge did not mind the length (`longer_wins_expected`)."""
        return {
            "parse_failures": _share(self.unread_replies, self.replies),
            "order_consistency": _share(self.consistent, self.comparisons),
            "longer_wins": _share(self.longer_won, self.decided),
            "longer_wins_expected": self._expected(),
        }

    def _expected(self) -> float | None:
        """How often the longer answer is the winner if the two are independent: one respondent may win more often, and
        the same one be longer more often."""
        is_a, a_wins = _share(self.longer_is_a, self.decided), _share(self.a_won, self.decided)
        return None if is_a is None or a_wins is None else is_a * a_wins + (1 - is_a) * (1 - a_wins)

    def _count(self, end: Verdict | ComparisonOutcome) -> None:
        self.unparsed += end.status is JudgingStatus.UNPARSED
        self.replies += end.replies
        self.unread_replies += end.unread


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
