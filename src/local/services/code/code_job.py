"""What a process that looks through programs is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Verb = Literal["text", "definitions", "structure", "syntax"]


@dataclass(frozen=True, slots=True)
class CodeLimits:
    """Files of more than `file_bytes` are left out; a search ends after so many files, hits and seconds."""

    file_bytes: int = 2_000_000
    files: int = 5000
    hits: int = 5000
    seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class CodeJob:
    """`wanted` is a regular expression, a name or a query, by the verb; `path` counts from the workspace `root`;
    `pattern` is for the names of files."""

    verb: Verb
    root: str
    path: tuple[str, ...]
    limits: CodeLimits
    wanted: str = ""
    pattern: str = ""
    ignore_case: bool = False

    @classmethod
    def of(cls, fields: dict[str, Any]) -> CodeJob:
        """One from what JSON has made of it."""
        return cls(**{**fields, "path": tuple(fields["path"]), "limits": CodeLimits(**fields["limits"])})


@dataclass(frozen=True, slots=True)
class CodeFindings:
    """What was found as text, and the SHA-256 of each file whose words stand there, by its path."""

    text: str
    digests: dict[str, str]
