"""What a respondent knows by now that goes into its prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from local.agents.answering.prompt.known_skills import KnownSkills
from local.instructions.standing_texts import StandingTextFiles, StandingTexts
from local.models.model_sizes import ModelSizes
from local.protocol.memory_messages import OWNER
from local.protocol.messages import ToolSchema


@dataclass(frozen=True, slots=True)
class PromptKnowledge:
    """`offered` gives the tools that there are, `skills` those that can be read, `mode` that of the gatekeeper, empty
    where none lives; `texts` are what the owner has written, `sizes` the sizes of the models."""

    offered: Callable[[], Mapping[str, ToolSchema]]
    skills: KnownSkills
    mode: Callable[[], str] = str
    texts: StandingTextFiles | None = None
    sizes: ModelSizes = field(default_factory=ModelSizes)

    @property
    def problems(self) -> str:
        """What of the owner's texts is not told, and why."""
        return "; ".join(self.texts.texts.problems) if self.texts else ""

    def written(self, user_id: str | None) -> StandingTexts:
        """What the owner has written, as it is now; nothing for another user."""
        return self.texts.current() if self.texts and (user_id or OWNER) == OWNER else StandingTexts()
