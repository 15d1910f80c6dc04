"""Small windows: 200 turns of a conversation, the summaries that they take, how much of each prompt is that of the
prompt before, and whether five facts of the beginning are before the model when it is asked for them in the end.

No model answers: the conversation is given, and the summaries are what a small model with a bad memory would write,
which takes small talk for facts and tells the summary so far in a few words. Prompts are compared as text, since a
server has to read what comes after the first difference. The baseline is a client that keeps as many of the last turns
as fit and has no summary: it changes the beginning of each prompt once the window is full.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os.path
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.conversation_set import USER, read_conversations
from benchmarks.figure import BenchmarkFailed, Figure
from local.bus.messages import Context, ContextItem, ToolSchema
from local.core.owner_texts import SourcedText
from local.files.tools import ListFilesTool, ReadFileTool, WriteFileTool
from local.generator.context import Exchange, Limits, PromptParts, Summary, SummaryJob, ToolFunction
from local.generator.fitting import ContextWindow, Plan
from local.generator.prompt import PromptInputs, ToolLine, system_text
from local.generator.short_schemas import as_function
from local.memory.tools import SearchMemoryTool
from local.models.settings import Tier
from local.stand_in.server import CHARS_PER_TOKEN, count
from local.tools.tool import Tool
from local.web.fetch import WebFetchTool
from local.web.search import WebSearchTool

WINDOWS = (4096, 8192, 32_768)
TURNS = 200
MOST_SUMMARIES = {4096: 40}
KEPT = 0.9  # of a prompt, to count as kept by the next one
KEPT_TURNS = 90  # per cent
WITH_PAGES = "ours with pages"
TURNS_A_DAY = 25
ANSWER_CHARACTERS = (60, 800)
PAGE_EVERY, PAGE_CHARACTERS = 16, 2500  # turns; of a page that is fetched
FACTS_A_TURN, STORY_WORDS = 2, 50
KEY_FACTS = {
    3: ("My boat is called Petrel Bramble.", "What is my boat called?", "Petrel Bramble"),
    8: ("I never eat hazelnuts, they make me ill.", "Which nuts do I never eat?", "hazelnuts"),
    14: ("The tax adviser is Mr Oyelaran in Leith.", "Who is the tax adviser?", "Oyelaran"),
    19: ("Our budget for the kitchen is 7,350 euros.", "What is our budget for the kitchen?", "7,350"),
    25: ("The wedding of Saoirse is on 14 May.", "When is the wedding of Saoirse?", "14 May"),
}
TOOLS = (SearchMemoryTool, WebSearchTool, WebFetchTool, ReadFileTool, ListFilesTool, WriteFileTool)

Said = tuple[str, str]  # a question and its answer
Json = dict[str, Any]


async def run(options: argparse.Namespace) -> list[Figure]:
    """Our own conversation at each window, and that of a file if there is one."""
    talks = {"ours": _ours(), WITH_PAGES: _ours()}
    if options.conversation is not None:
        talks[options.conversation.stem] = read_talk(options.conversation)
    figures: list[Figure] = []
    for name, said in talks.items():
        for size in WINDOWS:
            figures += await _measured(name, said[:TURNS], size)
    return figures


async def _measured(name: str, said: Sequence[Said], size: int) -> list[Figure]:
    talk = Talk(size)
    for number, (question, answer) in enumerate(said, start=1):
        stated = KEY_FACTS.get(number, ("",))[0]
        has_page = name == WITH_PAGES and number % PAGE_EVERY == 0
        await talk.ask(f"{question} {stated}".strip(), answer, has_page=has_page)
    found = talk.shows(value for _, _, value in KEY_FACTS.values())
    calls, waits, kept, again, cut = talk.calls, talk.waits, talk.kept_turns, talk.read_again, talk.cut_again
    asked = [await talk.is_shown(question, value) for _, question, value in KEY_FACTS.values()]
    where = f"windows: {size // 1024}k, {name}"
    wanted = None if name == WITH_PAGES else KEPT_TURNS  # a page takes as much room as four turns
    return [
        Figure(f"{where}: summary calls in {len(said)} turns", calls, "calls", limit=MOST_SUMMARIES.get(size)),
        Figure(f"{where}:   of them, waited for in a turn", waits, "calls"),
        Figure(
            f"{where}: turns that keep the prompt before", 100 * kept / (len(said) - 1), "%", limit=wanted,
            at_least=True,
        ),
        Figure(f"{where}: read anew, all prompts", again / CHARS_PER_TOKEN, "tokens", cut / CHARS_PER_TOKEN),
        Figure(f"{where}: facts of five shown when asked for", sum(asked), "facts", limit=5, at_least=True),
        Figure(f"{where}:   unasked", found, "facts"),
    ]  # fmt: skip


@dataclass
class Talk:
    """One conversation on a window of so many tokens, as a respondent leads it: what is not in `summary` and `stored`
    is lost between turns."""

    size: int
    window: ContextWindow = field(init=False)
    summary: str = field(default_factory=Summary().as_json)
    stored: list[tuple[Said, str]] = field(default_factory=list)  # each exchange, and how the model was sent it
    calls: int = 0  # for summaries
    waits: int = 0  # of a turn, for a summary
    kept_turns: int = 0
    read_again: int = 0  # characters
    cut_again: int = 0  # the same of the baseline
    _before: str = ""
    _before_cut: str = ""

    def __post_init__(self) -> None:
        self.window = ContextWindow(Limits(self.size))
        schemas = list(map(_schema, TOOLS))
        self._tools: tuple[ToolFunction, ...] = tuple(as_function(each, Tier.SMALL) for each in schemas)
        lines = tuple(map(ToolLine.of, schemas))
        self._system = system_text(PromptInputs(SourcedText("", ""), date(2026, 1, 1), Tier.SMALL, lines))

    async def ask(self, question: str, answer: str, *, has_page: bool = False) -> Plan:
        """A turn, and the summary in the background after it."""
        parts = self._parts(question)
        planned, parts, is_kept = await self._call(parts)
        if has_page:
            parts = _with_page(parts, len(self.stored))
            planned, parts, is_next_kept = await self._call(parts)
            is_kept = is_kept and is_next_kept
        self.kept_turns += is_kept
        self._cut(question)
        sent = Exchange(0, (*planned.turn, {"role": "assistant", "content": answer}), planned.said).as_json()
        self.stored.append(((question, answer), sent))
        await self.window.summarised(planned, parts, self._summarise, self._keep)
        return planned

    async def is_shown(self, question: str, value: str) -> bool:
        """Whether the model is shown a value when it is asked for."""
        planned = await self.ask(question, "Here you are.")
        return value in _text(planned.messages, ())

    def shows(self, values: Iterable[str]) -> int:
        """How many of these values are in the last prompt."""
        return sum(value in self._before for value in values)

    def _parts(self, question: str) -> PromptParts:
        summary = Summary.from_json(self.summary)
        rest = self.stored[summary.through :]
        said = [
            {"role": role, "content": text}
            for (asked, answered), _ in rest
            for role, text in (("user", asked), ("assistant", answered))
        ]
        prelude = ({"role": "system", "content": self._system}, *said)
        day = date(2026, 1, 1) + timedelta(days=len(self.stored) // TURNS_A_DAY)
        items = (
            ContextItem(kind="date", key="date", text=f"Today is {day:%A}, {day.isoformat()}."),
            ContextItem(kind="fact", key="name", text=f"name: {USER.title()} (said 2025-11-02)"),
            ContextItem(kind="fact", key="home", text="home: Bristol (said 2025-11-02)"),
        )
        context = Context(items, frozenset({"fact"}))
        sent = [text for _, text in rest]
        return PromptParts.beginning(prelude, question, summary, context=context, sent=sent)

    async def _call(self, parts: PromptParts) -> tuple[Plan, PromptParts, bool]:
        """A prompt, and whether it keeps the one before."""
        planned, newer = await self.window.fit(replace(parts, tools=self._tools), self._summarise, self._keep)
        text = _text(planned.messages, planned.tools)
        if (tokens := count(text)) > self.size:
            raise BenchmarkFailed(f"a prompt of {tokens} tokens does not fit into {self.size}")
        self.window.counted(planned, tokens)
        same = _common(self._before, text)
        is_kept = bool(self._before) and same >= KEPT * len(self._before)
        self.read_again += len(text) - same
        self._before = text
        return planned, newer, is_kept

    def _cut(self, question: str) -> None:
        """The prompt of the baseline."""
        room = self.window.limits.room * CHARS_PER_TOKEN
        first, last = _text([{"role": "system", "content": self._system}], self._tools), _line("user", question)
        room -= len(first) + len(last)
        turns: list[str] = []
        for (asked, answered), _ in reversed(self.stored):
            turn = _line("user", asked) + _line("assistant", answered)
            room -= len(turn)
            if room < 0:
                break
            turns.insert(0, turn)
        text = "".join((first, *turns, last))
        self.cut_again += len(text) - _common(self._before_cut, text)
        self._before_cut = text

    async def _summarise(self, job: SummaryJob) -> str:
        self.calls += 1
        self.waits += job.urgent
        asked = [str(exchange.plain[0].get("content")) for exchange in job.exchanges]
        facts = [each for text in asked for each in _stated(text)[-FACTS_A_TURN:]]
        words = (" ".join(asked).split() * STORY_WORDS)[:STORY_WORDS]
        story = f"Up to turn {job.exchanges[-1].position} they spoke of {' '.join(words)}."
        told = [f"- {fact}" for fact in facts]
        while told and count("\n".join([*told, story])) > job.max_tokens:
            told.pop()
        return "\n".join(["FACTS", *told, "SUMMARY", story])

    async def _keep(self, summary: Summary) -> None:
        self.summary = summary.as_json()


def _stated(text: str) -> list[str]:
    return [each for each in re.split(r"(?<=[.!?])\s+", text) if not each.endswith("?")]


def _schema(tool: type[Tool]) -> ToolSchema:
    """What a tool tells of itself, without building it."""
    return ToolSchema(
        tool=tool.name, description=inspect.cleandoc(tool.__doc__ or ""), parameters=tool.arguments().schema,
        effect=tool.effect, safety=tool.safety, category=tool.category,
    )  # fmt: skip


def _with_page(parts: PromptParts, number: int) -> PromptParts:
    call = {
        "id": f"c{number}",
        "function": {"name": "web_fetch", "arguments": {"url": f"https://page{number}.example/"}},
    }
    page = " ".join(f"Sentence {index} of page {number} tells of the weather at the coast." for index in range(60))
    steps = (
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_name": "web_fetch", "tool_call_id": call["id"], "content": page[:PAGE_CHARACTERS]},
    )
    return replace(parts, steps=(*parts.steps, *steps))


def _text(messages: Sequence[Json], tools: Sequence[Json]) -> str:
    """A prompt as a template would write it."""
    lines = (
        _line(str(each.get("role")), json.dumps(each.get("tool_calls") or "") + str(each.get("content")))
        if each.get("tool_calls")
        else _line(str(each.get("role")), str(each.get("content")))
        for each in messages
    )
    return "".join((*map(json.dumps, tools), *lines))


def _line(role: str, content: str) -> str:
    return f"<|{role}|>\n{content}\n"


def _common(one: str, other: str) -> int:
    """How many characters the two begin with alike."""
    return len(os.path.commonprefix([one, other]))  # noqa: RUF071 - texts, not paths


def _ours() -> list[Said]:
    """The exchanges that were written by hand, with answers as long as a model's."""
    random, written = Random(1), read_conversations().exchanges
    said: list[Said] = []
    for index in range(TURNS):
        exchange = written[index % len(written)]
        answer, wanted = exchange.answer, random.randint(*ANSWER_CHARACTERS)
        while len(answer) < wanted:
            answer = f"{answer} {written[random.randrange(len(written))].answer}"
        said.append((exchange.query, answer))
    return said


def read_talk(path: Path) -> list[Said]:
    """A conversation of a file: a JSON list of the texts of two who take turns."""
    try:
        texts = json.loads(path.read_text(encoding="utf-8"))
        lines = [" ".join(text.split()) for text in texts]
        said = list(zip(lines[::2], lines[1::2], strict=False))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BenchmarkFailed(f"{path} is no conversation ({error}); expected a JSON list of texts") from None
    if len(said) < max(KEY_FACTS):
        raise BenchmarkFailed(f"{path} has {len(said)} exchanges; expected {max(KEY_FACTS)} at least")
    return said
