"""The display of a query on a terminal: finished blocks are printed once, and a few lines below them show the
progress.
"""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.markdown import Markdown
from rich.syntax import Syntax
from rich.text import Text

from local.cli.client import StreamEvent
from local.cli.main import visible
from local.cli.renderer import QueryProgress, Renderer, call_lines, call_text, context_line

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


# Markdown that comes in fragments, cut into finished blocks: printed text never changes again.

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*")


@dataclass(frozen=True, slots=True)
class Block:
    """Finished Markdown. One that `continues` is directly below the one before: a further item of its list, a further
    line of its code. `language` is that of a line of code, None for everything else.
    """

    source: str
    continues: bool = False
    language: str | None = None


class MarkdownBlocks:
    """A splitter that turns Markdown fragments into finished blocks. Each character of the text is in one block,
    except blank lines between blocks and the fences of code.
    """

    def __init__(self) -> None:
        self._rest = ""
        self._fence = ""  # the mark that closes the code we are in
        self._language = ""
        self._in_list = self._in_code = self._in_paragraph = False  # the kind of the last block

    @property
    def rest(self) -> str:
        """Return the text that is in no block yet."""
        return self._rest

    def feed(self, fragment: str) -> list[Block]:
        """Add a fragment; returns the blocks that it completes."""
        self._rest += fragment
        if "\n" not in fragment:
            return []
        finished: list[Block] = []
        while block := self._code_line() if self._fence else self._next_finished():
            finished.append(block)
        return [block for block in finished if block.source or block.language is not None]

    def take(self, characters: int) -> Block:
        """Finish the beginning of a paragraph that is still incomplete."""
        block = Block(self._rest[:characters].strip(), self._in_paragraph)
        self._rest, self._in_paragraph = self._rest[characters:].lstrip(), True
        return block

    def close(self) -> list[Block]:
        """End the text; returns the remaining blocks."""
        blocks = self.feed("\n")
        rest, self._rest = self._rest, ""
        if self._fence:
            return [*blocks, *([Block(rest, self._in_code, self._language)] if rest else [])]
        return [*blocks, *([Block(rest.rstrip(), self._in_list or self._in_paragraph)] if rest.strip() else [])]

    def _code_line(self) -> Block | None:
        line, end, rest = self._rest.partition("\n")
        if not end:
            return None
        self._rest = rest
        stripped = line.strip()
        if stripped.startswith(self._fence) and not stripped.strip(self._fence[0]):
            self._fence, self._in_code = "", False
            return Block("", True)  # the mark, which is not visible
        block, self._in_code = Block(line, self._in_code, self._language), True
        return block

    def _next_finished(self) -> Block | None:
        whole_lines = self._rest[: self._rest.rfind("\n") + 1]
        first, opening = self._blank(whole_lines)
        if opening:
            self._rest = self._rest[first:]
            return self._enter_code()
        starts = _starts(whole_lines[first:])
        if len(starts) < 2:
            return None
        lines = whole_lines[first:].splitlines(keepends=True)
        (_, is_item), (end, is_next_item) = starts[0], starts[1]
        source = "".join(lines[:end])
        block = Block(source.rstrip(), self._in_paragraph or (self._in_list and is_item))
        self._in_list, self._in_paragraph = is_item and is_next_item, False
        self._rest = self._rest[first + len(source) :]
        return block

    def _blank(self, text: str) -> tuple[int, bool]:
        """Return the number of characters of blank lines at the beginning, and whether code begins after them."""
        first = 0
        for line in text.splitlines(keepends=True):
            if line.strip():
                return first, _FENCE.fullmatch(line.rstrip("\n")) is not None
            first += len(line)
        return first, False

    def _enter_code(self) -> Block:
        line, _, self._rest = self._rest.partition("\n")
        found = _FENCE.fullmatch(line)
        assert found is not None
        self._fence, self._language = found[1], found[2]
        self._in_list = self._in_paragraph = False
        return Block("", True)


def _starts(text: str) -> list[tuple[int, bool]]:
    """The lines at which the blocks of a text begin, and whether each is an item of a list."""
    found: list[tuple[int, bool]] = []
    for token in parser().parse(text):
        if token.map is not None and _is_block(token):
            found.append((token.map[0], token.type == "list_item_open"))
    return found


def _is_block(token: Token) -> bool:
    if token.type == "list_item_open":
        return token.level == 1
    return token.level == 0 and token.nesting >= 0 and token.type not in ("bullet_list_open", "ordered_list_open")


@cache
def parser() -> MarkdownIt:
    """Return the parser that both splits and prints Markdown. HTML is treated as text."""
    from markdown_it import MarkdownIt  # only where there is something to print with it

    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


# Finished blocks of Markdown as lines for a terminal.

CODE_THEME = "ansi_dark"  # the terminal's own colours, which fit its background
JOINS_CHARACTERS = {"\u200c", "\u200d"}  # parts of emoji and of some scripts


class BlockStyle:
    """The style of printed blocks: lines of at most `width` columns, with line ends; without escapes if `colour` is
    False."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour

    def block(self, block: Block, width: int) -> str:
        """A block, with the blank line that separates it from the text above."""
        source = clean(block.source)
        if block.language is None:
            body = self._rendered(_markdown(source), width)
        else:
            body = self._rendered(_code(source, block.language), width)
        return body if block.continues else f"\n{body}"

    def dim(self, line: str) -> str:
        """A line that stays in the background."""
        return f"\x1b[2m{line}\x1b[22m" if self._colour else line

    def alarm(self, line: str) -> str:
        """Return a line that reports a problem."""
        return f"\x1b[31m{line}\x1b[39m" if self._colour else line

    def _rendered(self, what: Markdown | Text, width: int) -> str:
        out = io.StringIO()
        Console(
            file=out, width=max(width, 4), force_terminal=self._colour, no_color=not self._colour, legacy_windows=False,
            color_system="standard" if self._colour else None, highlight=False, emoji=False, _environ={},
        ).print(what, crop=False, overflow="fold", no_wrap=False)  # fmt: skip
        return "".join(f"{line.rstrip()}\n" for line in out.getvalue().rstrip("\n").split("\n"))


def clean(text: str) -> str:
    """Text without control characters, which would be orders to the terminal: they show as `\\x1b`. Direction marks
    are such orders, too."""
    if text.isprintable():
        return text
    shown = (char if _is_harmless(char) else char.encode("unicode_escape").decode() for char in text)
    return "".join(shown)


def _is_harmless(char: str) -> bool:
    return char.isprintable() or char in "\n\t" or char in JOINS_CHARACTERS or (char.isspace() and ord(char) > 0x7F)


def _markdown(source: str) -> Markdown:
    made = Markdown("", hyperlinks=False, code_theme=CODE_THEME, inline_code_lexer=None)
    made.markup = source
    made.parsed = parser().parse(source)
    return made


def _code(line: str, language: str) -> Text:
    text = Syntax("", language or "text", theme=CODE_THEME).highlight(line)
    text.rstrip()
    return Text("  ").append_text(text)


# The last lines of the output, which still change: everything above them never changes again.

MAX_LINES = 6
_ERASE_BELOW = "\r\x1b[J"
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


class LiveArea:
    """The lines at the end of a terminal that are redrawn, written by `write`. The cursor rests at the beginning of
    the area: whatever a resize does to its lines, they are below the cursor, and are erased without being counted.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._shown: tuple[Sequence[str], int] = ((), 0)

    def show(self, lines: Sequence[str], width: int) -> None:
        """Show these lines, the last ones if there are too many, each cut to the width; without line ends or escapes
        but those for colours, which no line is longer by."""
        if (lines, width) == self._shown:
            return
        self._shown = (lines, width)
        body = "\r\n".join(lines[-MAX_LINES:])
        up = min(len(lines), MAX_LINES) - 1
        back = f"\x1b[{up}A\r" if up > 0 else "\r"
        self._write(f"{_HIDE_CURSOR}{_ERASE_BELOW}{body}{back}" if lines else f"{_ERASE_BELOW}{_SHOW_CURSOR}")

    def print(self, text: str) -> None:
        """Print finished lines, each with its end, above the area, which is empty then."""
        self._shown = ((), 0)
        self._write(f"{_ERASE_BELOW}{text}")

    def close(self) -> None:
        """Leave nothing of the area behind."""
        self._shown = ((), 0)
        self._write(f"{_ERASE_BELOW}{_SHOW_CURSOR}")


def fitted(text: str, width: int) -> str:
    """Return a line of text that takes fewer columns than the terminal has, with an ellipsis where it was cut: some
    terminals wrap after a character in the last column.
    """
    room = max(1, width - 1)
    return text if cell_len(text) <= room else set_cell_size(text, room - 1).rstrip() + "…"


Json = dict[str, Any]
Thinking = Literal["show", "fold", "hide"]
TICK_SECONDS = 0.1
OUTPUT_LINES = 2  # of a running command
LONG_PARAGRAPH = MAX_LINES - 2  # lines; the beginning of a longer one is printed before its end
MARKS = set("*_`[]<>|~&\\")  # characters that may change how a paragraph's beginning looks, once more of it is there
_NO_PARAGRAPH = re.compile(r"\s*([-+#=]|\d+[.)])|    ")
WHEEL = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class TerminalRenderer(Renderer):
    """The renderer for a terminal of `width()` columns; `write` writes to it."""

    def __init__(
        self, write: Callable[[str], object], width: Callable[[], int], style: BlockStyle, *,
        thinking: Thinking = "fold", quiet: bool = False, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._width, self._style, self._thinking, self._quiet, self._clock = width, style, thinking, quiet, clock
        self._area = LiveArea(write)
        self._blocks = MarkdownBlocks()
        self._fed = ""  # the text since the last call
        self._thought = 0  # characters of the thinking that are printed
        self._began = self._thinking_since = clock()
        self._is_thinking = False
        self._shown_at = -1.0

    def receive(self, event: StreamEvent, progress: QueryProgress) -> None:
        if event.name == "thinking" and not self._is_thinking:
            self._is_thinking, self._thinking_since = True, self._clock()
        elif event.name in ("token", "tool_call", "response", "error"):
            self._show_thinking(progress)
        if event.name in ("token", "snapshot"):
            self._show_text(progress.said)
        elif event.name == "context":
            if line := context_line(event.data):
                self._note(f"⚙ {line}")
        elif event.name == "tool_call":
            self._end_of_text()
        elif event.name == "tool_result":
            head, *rest = call_lines(progress, progress.calls[event.data["call_id"]])
            self._note(f"⚙ {head}")
            for line in rest:
                self._note(line)
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

    def print_note(self, line: str, *, alarm: bool = False) -> None:
        """Print a line of the program below the text."""
        paint = self._style.alarm if alarm else self._style.dim
        self._area.print("".join(f"{paint(piece)}\n" for piece in _wrapped(line, self._width())))

    def _note(self, line: str) -> None:
        if not self._quiet:
            self.print_note(line)

    def _show_text(self, said: str, *, is_whole: bool = False) -> None:
        """Print what is new in the text since the last call. After a process has died, the text may come once more from
        its beginning; what is already shown of it is not printed again.
        """
        if self._fed.startswith(said) and not is_whole:
            return
        if not said.startswith(self._fed):  # the successor words it differently
            self._end_of_text()
            self._note("… the answer starts again")
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

    def _show_thinking(self, progress: QueryProgress) -> None:
        if not self._is_thinking:
            return
        self._is_thinking = False
        if self._thinking == "show" and not self._quiet:
            self._note(clean(progress.thinking[self._thought :]))
            self._thought = len(progress.thinking)
        elif self._thinking == "fold":
            self._note(f"▸ thought for {self._clock() - self._thinking_since:.1f} s")

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
        is_shown = said in (progress.before + progress.said, progress.said) and progress.said.startswith(self._fed)
        if not is_shown:
            self._show_text(said, is_whole=True)
        self._end_of_text()
        for sentence in answer.get("degraded", ()):
            self.print_note(f"! {clean(sentence)}")
        if answer["status"] == "cancelled":
            self.print_note("■ stopped")
        self._note(f"\n{self._facts(answer)}")

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
    """Return a line as a terminal of that width would show it, broken at spaces, with the last column free."""
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
    """Return the last output lines of the latest running call."""
    written = [text for call in progress.open_calls if (text := progress.output_of(call["call_id"]))]
    lines = [clean(line) for line in written[-1].splitlines() if line.strip()] if written else []
    return lines[-OUTPUT_LINES:]


# A query shown with every step to its answer: thinking, whole calls and results, states, costs.

_AFTER_THINKING = ("token", "tool_call", "response", "error")


class VerboseRenderer(Renderer):
    """A renderer that wraps another one and prints, with `print_note`, the lines that it omits. Events in the middle of
    a text are printed after it.
    """

    def __init__(self, renderer: Renderer, print_note: Callable[[str], object]) -> None:
        self._renderer, self._note = renderer, print_note
        self._thought = 0  # characters of the thinking that were printed
        self._held: list[str] = []

    def receive(self, event: StreamEvent, progress: QueryProgress) -> None:
        if event.name in _AFTER_THINKING:
            self._print_all(_indented("thinks", progress.thinking[self._thought :].strip()))
            self._thought = len(progress.thinking)
        self._held += _LINES.get(event.name, _no_lines)(event.data)
        self._renderer.receive(event, progress)
        if not progress.said or progress.end is not None:
            self._print_all(self._held)
            self._held = []

    def tick(self, progress: QueryProgress) -> None:
        self._renderer.tick(progress)

    def close(self) -> None:
        self._renderer.close()
        self._print_all(self._held)

    def _print_all(self, lines: list[str]) -> None:
        for line in lines:
            self._note(visible(line))


def _accepted(data: Json) -> list[str]:
    return [f"query {data['query_id']} in conversation {data.get('session_id')}, attempt {data['attempt']}"]


def _state(data: Json) -> list[str]:
    changes = [data, *data.get("then", ())]  # which follow each other at once
    return [f"{data['from']} → " + " → ".join(f"{each['to']} ({each['action']})" for each in changes)]


def _context(data: Json) -> list[str]:
    facts = [f"  known about you: {fact}" for fact in data.get("facts") or ()]
    recalled = [f"  recalled engram:{each['engram_id']}: {each['query']}" for each in data.get("recalled") or ()]
    return ["from the memory:", *facts, *recalled] if facts or recalled else []


def _call(data: Json) -> list[str]:
    return [f"calls {data['tool']} {json.dumps(data['args'], ensure_ascii=False)}"]


def _result(data: Json) -> list[str]:
    sources = [f"  source: {source}" for source in data.get("sources") or ()]
    return [*_indented("gave", data.get("result") or ""), *sources]


def _response(data: Json) -> list[str]:
    return list(_costs(data.get("usage") or {}))


def _costs(usage: Json) -> Iterator[str]:
    for step in usage.get("steps") or ():
        tokens = f"{step['prompt_tokens']} → {step['completion_tokens']} tokens"
        first = f", first word after {step['first_token'] - step['started']:.2f} s" if step["first_token"] else ""
        yield f"asked {step['model']}: {tokens}, {step['ended'] - step['started']:.2f} s{first}"
    parts = (usage.get("context") or {}).get("parts") or {}
    if parts:
        yield "in the window: " + ", ".join(f"{name} {tokens}" for name, tokens in parts.items() if tokens)


def _indented(what: str, text: str) -> list[str]:
    return [f"{what}:", *(f"  {line}" for line in text.splitlines())] if text else []


def _no_lines(data: Json) -> list[str]:
    return []


_LINES: dict[str, Callable[[Json], list[str]]] = {
    "accepted": _accepted,
    "state": _state,
    "context": _context,
    "tool_call": _call,
    "tool_result": _result,
    "response": _response,
}


# How the time of one query was spent, drawn in text: `local2 trace` and `/why`.

COLUMNS = 28  # of the bars
_ON_PATH, _BESIDE, _GOES_ON = "█", "░", "…"


def waterfall(trace: Json) -> Iterator[str]:
    """Return a line for each span of the result of `GET /query/{id}/trace`, the earliest first, and their sums. Bars
    are full where the answer had to wait.
    """
    spans = trace["spans"]
    if not spans:
        yield "no messages of it are in the journal any more"
        return
    start = spans[0]["started"]
    end = max([start, *(each["ended"] or each["started"] for each in spans)])
    answered = spans[0]["ended"]
    yield f"query {visible(trace['query_id'])}: {f'{answered - start:.3f} s' if answered else 'not ended'}"
    for attempt in trace["attempts"][1:]:
        why = visible(attempt["reason"] or "")
        yield f"{attempt['started'] - start:8.3f} s  attempt {attempt['attempt']} began: {why}"
    path = set(trace["critical_path"])
    inner = {each["id"] for each in spans if each["parent"] not in (None, spans[0]["id"])}
    for span in spans[1:]:
        yield _line(span, start, end - start, is_on_path=span["id"] in path, is_inner=span["id"] in inner)
    yield " · ".join(f"{kind} {seconds:.3f} s" for kind, seconds in _longest_first(trace["self_time"]))
    if not trace["complete"]:
        yield "some messages are missing, or still to come"


def _line(span: Json, start: float, whole: float, *, is_on_path: bool, is_inner: bool) -> str:
    began, ended = span["started"] - start, (span["ended"] or start + whole) - start
    took = f"{ended - began:8.3f} s" if span["ended"] else "       … s"
    name = f"{'  ' if is_inner else ''}{span['kind']} {span['name']}"
    bar = _bar(began, ended, whole, is_on_path, span["ended"] is None)
    return visible(f"{began:8.3f} s {took}  {bar}  {name}{_detail(span)}")


def _bar(began: float, ended: float, whole: float, is_on_path: bool, goes_on: bool) -> str:
    if whole <= 0:
        return " " * COLUMNS
    first = min(COLUMNS - 1, int(began / whole * COLUMNS))
    last = min(COLUMNS, max(first + 1, round(ended / whole * COLUMNS)))
    drawn = (_ON_PATH if is_on_path else _BESIDE) * (last - first)
    return (" " * first + (drawn[:-1] + _GOES_ON if goes_on else drawn)).ljust(COLUMNS)


def _detail(span: Json) -> str:
    detail = span["detail"]
    told = []
    if detail.get("first_token"):
        told.append(f"first word after {detail['first_token'] - span['started']:.3f} s")
    if detail.get("prompt_tokens"):
        told.append(f"{detail['prompt_tokens']} → {detail['completion_tokens']} tokens")
    if detail.get("cut_off"):
        told.append("cut off")
    if detail.get("error"):
        told.append(f"failed: {detail['error']['message']}")
    if detail.get("score") is not None:
        told.append(f"score {detail['score']}")
    if span["attempt"] > 1:
        told.append(f"attempt {span['attempt']}")
    return f" ({', '.join(told)})" if told else ""


def _longest_first(seconds: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])
