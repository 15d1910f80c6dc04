"""What a file is made of: named parts with their lines, and how that is told within a budget of characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

MOST_TITLE = 120
MOST_INDENT = 4


@dataclass(frozen=True, slots=True)
class FilePart:
    """A heading, a symbol or a key with the lines that belong to it, the first line being 1. Parts of level 2 lie
    within one of level 1."""

    title: str
    start: int
    end: int
    level: int = 1


@dataclass(frozen=True, slots=True)
class Outline:
    """`kind` is what sort of file that is, `facts` are lines about it as a whole. `lines` are the text that the parts
    count in: that of the file, or what was read out of it."""

    kind: str
    lines: Sequence[str]
    parts: Sequence[FilePart] = ()
    facts: Sequence[str] = field(default_factory=tuple)

    def told(self, most_chars: int) -> str:
        """The facts and parts. What does not fit is left out: the deepest levels first, then what comes last."""
        facts = "\n".join(self.facts)
        room = most_chars - len(facts)
        depth = max((part.level for part in self.parts), default=1)
        while depth > 1 and sum(len(_line(part)) + 1 for part in self.parts if part.level <= depth) > room:
            depth -= 1
        shown = [part for part in self.parts if part.level <= depth]
        told = list[str]()
        for part in shown:
            room -= len(_line(part)) + 1
            if room < 0:
                break
            told.append(_line(part))
        missing = len(self.parts) - len(told)
        more = [f"… and {missing} more parts within these or after them"] if missing else []
        return "\n".join(filter(None, [facts, *told, *more]))

    def named(self, name: str) -> list[FilePart]:
        """The parts that a name fits: those with exactly that title, else those whose title holds it."""
        wanted = " ".join(name.casefold().lstrip("# ").split())
        titles = [" ".join(part.title.casefold().split()) for part in self.parts]
        exact = [part for part, title in zip(self.parts, titles, strict=True) if title == wanted]
        named = [part for part, title in zip(self.parts, titles, strict=True) if wanted in _words(title)]
        within = [part for part, title in zip(self.parts, titles, strict=True) if wanted and wanted in title]
        return exact or named or within


def nested(headings: Iterable[tuple[int, int, str]], last_line: int) -> list[FilePart]:
    """Parts from headings as (line, level, title) in order: each lasts up to the next of its level or above."""
    found = [FilePart(title[:MOST_TITLE], line, last_line, level) for line, level, title in headings]
    return [
        replace(part, end=next((p.start - 1 for p in found[index + 1 :] if p.level <= part.level), last_line))
        for index, part in enumerate(found)
    ]


def blocks(lines: Sequence[str], length: int = 60) -> list[FilePart]:
    """Parts of a text without any structure: so many lines each, called by their first words."""
    parts = []
    for start in range(0, len(lines), length):
        block = lines[start : start + length]
        title = next((line.strip() for line in block if line.strip()), "")
        parts.append(FilePart(title[: MOST_TITLE // 2], start + 1, start + len(block)))
    return parts


def _words(title: str) -> set[str]:
    """The names that stand in a title such as `class Foo(Bar)`."""
    return set("".join(each if each.isalnum() or each in "_-$." else " " for each in title).split())


def _line(part: FilePart) -> str:
    place = f"{part.start}-{part.end}" if part.end > part.start else str(part.start)
    return f"{' ' * min(part.level - 1, MOST_INDENT)}{place} {part.title}"
