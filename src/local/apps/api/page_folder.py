"""The folder of the page's files, which may change while they are served."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from local.apps.api.errors import RequestRefused
from local.apps.api.page_bundle import INDEX, MEDIA_TYPES, PageBundle

FOLDER = Path(__file__).parent.parent / "page"
LOOK_SECONDS = 1.0
KEPT = 3  # bundles: a browser may still be fetching the one before an edit

State = tuple[tuple[str, int, int], ...]  # of every file: its path, when it was written, its bytes


class PageFolder:
    """Reads the files when they are first asked for, and again after a change; it looks at most once a second. `clock`
    gives seconds."""

    def __init__(self, folder: Path = FOLDER, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._bundles: dict[str, PageBundle] = {}
        self._newest: PageBundle | None = None
        self._state: State = ()
        self._looked_at = 0.0
        self._looking = asyncio.Lock()

    async def newest(self) -> PageBundle:
        """The files as they are. Raises `RequestRefused` (not_found) where there are none."""
        async with self._looking:
            if self._newest is None or self._clock() - self._looked_at >= LOOK_SECONDS:
                await asyncio.to_thread(self._look)
                self._looked_at = self._clock()
        if self._newest is None:
            raise RequestRefused("not_found", "the page is missing from this installation: install LoCAL2 again")
        return self._newest

    async def bundle(self, digest: str) -> PageBundle | None:
        """The files that have that digest, or None if they are not known any more."""
        if digest not in self._bundles:
            await self.newest()
        return self._bundles.get(digest)

    def _look(self) -> None:
        try:
            state = tuple(sorted(self._written()))
            if state == self._state:
                return
            contents = {path: (self._folder / path).read_bytes() for path, _, _ in state}
        except OSError:  # somebody is at work there: what was read before still holds, and the next look finds the rest
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
