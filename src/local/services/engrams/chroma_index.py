"""The vector index: approximate nearest neighbours by Chroma, one collection for each user. Blocking; for threads."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.errors import IndexBroken
from local.services.engrams.vectors import VectorEntry

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

log = logging.getLogger(__name__)
_CONFIGURATION: Any = {"hnsw": {"space": "ip"}}  # the vectors are of length 1: the inner product is their cosine


class ChromaIndex:
    """One directory of Chroma's. It knows keys and vectors, no texts. Only one process may have it open: Chroma damages
    its files silently with two. Every method raises `IndexBroken` for whatever goes wrong inside."""

    def __init__(self, directory: Path) -> None:
        """Opens the directory, or makes it."""
        self._directory = directory
        self._free = threading.Lock()
        with self._guarded():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._client = _client(directory)
            self._collections = {each.name: each for each in self._client.list_collections()}
            for each in self._collections.values():
                each.get(limit=1, include=["embeddings"])  # reads the graph: what is broken shows now

    def add(self, entries: Sequence[VectorEntry]) -> None:
        """Put vectors in. The same key again is the same vector again."""
        import numpy as np

        by_user: dict[str, list[VectorEntry]] = {}
        for entry in entries:
            by_user.setdefault(entry.user_id, []).append(entry)
        with self._guarded():
            for user_id, theirs in by_user.items():
                stored = np.frombuffer(b"".join(entry.vector for entry in theirs), np.float16)
                rows = stored.astype(np.float32).reshape(len(theirs), -1)
                self._collection(user_id).upsert([entry.key for entry in theirs], rows)

    def search(self, user_id: str, vector: Any, limit: int) -> list[str]:
        """The keys of a user's vectors that are closest to a float32 one of shape (dimensions,), closest first."""
        with self._guarded():
            collection = self._collections.get(_name(user_id))
            if collection is None:
                return []
            return list(collection.query(query_embeddings=[vector], n_results=limit, include=[])["ids"][0])

    def keys(self) -> set[str]:
        """The keys of all vectors in the index."""
        with self._guarded():
            return {key for each in self._collections.values() for key in each.get(include=[])["ids"]}

    def close(self) -> None:
        """Let go of the files."""
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
        log.warning("%s: %r", self._directory, error)  # what Chroma says helps whoever reads logs, and no user
        return IndexBroken("the index of meanings does not work, and is made anew")

    def _collection(self, user_id: str) -> Collection:
        name = _name(user_id)
        if name not in self._collections:
            made = self._client.create_collection(name, embedding_function=None, configuration=_CONFIGURATION)
            self._collections[name] = made
        return self._collections[name]


def _client(directory: Path) -> Client:
    import chromadb
    from chromadb.api.client import Client
    from chromadb.config import Settings

    # No .env file of whatever directory we were started in may change this, and nothing is reported to anybody.
    settings = Settings(anonymized_telemetry=False, _env_file=None)
    client = chromadb.PersistentClient(path=str(directory), settings=settings)
    assert isinstance(client, Client), "its type says less than it is"
    return client


def _name(user_id: str) -> str:
    """A collection's name: any user id is possible, and nobody's is read from the files."""
    return hashlib.sha256(user_id.encode(errors="surrogatepass")).hexdigest()[:32]
