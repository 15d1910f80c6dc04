"""Finds what a query of tree-sitter fits."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from local.errors import ToolError
from local.services.code.code_files import CodeFiles
from local.services.reading.code_outline import LANGUAGES, CodeLanguage, grammar

if TYPE_CHECKING:
    from tree_sitter import Query

MOST_TEXT = 120  # characters of what a capture holds


@dataclass(slots=True)
class SyntaxSearch:
    """At most so many hits in so many seconds. A query is of one language, whose files alone are looked at."""

    query: str
    most_hits: int
    seconds: float

    def told(self, files: CodeFiles) -> str:
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
