"""A vector index for very many vectors: approximate nearest neighbours by Chroma, in its own directory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.core.errors import IndexBroken
from local.memory.vectors import VectorEntry

if TYPE_CHECKING:
    from chromadb.api.client import Client

log = logging.getLogger(__name__)
_CONFIGURATION: Any = {"hnsw": {"space": "ip"}}  # the vectors are of length 1: the inner product is their cosine
_NAME = "vectors"


_BATCH = 500


class ChromaIndex:
    """A `VectorIndex` on disk for a user with very many vectors. Only one process may have the directory open: Chroma
    damages its files silently with two. Every method raises `IndexBroken` for whatever goes wrong inside."""

    def __init__(self, directory: Path) -> None:
        """Open the directory, or make it. One whose opening has ended the process is not opened again."""
        self.directory = directory
        self._free = threading.Lock()
        opening = directory / "opening"
        if opening.exists():
            raise IndexBroken(f"{directory}: opening it ended the process before")
        with self._guarded():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            opening.touch()
            self._client = _client(directory)
            self._collection = self._client.get_or_create_collection(
                _NAME, embedding_function=None, configuration=_CONFIGURATION
            )
            self._collection.get(limit=1, include=["embeddings"])  # reads the graph, so that damage shows now
            opening.unlink()

    def add(self, entries: Sequence[VectorEntry]) -> None:
        """See `VectorIndex`."""
        import numpy as np

        for start in range(0, len(entries), _BATCH):
            some = entries[start : start + _BATCH]
            stored = np.frombuffer(b"".join(entry.vector for entry in some), np.float16)
            rows = stored.astype(np.float32).reshape(len(some), -1)
            with self._guarded():
                self._collection.upsert([entry.key for entry in some], rows)

    def search(self, vector: Any, limit: int) -> list[str]:
        """See `VectorIndex`."""
        with self._guarded():
            return list(self._collection.query(query_embeddings=[vector], n_results=limit, include=[])["ids"][0])

    def keys(self) -> set[str]:
        """See `VectorIndex`."""
        with self._guarded():
            return set(self._collection.get(include=[])["ids"])

    def close(self) -> None:
        """See `VectorIndex`."""
        with self._guarded():
            self._client.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Let one thread in at a time, and turn every failure into `IndexBroken`."""
        try:
            with self._free:
                yield
        except Exception as error:
            raise self._broken(error) from error
        except BaseException as error:
            # A panic in Chroma's Rust code is no Exception, and its class cannot be imported.
            if type(error).__name__ == "PanicException":
                raise self._broken(error) from error
            raise

    def _broken(self, error: BaseException) -> IndexBroken:
        log.warning("%s: %r", self.directory, error)  # Chroma's message helps readers of logs, but not users
        return IndexBroken("the index of meanings does not work, and is made anew")


def _client(directory: Path) -> Client:
    import chromadb
    from chromadb.api.client import Client
    from chromadb.config import Settings

    # No .env file of the current folder may change this, and no usage data is sent.
    settings = Settings(anonymized_telemetry=False, _env_file=None)
    client = chromadb.PersistentClient(path=str(directory), settings=settings)
    assert isinstance(client, Client), "its type says less than it is"
    return client
