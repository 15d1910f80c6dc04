"""The page that browsers get, as its files were at one moment."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import posixpath
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from local.api.http import RequestRefused

INDEX = "index.html"
FILES_PATH = "/app"  # as in the page's own files; sent paths have the bundle's digest after it
MEDIA_TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
"""What a browser may be sent, by the end of the name; other files are not there for it."""

_PACKED = frozenset({".png", ".ico", ".woff2"})  # already compressed formats
_ADDRESSED = frozenset({".html", ".webmanifest"})  # they contain FILES_PATH
_ENTRY = re.compile(rf'<script type="module" src="{FILES_PATH}/([^"]+)"')
# Imports of required modules; `import(…)` is loaded on demand.
_IMPORT = re.compile(
    r"""(?:^|[;}\s])(?:import|export)(?=[\s"'{*])(?:[\w$*{},\s]*?\bfrom)?\s*["'](\.{1,2}/[^"'\n]+)["']"""
)


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file; `packed` is its gzip form, or None if that is no smaller."""

    media_type: str
    content: bytes
    packed: bytes | None


class PageBundle:
    """All files of the page by their path in its folder, and `digest`, which any change of any of them changes."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self.digest = _digest(contents)
        at = f"{FILES_PATH}/{self.digest}/".encode()
        self.files = {
            path: _page_file(path, _addressed(path, content, contents, at)) for path, content in contents.items()
        }


def _digest(contents: Mapping[str, bytes]) -> str:
    whole = hashlib.sha256()
    for path, content in sorted(contents.items()):
        whole.update(f"{path}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()[:16]


def _addressed(path: str, content: bytes, contents: Mapping[str, bytes], at: bytes) -> bytes:
    """A file that names others, with the address at which they are; the index has the whole graph fetched at once."""
    suffix = posixpath.splitext(path)[1]
    if suffix not in _ADDRESSED:
        return content
    if path == INDEX:
        links = "".join(f'<link rel="modulepreload" href="{FILES_PATH}/{one}">\n' for one in _graph(contents))
        content = content.replace(b"</head>", links.encode() + b"</head>", 1)
    return content.replace(f'"{FILES_PATH}/'.encode(), b'"' + at)


def _graph(contents: Mapping[str, bytes]) -> list[str]:
    """Every module that the index needs, each after the one that first asks for it."""
    found: list[str] = []
    waiting = _ENTRY.findall(contents[INDEX].decode("utf-8", "replace"))
    while waiting:
        path = waiting.pop(0)
        if path in found or path not in contents:
            continue
        found.append(path)
        imported = _IMPORT.findall(contents[path].decode("utf-8", "replace"))
        waiting += [posixpath.normpath(posixpath.join(posixpath.dirname(path), one)) for one in imported]
    return found


def _page_file(path: str, content: bytes) -> PageFile:
    suffix = posixpath.splitext(path)[1]
    packed = None if suffix in _PACKED else gzip.compress(content, 9, mtime=0)
    return PageFile(MEDIA_TYPES[suffix], content, packed if packed and len(packed) < len(content) else None)


# The folder of the page's files, which may change while they are served.

FOLDER = Path(__file__).parent.parent / "page"
LOOK_SECONDS = 1.0
KEPT = 3  # bundles: a browser may still be fetching the one before an edit

State = tuple[tuple[str, int, int], ...]  # of every file: its path, when it was written, its bytes


class PageFolder:
    """The page's files, read at the first request, and again after a change; checked at most once a second. `clock`
    returns seconds.
    """

    def __init__(self, folder: Path = FOLDER, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._bundles: dict[str, PageBundle] = {}
        self._newest: PageBundle | None = None
        self._state: State = ()
        self._looked_at = 0.0
        self._looking = asyncio.Lock()

    async def newest(self) -> PageBundle:
        """Return the present files. Raises `RequestRefused` (not_found) if there are none."""
        async with self._looking:
            if self._newest is None or self._clock() - self._looked_at >= LOOK_SECONDS:
                await asyncio.to_thread(self._look)
                self._looked_at = self._clock()
        if self._newest is None:
            raise RequestRefused("not_found", "the page is missing from this installation: install LoCAL2 again")
        return self._newest

    async def bundle(self, digest: str) -> PageBundle | None:
        """Return the files of that digest, or None if they are no longer known."""
        if digest not in self._bundles:
            await self.newest()
        return self._bundles.get(digest)

    def _look(self) -> None:
        try:
            state = tuple(sorted(self._written()))
            if state == self._state:
                return
            contents = {path: (self._folder / path).read_bytes() for path, _, _ in state}
        except OSError:  # the files are being changed: the earlier ones are kept, and the next look finds the new ones
            return
        if INDEX in contents:
            self._keep(PageBundle(contents), state)

    def _keep(self, bundle: PageBundle, state: State) -> None:
        self._newest, self._state = bundle, state
        self._bundles.pop(bundle.digest, None)
        self._bundles[bundle.digest] = bundle
        while len(self._bundles) > KEPT:
            del self._bundles[next(iter(self._bundles))]

    def _written(self) -> Iterator[tuple[str, int, int]]:
        for folder, folders, names in os.walk(self._folder):
            folders[:] = [name for name in folders if not name.startswith((".", "_"))]
            for name in names:
                path = Path(folder, name)
                if path.suffix in MEDIA_TYPES and not name.startswith("."):
                    stat = path.stat()
                    yield path.relative_to(self._folder).as_posix(), stat.st_mtime_ns, stat.st_size
