"""Searches through the workspace's programs and texts: by line, by definition and by syntax."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pathspec import GitIgnoreSpec
from pydantic import Field

from local.core.errors import ToolError
from local.core.workspace import Workspace, WorkspacePath, open_regular
from local.files.outlines import LANGUAGES, CodeLanguage, CodeSymbol, code_symbols, grammar
from local.files.tools import FilesConfig, FileTool, WorkspaceFiles
from local.tools.tool import ToolOutput

if TYPE_CHECKING:
    from tree_sitter import Query


# What ignore files say of the files below them: .gitignore and .ignore, as git reads them.

IGNORE_FILES = (".gitignore", ".ignore")
MOST_BYTES = 200_000  # of one ignore file; a larger one is ignored


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The ignore rules that apply in one folder, those of the nearest ignore file last; each with the path of its
    folder, which ends with / except the workspace's own, the empty one.
    """

    rules: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def within(self, folder: str, texts: Sequence[bytes]) -> IgnoreRules:
        """The rules in a folder below, which holds ignore files with those contents."""
        added = []
        for text in texts:
            lines = text.decode("utf-8", "replace").splitlines()
            if len(text) <= MOST_BYTES and any(line.strip() and not line.startswith("#") for line in lines):
                added.append((folder, _spec(lines)))
        return IgnoreRules((*self.rules, *added)) if added else self

    def leave_out(self, path: str) -> bool:
        """Whether a file, or a folder whose path ends with /, is left out: the nearest rule decides."""
        for folder, spec in reversed(self.rules):
            found = spec.check_file(path[len(folder) :]).include
            if found is not None:
                return found
        return False


def _spec(lines: Sequence[str]) -> GitIgnoreSpec:
    """Lines that are not patterns are ignored, as by git."""
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        good = [line for line in lines if _is_pattern(line)]
        return GitIgnoreSpec.from_lines(good)


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


UNREAD = (".git", ".hg", ".svn")  # never looked into
MOST_DEPTH = 60
START = 8192  # bytes in which a NUL means that a file is not text


@dataclass(slots=True)
class CodeFiles:
    """The text files of a search. Iterates over path and content of each text file below `path`, sorted by name, each
    folder after the files beside it. `pattern` is for names or paths, `wanted` for names; a file that is named itself
    is read even if ignored.

    Links are not followed, files of more than `most_bytes` not read; `counted` are those of each sort. `digests` has
    the SHA-256 of the `shown` files, by path. Raises `ToolError` as `Workspace` does.
    """

    workspace: Workspace
    path: WorkspacePath
    most_bytes: int
    pattern: str = ""
    wanted: Callable[[str], bool] = field(default=lambda name: True)
    counted: dict[str, int] = field(default_factory=lambda: {"files": 0, "large": 0, "binary": 0})
    digests: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        if self.path.parts and self.workspace.facts(self.path).kind == "file":
            yield str(self.path), self.workspace.read(self.path, self.most_bytes)
            return
        yield from self._below(self.path, self._rules_above(), MOST_DEPTH)

    def shown(self, path: str, content: bytes) -> None:
        """Note that content of this file is in the result."""
        self.digests[path] = hashlib.sha256(content).hexdigest()

    def _rules_above(self) -> IgnoreRules:
        """Return the rules that apply in the folder; none if they would exclude the folder itself, which was named on
        purpose.
        """
        rules = IgnoreRules()
        for length in range(len(self.path.parts)):
            above = WorkspacePath(self.path.parts[:length])
            with self.workspace.folder(above) as folder:
                rules = rules.within(_prefix(above), _ignore_texts(folder, set(IGNORE_FILES)))
            if rules.leave_out(_prefix(WorkspacePath(self.path.parts[: length + 1]))):
                return IgnoreRules()
        return rules

    def _below(self, path: WorkspacePath, rules: IgnoreRules, depth: int) -> Iterator[tuple[str, bytes]]:
        prefix = _prefix(path)
        with self.workspace.folder(path) as folder:
            files, folders = _named(folder)
            rules = rules.within(prefix, _ignore_texts(folder, files))
            for name in sorted(files):
                if self._fits(prefix, name) and not rules.leave_out(f"{prefix}{name}"):
                    content = self._content(folder, WorkspacePath((*path.parts, name)))
                    if content is not None:
                        yield f"{prefix}{name}", content
        for name in sorted(folders - set(UNREAD)):
            if depth > 0 and not rules.leave_out(f"{prefix}{name}/"):
                try:
                    yield from self._below(WorkspacePath((*path.parts, name)), rules, depth - 1)
                except ToolError:  # it is gone meanwhile, or may not be opened
                    continue

    def _fits(self, prefix: str, name: str) -> bool:
        pattern = self.pattern
        fits = not pattern or fnmatchcase(name, pattern) or fnmatchcase(f"{prefix}{name}", pattern)
        return fits and self.wanted(name)

    def _content(self, folder: int, path: WorkspacePath) -> bytes | None:
        """Return the content of a text file; None if it is not text, too large or gone."""
        content = _read(folder, path, self.most_bytes + 1)
        if content is None:
            return None
        if len(content) > self.most_bytes:
            self.counted["large"] += 1
        elif b"\0" in content[:START]:
            self.counted["binary"] += 1
        else:
            self.counted["files"] += 1
            return content
        return None


def _prefix(path: WorkspacePath) -> str:
    return f"{path}/" if path.parts else ""


def _named(folder: int) -> tuple[set[str], set[str]]:
    files, folders = set[str](), set[str]()
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                folders.add(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files.add(entry.name)
    return files, folders


def _ignore_texts(folder: int, files: set[str]) -> list[bytes]:
    texts = [_read(folder, WorkspacePath((name,)), MOST_BYTES + 1) for name in IGNORE_FILES if name in files]
    return [text for text in texts if text is not None]


def _read(folder: int, path: WorkspacePath, most: int) -> bytes | None:
    """Return at most so many bytes; of a binary file only the beginning."""
    try:
        with os.fdopen(open_regular(folder, path), "rb", buffering=0) as file:
            start = file.read(min(most, START))
            return start if len(start) < START or b"\0" in start else start + file.read(most - START)
    except (OSError, ToolError):
        return None


# The request to a process that searches programs, and its answer.

Verb = Literal["text", "definitions", "structure", "syntax"]


@dataclass(frozen=True, slots=True)
class CodeLimits:
    """The limits of one search. Files of more than `file_bytes` are left out; a search ends after so many files, hits
    and seconds."""

    file_bytes: int = 2_000_000
    files: int = 5000
    hits: int = 5000
    seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class CodeJob:
    """One search, as it is sent to the worker process. `wanted` is a regular expression, a name or a query, by the
    verb; `path` is relative to the workspace `root`; `pattern` is for the names of files.
    """

    verb: Verb
    root: str
    path: tuple[str, ...]
    limits: CodeLimits
    wanted: str = ""
    pattern: str = ""
    ignore_case: bool = False

    @classmethod
    def of(cls, fields: dict[str, Any]) -> CodeJob:
        """Return a job from its JSON fields."""
        return cls(**{**fields, "path": tuple(fields["path"]), "limits": CodeLimits(**fields["limits"])})


@dataclass(frozen=True, slots=True)
class CodeFindings:
    """The result of a search: the hits as text, and the SHA-256 of each file with content in it, by path."""

    text: str
    digests: dict[str, str]


# Looks through programs in a process that can be killed: no pattern and no file holds up anybody else.

AT_ONCE = 2
KILL_AFTER = 5.0  # seconds beyond those of the job, which looks at the clock itself between two files
COMMAND = (sys.executable, "-I", "-m", "local.files.code_worker")


class CodeRunner:
    """Runs searches in worker processes, at most two at a time; each does one job and ends. A cancelled call kills its
    own.
    """

    def __init__(self, command: tuple[str, ...] = COMMAND, kill_after: float = KILL_AFTER) -> None:
        self._command, self._kill_after = command, kill_after
        self._places = asyncio.Semaphore(AT_ONCE)

    async def findings(self, job: CodeJob) -> CodeFindings:
        """Return the result of a job. Raises `ToolError`: bad_pattern, bad_query, not_code, too_slow, and those of
        `Workspace`.
        """
        async with self._places:
            process = await asyncio.create_subprocess_exec(
                *self._command, cwd="/", env={"LANG": "C.UTF-8"},
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            try:
                async with asyncio.timeout(job.limits.seconds + self._kill_after):
                    said, troubles = await process.communicate(json.dumps(asdict(job)).encode())
            except TimeoutError:
                text = (
                    f"it took longer than {job.limits.seconds:g} s on one file and was ended: such a pattern tries too"
                    " many ways, as nested repetitions do; give a simpler one"
                )
                raise ToolError(text, kind="too_slow") from None
            finally:
                if process.returncode is None:
                    with suppress(ProcessLookupError):
                        process.kill()
                    await asyncio.shield(process.wait())
        return _findings(said, troubles, process.returncode)


def _findings(said: bytes, troubles: bytes, code: int | None) -> CodeFindings:
    try:
        answer = json.loads(said)
    except ValueError:
        last = troubles.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise ToolError(f"the search ended with {code}: {''.join(last)[:500]}", kind="failed") from None
    if "error" in answer:
        raise ToolError(answer["error"], kind=answer["kind"])
    return CodeFindings(**answer)


# Finds the lines that a regular expression fits.

MOST_LINE = 200  # characters of a line that is shown
_PLAIN = re.compile(r"[\w \"'/:;,=<>@#%&!~`-]+")


@dataclass(frozen=True, slots=True)
class LineSearch:
    """A search for lines by a regular expression, with at most so many hits in so many seconds; a search that stops
    early has a note.
    """

    pattern: str
    ignore_case: bool
    most_hits: int
    seconds: float

    def as_text(self, files: CodeFiles) -> str:
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
        """Whether a file may contain the wanted words: most files are not searched further."""
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


# Finds the definitions of classes, functions and the like, and describes a folder of programs.

MOST_NEAR = 20
MOST_CHARS = 12_000  # of a folder's description


@dataclass(slots=True)
class SymbolSearch:
    """A search for definitions by name, in at most so many files in so many seconds; a search that stops early says
    so."""

    most_files: int
    seconds: float
    _stopped: str = ""

    def definitions(self, name: str, files: CodeFiles) -> str:
        """Return where `name`, or `Class.method`, is defined; if it is not, similar names."""
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
            lines = [line for path, symbols in found.items() for line in _symbol_lines(path, symbols, depth)]
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


def _symbol_lines(path: str, symbols: list[CodeSymbol], depth: int) -> Iterator[str]:
    yield path
    for symbol in symbols:
        if symbol.part.level <= depth:
            yield f"{' ' * symbol.part.level}{_place(symbol)} {symbol.part.title}"


def _place(symbol: CodeSymbol) -> str:
    part = symbol.part
    return f"{part.start}-{part.end}" if part.end > part.start else str(part.start)


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.lower()


# Finds the matches of a tree-sitter query.

MOST_TEXT = 120  # characters of a capture's text


@dataclass(slots=True)
class SyntaxSearch:
    """A search by a tree-sitter query, with at most so many hits in so many seconds. A query is of one language, whose
    files alone are looked at."""

    query: str
    most_hits: int
    seconds: float

    def as_text(self, files: CodeFiles) -> str:
        """A line for each capture. Raises `ToolError` (bad_query) where the query is one of no language there."""
        from tree_sitter import Parser, QueryCursor

        ends = time.monotonic() + self.seconds
        queries, faults = dict[CodeLanguage, "Query | None"](), dict[str, str]()
        lines, stopped = list[str](), ""
        for path, content in files:
            language = LANGUAGES[PurePosixPath(path).suffix.lower()]
            if language not in queries:
                queries[language] = self._compiled(language, faults)
            query = queries[language]
            if query is None:
                continue
            if time.monotonic() > ends:
                stopped = f"; stopped, as {self.seconds:g} s were over at {path}: name a folder"
                break
            captures = QueryCursor(query).captures(Parser(grammar(language)).parse(content).root_node)
            found = sorted((node.start_byte, name, node) for name, nodes in captures.items() for node in nodes)
            if found:
                files.shown(path, content)
                lines.append(path)
            for _, name, node in found[: self.most_hits]:
                text = " ".join((node.text or b"").decode("utf-8", "replace").split())
                cut = text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"
                lines.append(f" {node.start_point[0] + 1} @{name} {cut}")
            if len(lines) >= self.most_hits:
                stopped = f"; stopped, as there are more than {self.most_hits}: name a folder"
                break
        if faults and not any(queries.values()):
            raise ToolError(f"no query of tree-sitter: {'; '.join(faults.values())}", kind="bad_query")
        return "\n".join([f"{len(lines) - len(files.digests)} captures in {len(files.digests)} files{stopped}", *lines])

    def _compiled(self, language: CodeLanguage, faults: dict[str, str]) -> Query | None:
        from tree_sitter import Query, QueryError

        try:
            query = Query(grammar(language), self.query)
        except (QueryError, ValueError) as error:
            faults[language.name] = f"{language.name}: {error}"
            return None
        if not query.capture_count:
            faults[language.name] = f"{language.name}: it captures nothing; put @name after what is to be told"
            return None
        return query


# What each tool for programs is.

SLACK_SECONDS = 10.0  # for waiting until others are through


class CodeTool(FileTool):
    """A tool that looks through many files, in a process that is ended with the call."""

    safety = "L0"
    category = "search"

    def __init__(self, config: FilesConfig, files: WorkspaceFiles, runner: CodeRunner) -> None:
        super().__init__(config, files)
        self._runner = runner
        self.max_result_chars = config.max_part_chars
        self.timeout_seconds = config.search_seconds + KILL_AFTER + SLACK_SECONDS

    async def found(
        self, verb: Verb, wanted: str, path: str, *, pattern: str = "", ignore_case: bool = False
    ) -> ToolOutput:
        """Return the hits below a path, and whether they contain untrusted content."""
        config = self._files.config
        limits = CodeLimits(
            config.max_read_bytes, config.max_symbol_files, config.max_search_hits, config.search_seconds
        )
        where, root = self._files.path(self, path), str(self._files.workspace.root)
        job = CodeJob(verb, root, where.parts, limits, wanted, pattern, ignore_case)
        findings = await self._runner.findings(job)
        taint = await self._files.taint_of(findings.digests, set(findings.digests.values()))
        return self.as_text(findings.text, taint)


# The tool that finds syntax.


class AstQueryTool(CodeTool):
    """Find syntax in programs by a query of tree-sitter, such as (call function: (identifier) @name)."""

    name = "ast_query"

    async def run(
        self,
        query: Annotated[str, Field(min_length=1, max_length=4000, description="What @names capture is told")],
        path: Annotated[str, "The folder or file"] = ".",
    ) -> ToolOutput:
        """Each capture with its file, line and text."""
        return await self.found("syntax", query, path)


# The tool that finds definitions.


class FindSymbolTool(CodeTool):
    """Find where a class, function, method or type is defined, with its lines."""

    name = "find_symbol"

    async def run(
        self,
        name: Annotated[str, Field(min_length=1, max_length=500, description="Such as Basket or Basket.total")],
        path: Annotated[str, "The folder or file"] = ".",
    ) -> ToolOutput:
        """Each definition with its file and lines."""
        return await self.found("definitions", name, path)


# The tool that describes a folder of programs.


class GetStructureTool(CodeTool):
    """Tell the classes and functions of all programs in a folder, with their lines."""

    name = "get_structure"

    async def run(self, path: Annotated[str, "The folder or file"] = ".") -> ToolOutput:
        """Each file with its symbols."""
        return await self.found("structure", "", path)


# The tool that finds lines of text.


class SearchCodeTool(CodeTool):
    """Find lines in the workspace's text files by a regular expression. Ignored files are left out."""

    name = "search_code"
    replaces = "grep, rg"

    async def run(
        self,
        pattern: Annotated[str, Field(min_length=1, max_length=2000, description="A regular expression, as of Python")],
        path: Annotated[str, "The folder or file"] = ".",
        files: Annotated[str, "Which files, such as *.py"] = "",
        ignore_case: bool = False,
    ) -> ToolOutput:
        """Each file with the lines and their numbers."""
        return await self.found("text", pattern, path, pattern=files, ignore_case=ignore_case)
