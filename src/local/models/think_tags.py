"""Thinking that leaks into the content between tags, told apart from the answer while it streams. No I/O."""

from __future__ import annotations

from local.models.chat import ContentDelta, ThinkingDelta

Piece = ThinkingDelta | ContentDelta

# What opens a block of thinking, and what closes it; an empty close marks a token that is only dropped.
_TAGS = {
    # Qwen, DeepSeek and most others
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    # Gemma 4: the first line names the channel
    "<|channel>": "<channel|>",
    "<|channel>thought": "<channel|>",
    "<|channel>thought\n": "<channel|>",
    # gpt-oss (harmony)
    "<|channel|>analysis<|message|>": "<|end|>",
    "<|channel|>final<|message|>": "",
    "<|start|>assistant": "",
}
_LONGEST_FIRST = sorted(_TAGS, key=len, reverse=True)


class ThinkTagSplitter:
    """Takes content in pieces of any size, gives back the same text as thinking and content.

    Held back is only what may still become a tag, so "a < b" passes at once. After an odd number of backticks the text
    is code and is left alone. A block that opens within an answer and never closes was no thinking but an answer that
    mentions the tag: `close()` gives it again, as content, so that nothing of an answer is lost.
    """

    def __init__(self) -> None:
        self._held = ""  # the beginning of what may become a tag
        self._closing = ""  # the tag that ends the block of thinking we are in
        self._unclosed: list[str] = []  # that block, if it opened within an answer
        self._backticks = 0
        self._answering = False  # visible content has been seen
        self._trimming = False  # a block has closed and only white space has come since

    def feed(self, text: str) -> list[Piece]:
        """The pieces that are certain once `text` is there."""
        pieces: list[Piece] = []
        if "<" not in text and not (self._held or self._closing):
            self._backticks += text.count("`")
            self._say(text, pieces)
        else:
            self._split(text, pieces, final=False)
        return pieces

    def close(self) -> list[Piece]:
        """What was held back. Call it once, at the end of the content."""
        pieces: list[Piece] = []
        self._split("", pieces, final=True)
        if self._closing and self._unclosed:
            pieces.append(ContentDelta("".join(self._unclosed)))
        return pieces

    def _split(self, text: str, pieces: list[Piece], *, final: bool) -> None:
        text, self._held = self._held + text, ""
        at = 0
        while at < len(text):
            step = self._in_thinking if self._closing else self._in_content
            at = step(text, at, pieces, final)

    def _in_thinking(self, text: str, at: int, pieces: list[Piece], final: bool) -> int:
        closing = self._closing
        end = text.find(closing, at)
        if end < 0:
            stop = len(text) if final else len(text) - _overlap(text, closing)
            self._think(text[at:stop], pieces)
            self._held = text[stop:]
            return len(text)
        self._think(text[at:end], pieces)
        self._closing = ""
        self._trimming = not self._answering
        return end + len(closing)

    def _in_content(self, text: str, at: int, pieces: list[Piece], final: bool) -> int:
        end, tag = self._next_tag(text, at, final)
        self._say(text[at:end], pieces)
        if not tag:
            self._held = text[end:]
            return len(text)
        self._closing = _TAGS[tag]
        self._unclosed = [tag] if self._answering else []
        return end + len(tag)

    def _next_tag(self, text: str, at: int, final: bool) -> tuple[int, str]:
        """Where the content stops: at the tag returned, or (with no tag) at what must be held back."""
        while (start := text.find("<", at)) >= 0:
            self._backticks += text.count("`", at, start)
            at = start + 1
            tag = "" if self._backticks % 2 else _tag_at(text, start, final)
            if tag is None:
                return start, ""
            if tag:
                return start, tag
        self._backticks += text.count("`", at)
        return len(text), ""

    def _say(self, text: str, pieces: list[Piece]) -> None:
        if self._trimming:
            text = text.lstrip()
            self._trimming = not text
        if text:
            self._answering = self._answering or not text.isspace()
            pieces.append(ContentDelta(text))

    def _think(self, text: str, pieces: list[Piece]) -> None:
        if text:
            if self._unclosed:
                self._unclosed.append(text)
            pieces.append(ThinkingDelta(text))


def _tag_at(text: str, start: int, final: bool) -> str | None:
    """The longest tag that begins at `start`: "" for none, None while more text may decide otherwise."""
    rest = text[start : start + len(_LONGEST_FIRST[0])]
    for tag in _LONGEST_FIRST:
        if rest.startswith(tag):
            return tag
        if not final and tag.startswith(rest):
            return None
    return ""


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of `text` may be the beginning of `tag`."""
    return next((size for size in range(len(tag) - 1, 0, -1) if text.endswith(tag[:size])), 0)
