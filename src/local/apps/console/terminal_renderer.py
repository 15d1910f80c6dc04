"""A query shown on a terminal: finished blocks are printed once, and below them a few lines tell what happens now."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Literal

from rich.cells import cell_len

from local.apps.console.block_style import BlockStyle, clean
from local.apps.console.live_area import MAX_LINES, LiveArea, fitted
from local.apps.console.markdown_blocks import Block, MarkdownBlocks
from local.apps.console.query_progress import QueryProgress
from local.apps.console.renderer import Renderer, call_lines, call_text, context_line
from local.apps.system_client import StreamEvent

Json = dict[str, Any]
Thinking = Literal["show", "fold", "hide"]
TICK_SECONDS = 0.1
OUTPUT_LINES = 2  # of a running command
LONG_PARAGRAPH = MAX_LINES - 2  # lines; of a longer one the beginning is printed while it goes on
MARKS = set("*_`[]<>|~&\\")  # what may change how a paragraph's beginning looks, once more of it is there
_NO_PARAGRAPH = re.compile(r"\s*([-+#=]|\d+[.)])|    ")
WHEEL = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class TerminalRenderer(Renderer):
    """Writes by `write` to a terminal of `width()` columns."""

    def __init__(
        self, write: Callable[[str], object], width: Callable[[], int], style: BlockStyle, *,
        thinking: Thinking = "fold", quiet: bool = False, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._width, self._style, self._thinking, self._quiet, self._clock = width, style, thinking, quiet, clock
        self._area = LiveArea(write)
        self._blocks = MarkdownBlocks()
        self._fed = ""  # of what is said since the last call
        self._thought = 0  # characters of the thinking that are printed
        self._began = self._thinking_since = clock()
        self._is_thinking = False
        self._shown_at = -1.0

    def receive(self, event: StreamEvent, progress: QueryProgress) -> None:
        if event.name == "thinking" and not self._is_thinking:
            self._is_thinking, self._thinking_since = True, self._clock()
        elif event.name in ("token", "tool_call", "response", "error"):
            self._tell_thinking(progress)
        if event.name in ("token", "snapshot"):
            self._say(progress.said)
        elif event.name == "context":
            if line := context_line(event.data):
                self._tell(f"⚙ {line}")
        elif event.name == "tool_call":
            self._end_of_text()
        elif event.name == "tool_result":
            head, *rest = call_lines(progress, progress.calls[event.data["call_id"]])
            self._tell(f"⚙ {head}")
            for line in rest:
                self._tell(line)
        elif event.name == "response":
            self._finish(event.data, progress)
            return
        self.tick(progress)

    def tick(self, progress: QueryProgress) -> None:
        now = self._clock()
        if now - self._shown_at < TICK_SECONDS or progress.end is not None:
            return
        self._shown_at = now
        width = self._width()
        self._flush_paragraph(width)
        rest = clean(self._blocks.rest).split("\n") if self._blocks.rest.strip() else []
        shown = [piece for line in rest for piece in _wrapped(line, width)][-(MAX_LINES - 1) :]
        if not self._quiet:
            shown += [self._style.dim(fitted(f"  {line}", width)) for line in _last_lines(progress)]
        status = "" if self._quiet else self._style.dim(fitted(self._status(progress, now), width))
        self._area.show([*shown, *([status] if status else [])], width)

    def close(self) -> None:
        self._area.close()

    def tell(self, line: str, *, alarm: bool = False) -> None:
        """A line of our own below what was said."""
        paint = self._style.alarm if alarm else self._style.dim
        self._area.print("".join(f"{paint(piece)}\n" for piece in _wrapped(line, self._width())))

    def _tell(self, line: str) -> None:
        if not self._quiet:
            self.tell(line)

    def _say(self, said: str) -> None:
        if not said.startswith(self._fed):  # a process has died, and its successor says it in other words
            self._end_of_text()
            self._tell("… the answer begins again")
        self._print(self._blocks.feed(said[len(self._fed) :]))
        self._fed = said

    def _end_of_text(self) -> None:
        self._print(self._blocks.close())
        self._blocks, self._fed = MarkdownBlocks(), ""

    def _print(self, blocks: list[Block]) -> None:
        if blocks:
            self._area.print("".join(self._style.block(block, self._width()) for block in blocks))

    def _flush_paragraph(self, width: int) -> None:
        rest = self._blocks.rest
        if "\n" in rest or MARKS & set(rest) or _NO_PARAGRAPH.match(rest):
            return
        lines = _wrapped(rest, width + 1)
        if len(lines) > LONG_PARAGRAPH:
            self._print([self._blocks.take(len(rest) - len(lines[-1]))])

    def _tell_thinking(self, progress: QueryProgress) -> None:
        if not self._is_thinking:
            return
        self._is_thinking = False
        if self._thinking == "show" and not self._quiet:
            self._tell(clean(progress.thinking[self._thought :]))
            self._thought = len(progress.thinking)
        elif self._thinking == "fold":
            self._tell(f"▸ thought for {self._clock() - self._thinking_since:.1f} s")

    def _status(self, progress: QueryProgress, now: float) -> str:
        wheel = WHEEL[int(now / TICK_SECONDS) % len(WHEEL)]
        return f"{wheel} {self._doing(progress)} · {now - self._began:.0f} s"

    def _doing(self, progress: QueryProgress) -> str:
        if progress.waiting:
            return clean(progress.waiting)
        if progress.reading:
            return progress.reading
        if calls := progress.open_calls:
            return ", ".join(call_text(call) for call in calls)
        if self._is_thinking:
            return "thinking"
        return "answering" if progress.said else "waiting for the model"

    def _finish(self, answer: Json, progress: QueryProgress) -> None:
        said = answer["answer"]
        if said != progress.before + progress.said and said != progress.said:
            self._say(said)
        self._end_of_text()
        for sentence in answer.get("degraded", ()):
            self.tell(f"! {clean(sentence)}")
        if answer["status"] == "cancelled":
            self.tell("■ stopped")
        self._tell(f"\n{self._facts(answer)}")

    def _facts(self, answer: Json) -> str:
        usage, seconds = answer.get("usage") or {}, self._clock() - self._began
        tokens, context = usage.get("completion_tokens"), usage.get("context") or {}
        parts = [str(answer.get("model") or ""), f"{seconds:.1f} s"]
        if tokens:
            parts.append(f"{tokens} tokens")
        if context.get("limit"):
            parts.append(f"{context['used']} of {context['limit']} in the window")
        totals = usage.get("totals") or {}
        if totals.get("steps", 0) > 1:
            parts.append("{steps} of {max_steps} steps, {calls} of {max_calls} calls".format_map(totals))
        return clean(" · ".join(part for part in parts if part))


def _wrapped(line: str, width: int) -> list[str]:
    """A line as a terminal of that width would show it, broken at spaces, with the last column free."""
    pieces = []
    while len(head := _head(line, max(1, width - 1))) < len(line):
        pieces.append(head.rstrip())
        line = line[len(head) :]
    return [*pieces, line]


def _head(line: str, width: int) -> str:
    """The longest beginning that fits, up to and with a space if there is one."""
    columns = end = 0
    for index, char in enumerate(line):
        if char == " ":
            end = index + 1
        columns += cell_len(char)
        if columns > width and char != " ":
            return line[: end or max(1, index)]
    return line


def _last_lines(progress: QueryProgress) -> list[str]:
    """Of what the call that was made last and is not done has written."""
    written = [text for call in progress.open_calls if (text := progress.output_of(call["call_id"]))]
    lines = [clean(line) for line in written[-1].splitlines() if line.strip()] if written else []
    return lines[-OUTPUT_LINES:]
