"""The scales that answers are graded by, and which of them fits a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from local.config import Settings

RECALLING_TOOL = "search_memory"


def _on_one_line(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise ValueError("expected text on one line; after '>-' in place of '|' it may be written on several")
    return text


Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_on_one_line)]


class Rubric(Settings):
    """One scale: the question that is asked of an answer, and what each score means, from 1 to 5."""

    criteria: Sentence
    scores: tuple[Sentence, Sentence, Sentence, Sentence, Sentence]

    def text(self) -> str:
        """The rubric as judges know it: the question in brackets, then `Score n: …`, each on a line."""
        return "\n".join([f"[{self.criteria}]", *(f"Score {n}: {text}" for n, text in enumerate(self.scores, 1))])


class Rubrics(Settings):
    """The rubrics of `critic.yaml`: one for each kind of turn, and by their names those that tools ask for."""

    knowledge: Rubric
    tools: Rubric
    memory: Rubric
    of_tools: Mapping[str, Rubric] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UsedTool:
    """A tool that was called in the turn, and the rubric it declares, if it does."""

    name: str
    rubric: str = ""


def choose(rubrics: Rubrics, used: Sequence[UsedTool]) -> tuple[str, Rubric]:
    """The name and the rubric for a turn that used these tools.

    The first rubric that a tool asks for and that there is; else the tools' if anything was looked up, the memory's
    if something was only recalled, and that of plain knowledge if no tool ran.
    """
    asked = [tool.rubric for tool in used if tool.rubric in rubrics.of_tools]
    if asked:
        return asked[0], rubrics.of_tools[asked[0]]
    if any(tool.name != RECALLING_TOOL for tool in used):
        return "tools", rubrics.tools
    return ("memory", rubrics.memory) if used else ("knowledge", rubrics.knowledge)
