"""Plays stories/scripts/*.yaml: exact replies to known questions, filled with what the tools really came back with.

    story: S3_web_search
    turns:
      - user: AI news                  # regular expression, searched in the last user message, case ignored
        history: Interpreter Lock      # optional; must be found in an earlier question or answer
        task: talk                     # optional; or what is asked in the background: classification, dream, …
        options: {temperature: 0.9}    # optional; must be among the request's, as those of another respondent are
        replies:                       # the first for the question, the next after the first tool results, …
          - thinking: I search.        # a text is cut into chunks; a list is sent as it stands
            tool_calls: [{name: web_search, arguments: {query: AI news}}]
          - content: "{title:1}: {snippet:1} [1] {url:1}"

Placeholders: {question}; {first_url}, the first address in this turn's results; {title:N}, {snippet:N}, {url:N} of the
N-th hit of the last search; {result:N}, the first sentences of the N-th result of this turn; {memory:N}, what the user
said in the N-th memory of the last recall. A reply that calls a tool that is not offered, or with a placeholder that
nothing fills, is not played: the rules answer instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from local.errors import ConfigError
from local.models.stand_in import quoting
from local.models.stand_in.chunked_reply import ChunkedReply, split
from local.models.stand_in.conversation import Conversation, Task, ToolUse

_PLACEHOLDER = re.compile(r"\{(question|first_url|(?:title|snippet|url|result|memory):(\d+))\}")


class _Unfilled(LookupError):
    """Nothing that came back fills a placeholder."""


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


Expression = Annotated[str, AfterValidator(_expression)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScriptedCall(_Strict):
    """A tool call; placeholders may stand in its text arguments."""

    name: str
    arguments: dict[str, Any] = {}


class ScriptedReply(_Strict):
    """One assistant message."""

    thinking: str | tuple[str, ...] = ""
    content: str | tuple[str, ...] = ""
    tool_calls: tuple[ScriptedCall, ...] = ()


class ScriptedTurn(_Strict):
    """The replies to one question."""

    user: Expression
    history: Expression = ""
    task: Task = Task.TALK
    options: dict[str, Any] = {}
    replies: tuple[ScriptedReply, ...] = Field(min_length=1)

    def fits(self, conversation: Conversation, task: Task, options: Mapping[str, Any]) -> bool:
        """Whether this turn is about the conversation's last question, and for such a task with these options."""
        said = "\n".join(f"{exchange.question}\n{exchange.answer}" for exchange in conversation.earlier)
        asked = re.search(self.user, conversation.question, re.I)
        known = not self.history or re.search(self.history, said, re.I)
        return bool(task is self.task and asked and known and self.options.items() <= options.items())


class Script(_Strict):
    """One story; delays are seconds."""

    story: str
    turns: tuple[ScriptedTurn, ...]
    chunk_chars: int = Field(16, gt=0)
    chunk_delay_seconds: float = Field(0.0, ge=0)
    first_delay_seconds: float = Field(0.0, ge=0)

    def play(
        self, conversation: Conversation, task: Task = Task.TALK, options: Mapping[str, Any] = MappingProxyType({})
    ) -> ChunkedReply | None:
        """The reply due now, or None if this script does not know the question or cannot fill its reply."""
        turn = next((turn for turn in self.turns if turn.fits(conversation, task, options)), None)
        if turn is None or (conversation.results and all(result.failed for result in conversation.results)):
            return None
        reply = turn.replies[min(conversation.rounds, len(turn.replies) - 1)]
        if any(call.name not in conversation.tools for call in reply.tool_calls):
            return None
        try:
            return self._delivery(reply, conversation)
        except _Unfilled:
            return None

    def _delivery(self, reply: ScriptedReply, conversation: Conversation) -> ChunkedReply:
        def chunks(text: str | Sequence[str]) -> tuple[str, ...]:
            if isinstance(text, str):
                return split(_fill(text, conversation), self.chunk_chars)
            return tuple(_fill(chunk, conversation) for chunk in text)

        def arguments(values: Mapping[str, Any]) -> dict[str, Any]:
            return {key: _fill(v, conversation) if isinstance(v, str) else v for key, v in values.items()}

        calls = tuple(ToolUse(call.name, arguments(call.arguments)) for call in reply.tool_calls)
        thinking, content = chunks(reply.thinking), chunks(reply.content)
        return ChunkedReply(thinking, content, calls, self.first_delay_seconds, self.chunk_delay_seconds)


def _fill(text: str, conversation: Conversation) -> str:
    return _PLACEHOLDER.sub(lambda found: _filling(found[1], int(found[2] or 1), conversation), text)


def _filling(name: str, number: int, conversation: Conversation) -> str:
    results = [result.content for result in conversation.results if not result.failed]
    match name.partition(":")[0]:
        case "question":
            return conversation.question
        case "first_url":
            value = next(filter(None, map(quoting.first_url, results)), None)
        case "result":
            value = quoting.sentences(results[number - 1]) if 0 < number <= len(results) else None
        case "memory":
            memories = next((found for text in reversed(results) if (found := quoting.memories(text))), [])
            value = memories[number - 1].said if 0 < number <= len(memories) else None
        case field:
            hits = next((hits for text in reversed(results) if (hits := quoting.hits(text))), [])
            value = next((str(getattr(hit, field)) for hit in hits if hit.number == number), None)
    if not value:
        raise _Unfilled(name)
    return value


def parse(text: str, source: str) -> Script:
    """Read a script from YAML or JSON text; `ConfigError` names `source`, the place and what is wrong."""
    try:
        return Script.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: not valid YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(f"{source}: {place}: {first['msg']}") from None


def load(path: Path) -> Script:
    """Read a script file; `ConfigError` if it cannot be read or is no script."""
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
