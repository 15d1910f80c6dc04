"""What is put before a judge: one answer, or two to the same question."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one tool returned during the turn; the answer is judged against it. `source` is the tool's name."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Case:
    """One answer. With evidence the prompt is the retrieval-grounded one. Texts are as they came, never prepared."""

    query: str
    answer: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to one question. `evidence` is what either of them was written from."""

    query: str
    answer_a: str
    answer_b: str
    evidence: tuple[Evidence, ...] = ()

    def swapped(self) -> Pair:
        """The same two in the other order."""
        return Pair(self.query, self.answer_b, self.answer_a, self.evidence)
