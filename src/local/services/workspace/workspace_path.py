"""A path as a model writes it, checked before anything is looked for: the names of folders below the workspace."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePosixPath

from local.errors import ToolError

MOST_BYTES, MOST_BYTES_OF_NAME, MOST_PARTS = 4096, 255, 100
_NO_TEXT = frozenset({"Cc", "Cs", "Zl", "Zp"})
SHOWN = 200  # characters of a path in an error


@dataclass(frozen=True, slots=True)
class WorkspacePath:
    """`parts` are names, none of them `.`, `..` or empty; no parts at all are the workspace itself."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, root: PurePosixPath | None = None) -> WorkspacePath:
        """Read a path that is relative to the workspace, or an absolute one that begins with `root`. Nothing in it is
        expanded or decoded. Raises `ToolError` (outside, bad_path)."""
        if text.startswith("/"):
            text = _below(text, root)
        parts = tuple(part for part in text.split("/") if part not in ("", "."))
        if ".." in parts:
            raise ToolError(f"{shown(text)}: “..” is not allowed; name the path from the workspace on", kind="outside")
        _require_sane(text, parts)
        return cls(parts)

    @property
    def name(self) -> str:
        """The last name, empty for the workspace itself."""
        return self.parts[-1] if self.parts else ""

    @property
    def folder(self) -> WorkspacePath:
        """The folder in which it lies."""
        return WorkspacePath(self.parts[:-1])

    def __str__(self) -> str:
        return "/".join(self.parts) or "."

    def require_unprotected(self, protected: Collection[str]) -> None:
        """Raises `ToolError` (protected) where a name on the way is one of those, however it is written."""
        taken = {folded(name) for name in protected}
        for part in self.parts:
            if folded(part) in taken:
                text = f"{shown(str(self))} may not be changed: {part!a} is on the list protected in files.yaml"
                raise ToolError(text, kind="protected")


def folded(name: str) -> str:
    """A name as a file system may take it that ignores case, forms and invisible characters."""
    visible = "".join(each for each in name if unicodedata.category(each) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold()


def shown(text: str) -> str:
    """A path within an error: short, and in visible characters."""
    return ascii(text[:SHOWN])


def on_one_line(text: str) -> str:
    """A name as it is, but for what would end a line or move a cursor."""
    return "".join(ascii(each)[1:-1] if unicodedata.category(each) in _NO_TEXT else each for each in text)


def _below(text: str, root: PurePosixPath | None) -> str:
    start = str(root).rstrip("/") if root is not None else None
    if start is not None and (text == start or text.startswith(f"{start}/")):
        return text[len(start) :]
    raise ToolError(f"{shown(text)} is outside of the workspace; name the path from the workspace on", kind="outside")


def _require_sane(text: str, parts: tuple[str, ...]) -> None:
    try:
        sizes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        raise ToolError(f"{shown(text)} is no path: it holds half a character", kind="bad_path") from None
    if any(unicodedata.category(each) == "Cc" for each in text):
        raise ToolError(f"{shown(text)} is no path: it holds a control character", kind="bad_path")
    if sum(sizes) + len(sizes) > MOST_BYTES or len(parts) > MOST_PARTS or max(sizes, default=0) > MOST_BYTES_OF_NAME:
        limits = f"{MOST_BYTES} bytes, {MOST_PARTS} names, {MOST_BYTES_OF_NAME} bytes a name"
        raise ToolError(f"{shown(text)}… is too long for a path: at most {limits}", kind="bad_path")
