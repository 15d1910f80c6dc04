"""Finds the lines that a regular expression fits."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from local.errors import ToolError
from local.services.code.code_files import CodeFiles

MOST_LINE = 200  # characters of a line that is shown
_PLAIN = re.compile(r"[\w \"'/:;,=<>@#%&!~`-]+")


@dataclass(frozen=True, slots=True)
class LineSearch:
    """At most so many hits in so many seconds; a search that stops early says so."""

    pattern: str
    ignore_case: bool
    most_hits: int
    seconds: float

    def told(self, files: CodeFiles) -> str:
        """A line for each hit, below its file. Raises `ToolError` (bad_pattern)."""
        fits, ends = self._compiled(), time.monotonic() + self.seconds
        may_fit = self._quick()
        lines, hits, stopped = list[str](), 0, ""
        for path, content in files:
            if time.monotonic() > ends:
                stopped = f"{self.seconds:g} s were over at {path}"
                break
            if not may_fit(content):
                continue
            found = list(_hits(fits, content.decode("utf-8", "replace"), self.most_hits - hits + 1))
            if not found:
                continue
            files.shown(path, content)
            lines += [path, *found[: self.most_hits - hits]]
            hits += len(found)
            if hits > self.most_hits:
                hits, stopped = self.most_hits, f"there are more than {self.most_hits}"
                break
        return "\n".join([_heading(files, hits, stopped), *lines])

    def _quick(self) -> Callable[[bytes], bool]:
        """Whether a file may hold what is looked for, where that is words: most files are not looked into further."""
        needle = self.pattern.encode()
        if not _PLAIN.fullmatch(self.pattern) or (self.ignore_case and not self.pattern.isascii()):
            return lambda content: True
        if not self.ignore_case:
            return lambda content: needle in content
        small = needle.lower()  # letters beyond ASCII may be those in another case, as the sign of the kelvin is a k
        return lambda content: not content.isascii() or small in content.lower()

    def _compiled(self) -> re.Pattern[str]:
        try:
            return re.compile(self.pattern, re.MULTILINE | (re.IGNORECASE if self.ignore_case else 0))
        except (re.error, RecursionError, OverflowError) as error:
            text = (
                f"the pattern is no regular expression of Python: {error}; put a \\ before signs that mean themselves"
            )
            raise ToolError(text, kind="bad_pattern") from None


def _hits(fits: re.Pattern[str], text: str, most: int) -> Iterator[str]:
    """A line each, in which a match begins."""
    at, number, counted = 0, 1, 0
    for _ in range(most):
        found = fits.search(text, at)
        if found is None or (found.start() == len(text) and found.start() > 0):
            return
        start = text.rfind("\n", 0, found.start()) + 1
        end = text.find("\n", found.start())
        end = len(text) if end < 0 else end
        number += text.count("\n", counted, start)
        counted = start
        yield f" {number}: {_cut(text[start:end].rstrip(), found.start() - start)}"
        at = end + 1
        if at > len(text):
            return


def _cut(line: str, at: int) -> str:
    """The line, or that part of a long one in which the match begins."""
    if len(line) <= MOST_LINE:
        return line
    start = max(0, min(at - MOST_LINE // 4, len(line) - MOST_LINE))
    return f"{'…' if start else ''}{line[start : start + MOST_LINE]}{'…' if start + MOST_LINE < len(line) else ''}"


def _heading(files: CodeFiles, hits: int, stopped: str) -> str:
    searched = f"{files.counted['files']} files" if files.counted["files"] else str(files.path)
    heading = f"{hits} lines in {len(files.digests)} of {searched}"
    if files.counted["large"]:
        heading += f"; {files.counted['large']} larger ones were not read"
    if stopped:
        heading += f"; stopped, as {stopped}: name a folder, give files a pattern such as *.py, or look for more"
    return heading
