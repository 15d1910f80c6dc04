"""A chat request as the rules read it: its task, the question, what was said before, what tools have answered."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = dict[str, Any]

_PROMETHEUS = re.compile(r"^###Feedback:\s*\Z", re.M)
_SELENE = re.compile(r"^Reply in exactly this form:\n\*\*Reasoning:\*\*.*\n\n\*\*Result:\*\*", re.M)
_VERDICTS = ({"feedback", "score"}, {"feedback", "winner"})


class Task(StrEnum):
    """The chores are known by the JSON Schema of the reply or, for judges, by the form of the prompt."""

    TALK = "talk"
    CLASSIFICATION = "classification"  # facts and intent are asked for
    DREAM = "dream"  # exchanges are to be looked back at
    THOUGHT = "thought"  # exchanges are to be thought of
    CHECK = "check"  # how a goal stands
    JUDGEMENT = "judgement"  # a score of one answer, or the better one of two
    JSON = "json"  # any other reply with a schema


def task_of(wanted: Json | str | None, question: str) -> Task:
    """The task of a request whose `format` is `wanted` and whose last user message is `question`."""
    asked = set(wanted.get("properties") or {}) if isinstance(wanted, dict) else set()
    if asked >= {"facts", "intent"}:
        return Task.CLASSIFICATION
    if "dreams" in asked:
        return Task.DREAM
    if asked == {"thought"}:
        return Task.THOUGHT
    if "has_something_to_say" in asked:
        return Task.CHECK
    if any(asked >= verdict for verdict in _VERDICTS) or (wanted is None and _is_judge_prompt(question)):
        return Task.JUDGEMENT
    return Task.TALK if wanted is None else Task.JSON


def _is_judge_prompt(question: str) -> bool:
    return bool(_PROMETHEUS.search(question) or _SELENE.search(question))


# How tools word a failure; the stand-in tells it instead of quoting it as an answer.
_FAILURE = re.compile(
    r"^\W*(?:\w+ )?(?:tool )?(?:error|timeout|timed out|failed|failure|refused|unavailable|could not)\b", re.I
)

# What LoCAL2 writes before a question, in the same message; the files in it belong to the question.
_BACKGROUND = re.compile(r"\A\[Background for the question below.*?\]\n(.*)\n\[End of background\]\n\n", re.S)
_FILES = re.compile(r"^\[The user has attached .*\Z", re.M | re.S)


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """An offered tool; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Json


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of a tool."""

    name: str
    arguments: Json

    def as_message(self, call_id: str, index: int) -> Json:
        """The entry in an Ollama message's `tool_calls`."""
        return {"id": call_id, "function": {"index": index, "name": self.name, "arguments": self.arguments}}


@dataclass(frozen=True, slots=True)
class Result:
    """What one tool call came back with; `tool` is empty if the message does not say."""

    tool: str
    content: str

    @property
    def failed(self) -> bool:
        """Whether the tool reports a failure."""
        return bool(_FAILURE.match(self.content)) or not self.content.strip()


@dataclass(frozen=True, slots=True)
class EarlierTurn:
    """An earlier question and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """One assistant message: what it thinks, says and calls."""

    thinking: str = ""
    content: str = ""
    calls: tuple[ToolUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """`question` is what the user said since the last answer; it led to `rounds` of `calls`, and their `results`."""

    question: str
    earlier: tuple[EarlierTurn, ...] = ()
    rounds: int = 0
    calls: tuple[ToolUse, ...] = ()
    results: tuple[Result, ...] = ()
    tools: Mapping[str, OfferedTool] = field(default_factory=dict)

    def succeeded(self, tool: str) -> list[str]:
        """The texts that `tool` came back with in this turn, failures left out."""
        return [result.content for result in self.results if result.tool == tool and not result.failed]


def read(messages: Sequence[Json], tools: Sequence[Json]) -> Conversation:
    """Read Ollama's messages and tools (their shape is checked already).

    The turn begins with the first user message after the last answer, so that a reminder belongs to its question.
    """
    answers = [i for i, m in enumerate(messages) if m["role"] == "assistant" and _text(m) and not m.get("tool_calls")]
    last_answer = answers[-1] if answers else -1
    turn = next((i for i in range(last_answer + 1, len(messages)) if messages[i]["role"] == "user"), len(messages))
    since = messages[turn:]
    calling = [message for message in since if message["role"] == "assistant" and message.get("tool_calls")]
    offered = (tool.get("function") or {} for tool in tools)
    return Conversation(
        question="\n".join(_asked(message) for message in since if message["role"] == "user"),
        earlier=tuple(_exchanges(messages[:turn])),
        rounds=len(calling),
        calls=tuple(call for message in calling for call in _calls(message)),
        results=tuple(_results(since)),
        tools={
            f["name"]: OfferedTool(f["name"], f.get("description") or "", f.get("parameters") or {})
            for f in offered
            if f
        },
    )


def _text(message: Json) -> str:
    return str(message.get("content") or "")


def _asked(message: Json) -> str:
    """What a user's message asks, with the files that it brings."""
    text = _text(message)
    background = _BACKGROUND.match(text)
    if background is None:
        return text
    files = _FILES.search(background[1])
    question = text[background.end() :]
    return f"{question}\n\n{files[0]}" if files else question


def _calls(message: Json) -> list[ToolUse]:
    functions = (call.get("function") or {} for call in message.get("tool_calls") or ())
    return [ToolUse(str(f.get("name", "")), f.get("arguments") or {}) for f in functions]


def _results(since: Sequence[Json]) -> list[Result]:
    # As in Ollama the name counts; the id is the second best, for clients that send only that.
    names = {
        call["id"]: (call.get("function") or {}).get("name", "")
        for message in since
        for call in message.get("tool_calls") or ()
        if call.get("id")
    }
    found = (message for message in since if message["role"] == "tool")
    return [Result(m.get("tool_name") or names.get(m.get("tool_call_id"), ""), _text(m)) for m in found]


def _exchanges(messages: Sequence[Json]) -> list[EarlierTurn]:
    exchanges: list[EarlierTurn] = []
    for message in messages:
        if message["role"] == "user":
            exchanges.append(EarlierTurn(_asked(message), ""))
        elif message["role"] == "assistant" and exchanges and _text(message):
            exchanges[-1] = EarlierTurn(exchanges[-1].question, _text(message))
    return exchanges
