"""What a turn starts from, and which model it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date

from local.agents.answering.attached import AttachedFiles
from local.agents.answering.config import GeneratorConfig
from local.agents.answering.context.summary import Summary
from local.agents.answering.known_facts import KnownFacts
from local.agents.answering.prompt import compose
from local.agents.answering.turn import Question
from local.models.chat import Json
from local.protocol.messages import QueryReceived, ToolSchema
from local.services.conversation import Past


class Opening:
    """Makes the questions of one respondent's turns. `offered` gives the tools that there are now; `facts` are what
    users have pinned, for conversations that are ours: one that a caller brings along has its own context."""

    def __init__(
        self,
        settings: GeneratorConfig,
        respondent_id: str,
        files: AttachedFiles,
        offered: Callable[[], Mapping[str, ToolSchema]],
        facts: KnownFacts,
    ) -> None:
        self._settings, self._respondent_id = settings, respondent_id
        self._files, self._offered, self._facts = files, offered, facts

    def prelude(self, history: Sequence[Json], today: date, user_id: str | None) -> tuple[Json, ...]:
        """What the model gets before a question of that user, by what is known now."""
        return self._prelude(history, today, self._facts.known(user_id))

    async def question(self, asked: QueryReceived, past: Past, today: date, user_id: str | None) -> Question:
        """Everything that the turn's prompts begin with. Raises `AttachmentMissing`; `ModelError` for pictures that no
        model can see."""
        attached = await self._files.read(asked.attachments, asked.query)
        facts = await self._facts.current(user_id) if asked.history is None else ()
        return Question(
            query_id=asked.query_id,
            respondent_id=self._respondent_id,
            query=asked.query,
            prelude=self._prelude(past.history, today, facts),
            think=self._settings.think,
            max_tool_iterations=self._settings.max_tool_iterations,
            summary=Summary() if past.summary is None else Summary.from_json(past.summary),
            attached=attached,
            prompt=self._settings.prompt,
            incognito=asked.incognito,
            in_history=asked.history is None,
        )

    def model_for(self, question: Question) -> str:
        """The model that sees, if the question has pictures; else the one that answers."""
        settings = self._settings
        return (settings.vision_model or settings.model) if question.attached.images else settings.model

    def _prelude(self, history: Sequence[Json], today: date, facts: Sequence[str]) -> tuple[Json, ...]:
        return compose(self._settings.instructions, today, history, tools=self._offered().values(), facts=facts)
