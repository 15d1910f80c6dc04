"""Finds where classes, functions and the like are defined, and tells what a folder of programs is made of."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from local.services.code.code_files import CodeFiles
from local.services.reading.code_outline import CodeSymbol, code_symbols

MOST_NEAR = 20
MOST_CHARS = 12_000  # of what a folder is made of


@dataclass(slots=True)
class SymbolSearch:
    """At most so many files in so many seconds; a search that stops early says so."""

    most_files: int
    seconds: float
    _stopped: str = ""

    def definitions(self, name: str, files: CodeFiles) -> str:
        """Where `name`, or `Class.method`, is defined; where it is not, what is called like it."""
        wanted = name.strip().casefold()
        last = wanted.rpartition(".")[2]
        exact, near = list[str](), list[str]()
        for path, content in self._limited(files):
            if last.encode() not in content.lower():
                continue
            for symbol in code_symbols(_suffix(path), content):
                line = f"{path}:{_place(symbol)} {symbol.part.title}"
                called = symbol.path.casefold()
                if called == wanted or called.endswith(f".{wanted}"):
                    exact.append(line)
                elif last in symbol.name.casefold() and len(near) < MOST_NEAR:
                    near.append(line)
                else:
                    continue
                files.shown(path, content)
        if exact:
            return "\n".join([f"{len(exact)} definitions of {name}{self._stopped}", *exact])
        hint = "; what is called like it:" if near else f" in {files.counted['files']} files of programs"
        return "\n".join([f"no definition of {name}{hint}{self._stopped}", *near])

    def structure(self, files: CodeFiles) -> str:
        """The symbols of each file; of many files the outermost only, or how many there are in each folder."""
        found = dict[str, list[CodeSymbol]]()
        for path, content in self._limited(files):
            found[path] = code_symbols(_suffix(path), content)
            files.shown(path, content)
        heading = f"{len(found)} files of programs, {sum(map(len, found.values()))} symbols{self._stopped}"
        for depth in (3, 2, 1):
            lines = [line for path, symbols in found.items() for line in _told(path, symbols, depth)]
            if sum(len(line) + 1 for line in lines) <= MOST_CHARS:
                return "\n".join([heading, *lines])
        folders = Counter(path.rpartition("/")[0] or "." for path in found)
        lines = [f"{folder}/ {count} files" for folder, count in sorted(folders.items())]
        return "\n".join([f"{heading}; name one of the folders for its symbols", *lines])

    def _limited(self, files: CodeFiles) -> Iterator[tuple[str, bytes]]:
        """Each file up to a limit."""
        ends = time.monotonic() + self.seconds
        for number, (path, content) in enumerate(files, start=1):
            late = time.monotonic() > ends
            if late or number > self.most_files:
                why = f"{self.seconds:g} s were over" if late else f"these are {self.most_files} files"
                self._stopped = f"; stopped at {path}, as {why}: name a folder"
                return
            yield path, content


def _told(path: str, symbols: list[CodeSymbol], depth: int) -> Iterator[str]:
    yield path
    for symbol in symbols:
        if symbol.part.level <= depth:
            yield f"{' ' * symbol.part.level}{_place(symbol)} {symbol.part.title}"


def _place(symbol: CodeSymbol) -> str:
    part = symbol.part
    return f"{part.start}-{part.end}" if part.end > part.start else str(part.start)


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.lower()
