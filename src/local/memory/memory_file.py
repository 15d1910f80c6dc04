"""MEMORY.md: facts and notes as lines that their owner edits, and the reading of the edits."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from local.memory.messages import EditRecord, EntryRecord

SHOWN_CHARS = 60
MOST_CHARS = 2_000  # of a line that is read back
_HEAD = """\
# Memory

<!--
What you have said of yourself, and what the assistant has noted, as it was when this was written. Change a line, delete
it, or add one ("- what: value" under Facts); leave the marks behind the others as they are. Then: local2 memory import
-->
"""
_ALL = "All marks, by which a line that was deleted is noticed:"
_BULLETS = ("- ", "* ", "+ ")
_COMMENT = re.compile(r"(?P<mark>[fn][0-9a-f]{12})\.(?P<sum>[0-9a-f]{8})(?:, [^<>]*)? -->")
_MARK = re.compile(r"\b[fn][0-9a-f]{12}\b")
_MARKS_IN_A_LINE = 8
_NONE_GONE = "no line counts as deleted"
_KINDS: dict[str, Literal["fact", "note"]] = {"f": "fact", "n": "note"}
_SECTIONS: dict[str, Literal["fact", "note"]] = {"## facts": "fact", "## notes": "note"}


def memory_file(entries: Sequence[EntryRecord]) -> str:
    """The whole file."""
    lines = [_HEAD]
    for title, kind in (("## Facts", "fact"), ("## Notes", "note")):
        lines += [title, *(_line(entry) for entry in entries if entry.kind == kind), ""]
    marks = [_mark(entry) for entry in entries]
    rows = [" ".join(marks[at : at + _MARKS_IN_A_LINE]) for at in range(0, len(marks), _MARKS_IN_A_LINE)]
    return "\n".join([*lines, f"<!-- {_ALL}", *rows, "-->", ""])


@dataclass(slots=True)
class MemoryFileView:
    """The content of an edited MEMORY.md: its changes, and a line for each problem."""

    edits: list[EditRecord] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_memory_file(text: str) -> MemoryFileView:
    """Return the changes since the file was written. If its marks are damaged, no line counts as deleted."""
    return _Reader().read(text)


class _Reader:
    def __init__(self) -> None:
        self._reading = MemoryFileView()
        self._marks, self._known = set[str](), list[str]()  # of the lines, and all as the end lists them
        self._section, self._is_sound = "", True

    def read(self, text: str) -> MemoryFileView:
        comment = ""
        for number, line in enumerate(map(str.strip, text.removeprefix("\ufeff").splitlines()), 1):
            if comment or line.startswith("<!--"):
                comment += f"{line} "
                if line.endswith("-->"):
                    self._read_comment(number, comment)
                    comment = ""
            else:
                self._read_line(number, line)
        if comment or _ALL not in text or not self._marks <= {*self._known}:
            self._reading.problems.append(
                "a mark is not in the list of all at the end, or that is spoilt; " + _NONE_GONE
            )
        elif self._is_sound:
            gone = [mark for mark in dict.fromkeys(self._known) if mark not in self._marks]
            self._reading.edits += [EditRecord(line=0, kind=_KINDS[mark[0]], entry_id=mark[1:]) for mark in gone]
        return self._reading

    def _read_comment(self, number: int, comment: str) -> None:
        marks = _MARK.findall(comment)
        if _ALL in comment:
            self._known += marks
        elif marks:
            self._marks.update(marks)
            self._is_sound = False
            self._problem(number, comment, f"a comment takes in a line; {_NONE_GONE}")

    def _read_line(self, number: int, line: str) -> None:
        if not line:
            return
        if line.startswith("#"):
            self._section = line.casefold()
        elif f"{line} ".startswith(_BULLETS):
            self._read_item(number, line[1:].strip())
        else:
            self._marks.update(_MARK.findall(line))
            self._problem(number, line, "is no line of a list; write “- ” before it")

    def _read_item(self, number: int, item: str) -> None:
        text, opened, comment = item.rpartition("<!--")
        found = _COMMENT.fullmatch(comment.strip()) if opened else None
        if (opened and found is None) or "<!--" in text or "-->" in text:
            self._marks.update(_MARK.findall(item))
            self._is_sound = False
            self._problem(number, item, f"its mark is not as it was written; {_NONE_GONE}")
        elif len(text or comment) > MOST_CHARS:
            self._marks.update([found["mark"]] if found else [])
            self._problem(number, item, f"has more than {MOST_CHARS} characters")
        elif found is None:
            self._read_new(number, item)
        elif found["mark"] in self._marks:
            self._problem(number, text, "its mark stands twice; take it away here for a new line")
        else:
            self._read_known(number, text.strip(), found["mark"], found["sum"])

    def _read_known(self, number: int, text: str, mark: str, checksum: str) -> None:
        self._marks.add(mark)
        if _checksum(text) != checksum:
            edit = EditRecord(line=number, kind=_KINDS[mark[0]], entry_id=mark[1:], text=text)
            self._reading.edits.append(edit)

    def _read_new(self, number: int, text: str) -> None:
        kind = _SECTIONS.get(self._section)
        if kind is None:
            self._problem(number, text, "stands neither under “## Facts” nor under “## Notes”")
        elif text:
            self._reading.edits.append(EditRecord(line=number, kind=kind, text=text))

    def _problem(self, number: int, text: str, why: str) -> None:
        shown = text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}…"
        self._reading.problems.append(f"line {number}: “{shown}”: {why}")


def _line(entry: EntryRecord) -> str:
    text = _plain(entry.text)
    remarks = ", ".join([f"{_mark(entry)}.{_checksum(text)}", *_remarks(entry)])
    return f"- {text} <!-- {remarks} -->"


def _remarks(entry: EntryRecord) -> Iterator[str]:
    if entry.category:
        yield re.sub(r"[<>,-]+", " ", entry.category).strip()
    if entry.tainted:
        yield "with words of strangers"
    if not entry.certain:
        yield "not sure"
    if " not stored]" in entry.text:
        yield "a secret is left out"


def _mark(entry: EntryRecord) -> str:
    return f"{entry.kind[0]}{entry.entry_id}"


def _plain(text: str) -> str:
    """Return a text as one line that cannot be read as a mark, nor control a terminal."""
    visible = "".join(" " if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp") else each for each in text)
    return " ".join(visible.replace("<!--", "‹!--").replace("-->", "--›").split())


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
