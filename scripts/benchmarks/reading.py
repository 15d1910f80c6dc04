"""How much of a file a model has to read until it has seen the lines with an answer: by its outline, beside all of it.

The files are what other people wrote: of the installed packages, of Python itself, of this checkout, and a log that is
made here. Each has one question: a line far from the beginning is the answer, and the question is the name of the part
that it stands in with the six rarest words around it. With those of the question alone, without the name, it is asked
once more. A reader that knows nothing else reads the outline, then the parts whose titles share most words with the
question, one after the other, until the line was shown. Both are counted in tokens, as prompts are.
"""

from __future__ import annotations

import random
import re
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean

from benchmarks.figure import Figure
from local.core.workspace import WorkspacePath
from local.files.outlines import FilePart, Outline, file_outline
from local.files.tools import FilesConfig, outline_text
from local.generator.context import TokenMeter, size_of

CHECKOUT = Path(__file__).parents[2]
LEAST, MOST = 6_000, 150_000  # bytes of a file
GOAL = 60.0  # percent less
AROUND, RAREST = 3, 6
# How many files of each kind, and where they are looked for.
KINDS = {"py": 12, "md": 6, "js": 5, "css": 4, "json": 5, "csv": 4, "rst": 4, "txt": 4, "h": 3, "html": 2, "log": 1}


@dataclass(frozen=True, slots=True)
class Asked:
    """A file, the line that answers, and the words of the question without and with the name of the part."""

    kind: str
    name: str
    content: bytes
    line: int
    words: Sequence[str]
    named: Sequence[str]


async def run() -> list[Figure]:
    """The share of tokens that is saved, over all files and by kind."""
    questions = list(_questions())
    shares: dict[str, list[tuple[float, float]]] = {}
    whole = with_name = without = 0
    for asked in questions:
        outline = file_outline(asked.name, asked.content)
        raw = _tokens("\n".join(outline.lines))
        named, hard = (_read(asked, outline, words) for words in (asked.named, asked.words))
        whole, with_name, without = whole + raw, with_name + named, without + hard
        shares.setdefault(asked.kind, []).append((1 - named / raw, 1 - hard / raw))
    figures = [
        Figure(
            f"reading {len(questions)} files: saved", _percent(1 - with_name / whole), "%", limit=GOAL, at_least=True
        ),
        Figure("reading: saved where the question does not name the part", _percent(1 - without / whole), "%"),
    ]
    for kind, found in sorted(shares.items()):
        saved = [mean(each) for each in zip(*found, strict=True)]
        figures += [Figure(f"reading {len(found)} of .{kind}: saved, named", _percent(saved[0]), "%")]
        figures += [Figure(f"reading {len(found)} of .{kind}: saved, not named", _percent(saved[1]), "%")]
    return figures


def _read(asked: Asked, outline: Outline, words: Sequence[str]) -> int:
    """How many tokens were read when the line was shown."""
    config = FilesConfig()
    path = WorkspacePath((asked.name,))

    def shown(lines: tuple[int, int]) -> str:
        size = len(asked.content)
        return outline_text(path, outline, "", lines, size, config.whole_file_chars, config.max_part_chars)

    first = shown((0, 0))
    tokens = _tokens(first)
    answer = outline.lines[asked.line - 1]
    if answer in first.splitlines():
        return tokens
    segments = list(_segments(outline))
    ranked = sorted(segments, key=lambda part: -len(_words(part.title) & set(words)))
    for part in ranked:
        start = part.start
        while start <= part.end:
            text = shown((start, part.end))
            tokens += _tokens(text)
            cut = re.search(r"go on with start=(\d+)", text)
            until = int(cut[1]) - 1 if cut else part.end
            if start <= asked.line <= until:
                return tokens
            start = until + 1
    return tokens


def _segments(outline: Outline) -> Iterator[FilePart]:
    """The lines of the file, cut up where a part begins or ends; each is called by all parts that it lies in."""
    parts = outline.parts if any(part.end > part.start for part in outline.parts) else ()
    ends = {part.start for part in parts} | {part.end + 1 for part in parts} | {1, len(outline.lines) + 1}
    borders = sorted(ends)
    for start, after in pairwise(borders):
        titles = [part.title for part in parts if part.start <= start <= part.end]
        for block in range(start, after, 200):
            yield FilePart(" ".join(titles), block, min(block + 199, after - 1))


def _questions() -> Iterator[Asked]:
    """Always the same ones, for the same packages."""
    chance = random.Random(14)
    for kind, number in KINDS.items():
        found = sorted(_files(kind), key=lambda path: path.name)
        chance.shuffle(found)
        made = (asked for path in found if (asked := _asked(kind, path.name, path.read_bytes(), chance)))
        yield from (each for each, _ in zip(made, range(number), strict=False))


def _files(kind: str) -> Iterator[Path]:
    roots = [Path(sysconfig.get_path("purelib")), CHECKOUT / "docs", CHECKOUT / "src"]
    if kind in ("h", "txt", "csv"):
        roots.append(Path(sysconfig.get_path("stdlib")))
        roots.append(Path(sysconfig.get_path("include")))
    if kind == "log":
        roots = [_made_log()]
    for root in roots:
        for path in root.rglob(f"*.{kind}"):
            if LEAST <= path.stat().st_size <= MOST and "/test" not in str(path):
                yield path


def _made_log() -> Path:
    """A folder with a log: ours are small."""
    folder = Path(tempfile.mkdtemp(prefix="local2-bench-"))
    chance, lines = random.Random(3), []
    for number in range(900):
        level = chance.choice(["INFO"] * 20 + ["WARNING", "ERROR"])
        what = chance.choice(
            ["answered query {} in {} ms", "connection {} closed after {} s", "cache miss of key {} ({})"]
        )
        text = f"journal {number} could not be written: disk {number % 7} is full" if level == "ERROR" else what
        said = text.format(chance.randrange(9999), chance.randrange(999))
        lines.append(f"2026-11-{1 + number // 60:02} 10:{number % 60:02}:00 {level} {said}")
    (folder / "server.log").write_text("\n".join(lines))
    return folder


def _asked(kind: str, name: str, content: bytes, chance: random.Random) -> Asked | None:
    outline = file_outline(name, content)
    lines = outline.lines
    worth = [number for number in range(len(lines) // 5, len(lines)) if len(_words(lines[number])) > 3]
    if not worth or sum(len(line) + 1 for line in lines) <= FilesConfig().whole_file_chars:
        return None
    line = chance.choice(worth)
    common = Counter(word for each in lines for word in _words(each))
    near = {word for each in lines[max(0, line - AROUND) : line + AROUND + 1] for word in _words(each)}
    words = sorted(near, key=lambda word: (common[word], word))[:RAREST]
    around = [part for part in outline.parts if part.start <= line + 1 <= part.end and part.end > part.start]
    innermost = min(around, key=lambda part: part.end - part.start, default=None)
    named = _words(innermost.title) if innermost else set()
    return Asked(kind, name, content, line + 1, words, [*words, *named])


def _words(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Za-z]+", text) if len(word) > 2}


def _tokens(text: str) -> int:
    return TokenMeter().tokens(size_of(text))


def _percent(share: float) -> float:
    return round(100 * share, 1)
