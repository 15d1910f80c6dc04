"""What a turn starts from, and which model it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date

from local.agents.attached import AttachedFiles
from local.agents.context.summary import Summary
from local.agents.generator_config import GeneratorConfig
from local.agents.prompt import compose
from local.agents.turn import Question
from local.models.chat import Json
from local.protocol.messages import QueryReceived, ToolSchema
from local.services.conversation import Past


class Opening:
    """Makes the questions of one respondent's turns. `offered` gives the tools that there are now."""

    def __init__(
        self,
        settings: GeneratorConfig,
        respondent_id: str,
        files: AttachedFiles,
        offered: Callable[[], Mapping[str, ToolSchema]],
    ) -> None:
        self._settings, self._respondent_id = settings, respondent_id
        self._files, self._offered = files, offered

    def prelude(self, history: Sequence[Json], today: date) -> tuple[Json, ...]:
        """What the model gets before a question."""
        return compose(self._settings.instructions, today, history, tools=self._offered().values())

    async def question(self, asked: QueryReceived, past: Past, today: date) -> Question:
        """Everything that the turn's prompts begin with. Raises `AttachmentMissing`; `ModelError` for pictures that no
        model can see."""
        attached = await self._files.read(asked.attachments, asked.query)
        return Question(
            query_id=asked.query_id,
            respondent_id=self._respondent_id,
            query=asked.query,
            prelude=self.prelude(past.history, today),
            think=self._settings.think,
            max_tool_iterations=self._settings.max_tool_iterations,
            summary=Summary() if past.summary is None else Summary.from_json(past.summary),
            attached=attached,
        )

    def model_for(self, question: Question) -> str:
        """The model that sees, if the question has pictures; else the one that answers."""
        settings = self._settings
        return (settings.vision_model or settings.model) if question.attached.images else settings.model
