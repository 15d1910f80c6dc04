"""120 turns and 24 long tool results on a window of 4,096 tokens, against the stand-in's own counting and rules."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from local.generator.context import Exchange, Limits, PromptParts, Summary, SummaryJob
from local.generator.fitting import ContextWindow, Plan
from local.stand_in import rules as brain
from local.stand_in.rules import read
from local.stand_in.server import FittedPrompt, count, fit

WINDOW = 4096
SYSTEM = ({"role": "system", "content": "You are an assistant. Answer briefly and name your sources. " * 4},)
SEARCH = {
    "type": "function",
    "function": {
        "name": "archive",
        "description": "Look something up in the archive of lighthouses.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
}
ARTICLE = "\n\n".join(
    f"Chapter {number}. The keepers of this lamp wrote down wind and weather." for number in range(160)
)


class Server:
    """Counts as Ollama does, and cuts nothing: what does not fit would be a refusal."""

    def __init__(self) -> None:
        self.longest = 0

    def serve(self, messages: tuple[Any, ...], tools: tuple[Any, ...] = (), answer: int = 0) -> FittedPrompt:
        prompt = fit(messages, tools, WINDOW, truncate=False)
        assert prompt.messages == messages
        assert prompt.tokens + answer <= WINDOW
        self.longest = max(self.longest, prompt.tokens)
        return prompt


@dataclass
class Session:
    """A generator's loop around the window: what is not kept in `summary` and `exchanges` is lost."""

    server: Server = field(default_factory=Server)
    window: ContextWindow = field(default_factory=lambda: ContextWindow(Limits(WINDOW)))
    summary: Summary = field(default_factory=Summary)
    exchanges: tuple[Exchange, ...] = ()
    turns: int = 0
    results: int = 0
    summaries: int = 0
    masked: int = 0

    async def ask(self, question: str, rounds: int = 0) -> str:
        """One turn with so many rounds of one long tool result each; returns the answer."""
        self.turns += 1
        parts = PromptParts(SYSTEM, {"role": "user", "content": question}, (SEARCH,), self.exchanges, (), self.summary)
        for number in range(rounds):
            _, parts = await self._call(parts)
            parts = replace(parts, steps=(*parts.steps, *self._looked_up(f"lamp {self.turns}.{number}")))
        planned, parts = await self._call(parts)
        assert not rounds or f"was lit in {1800 + self.turns}." in planned.messages[-1]["content"]
        answer = brain.reply(read(planned.messages, ())).content
        self.server.serve(planned.messages, planned.tools, count(answer))
        better = await self.window.summarised(planned, parts, self._summarise, self._keep)  # in the background
        parts = parts if better is None else better[1]
        said = (parts.question, {"role": "assistant", "content": answer})
        self.exchanges = (*parts.exchanges, Exchange(self.turns, said))
        return answer

    def restart(self) -> None:
        """Another process, which has the store alone."""
        self.window = ContextWindow(Limits(WINDOW))
        self.summary = Summary.from_json(self.summary.as_json())

    async def _call(self, parts: PromptParts) -> tuple[Plan, PromptParts]:
        planned, parts = await self.window.fit(parts, self._summarise, self._keep)
        self.window.counted(planned, self.server.serve(planned.messages, planned.tools).tokens)
        self.masked += planned.masked
        assert planned.left_out == 0
        return planned, parts

    def _looked_up(self, query: str) -> list[dict[str, Any]]:
        self.results += 1
        call = {"id": query, "function": {"name": "archive", "arguments": {"query": query}}}
        result = f"On {query}\n\n{ARTICLE}\n\nThe {query} was lit in {1800 + self.turns}.\n\n{ARTICLE}"
        return [
            {"role": "assistant", "content": "", "thinking": "I look it up. " * 20, "tool_calls": [call]},
            {"role": "tool", "tool_name": "archive", "tool_call_id": query, "content": result},
        ]

    async def _summarise(self, job: SummaryJob) -> str:
        """A model with a bad memory: of the summary so far it tells nothing on."""
        self.server.serve(job.messages, (), job.max_tokens)
        self.summaries += 1
        _, new = job.messages[1]["content"].split("New turns:\n")
        facts = re.findall(r"^User: My (.*)$", new, re.M)
        return "\n".join(["FACTS", *(f"- The user's {fact}" for fact in facts), "SUMMARY", "They spoke of lamps."])

    async def _keep(self, summary: Summary) -> None:
        self.summary = summary


@pytest.mark.thorough
async def test_a_long_conversation_never_exceeds_the_window_and_forgets_nothing_that_was_stated() -> None:
    session = Session()
    await session.ask("My dog is called Rex Bramble.")
    for number in range(2, 120):
        if number % 19 == 0:
            await session.ask(f"When was lamp {number} lit?", rounds=4)
        else:
            await session.ask(f"Tell me a thing about gull number {number}, and about the sea.")
        if number % 60 == 0:
            session.restart()
    answer = await session.ask("What is my dog called?")
    assert "Rex Bramble" in answer
    assert (session.turns, session.results) == (120, 24)
    assert session.summaries >= 5
    assert session.masked > 0
    assert WINDOW // 2 < session.server.longest <= Limits(WINDOW).room
