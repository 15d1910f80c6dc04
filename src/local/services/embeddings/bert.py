"""The forward pass of BERT on NumPy (Devlin et al. 2018), as MiniLM has it. Pure: token ids in, vectors out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from local.services.embeddings.rows_on_disk import RowsOnDisk

    Floats = NDArray[np.float32]
    Ints = NDArray[np.int64]

_BLOCK = 64  # columns
_ROWS = 128  # tokens, of all texts, whose widest vectors are in memory at once
_EPSILON = 1e-12
_MASKED = -1e9  # added to the attention scores of padding
WORDS = "embeddings.word_embeddings.weight"
_ERFC = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)  # Abramowitz and Stegun 7.1.26


class Bert:
    """`weights` by their names in the checkpoint; their shapes say how many layers there are and how wide they are.
    `words` are those of `WORDS`, a vector for each token, of which a text needs a few."""

    def __init__(self, weights: Mapping[str, Floats], words: Floats | RowsOnDisk, heads: int) -> None:
        """Copies the weights."""
        import numpy as np

        self._words, self._heads = words, heads
        self._layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
        parts = _joined(weights, self._layers)
        is_matrix = {name: name.startswith("encoder.") and some[0].ndim == 2 for name, some in parts.items()}
        self._weights = {name: np.concatenate(some) for name, some in parts.items() if not is_matrix[name]}
        self._blocks = _in_blocks({name: some for name, some in parts.items() if is_matrix[name]})

    def mean_pooled(self, token_ids: Ints, is_token: Ints) -> Floats:
        """The mean over each text's tokens of the last layer: (texts, width) for two inputs of (texts, tokens).

        `is_token` is 1 for a token and 0 for padding.
        """
        import numpy as np

        hidden = self._embedded(token_ids)
        penalty = ((1 - is_token) * _MASKED).astype(np.float32)[:, None, None, :]
        for number in range(self._layers):
            layer = f"encoder.layer.{number}."
            hidden += self._attended(hidden, penalty, layer + "attention.")
            hidden = self._norm(hidden, layer + "attention.output")
            hidden += self._fed_forward(hidden, layer)
            hidden = self._norm(hidden, layer + "output")
        weights = is_token.astype(np.float32)[:, :, None]
        return np.asarray((hidden * weights).sum(axis=1) / weights.sum(axis=1), dtype=np.float32)

    def _embedded(self, token_ids: Ints) -> Floats:
        part = "embeddings.{}_embeddings.weight".format
        positions = self._weights[part("position")][: token_ids.shape[1]]
        return self._norm(self._words[token_ids] + positions + self._weights[part("token_type")][0], "embeddings")

    def _attended(self, hidden: Floats, penalty: Floats, name: str) -> Floats:
        texts, tokens, width = hidden.shape
        inputs = self._linear(hidden, name + "self").reshape(texts, tokens, 3, self._heads, -1)
        query, key, value = inputs.transpose(2, 0, 3, 1, 4)
        scores = query @ key.transpose(0, 1, 3, 2)
        scores /= (width // self._heads) ** 0.5
        scores += penalty
        mixed = _softmax(scores) @ value
        return self._linear(mixed.transpose(0, 2, 1, 3).reshape(texts, tokens, width), name + "output.dense")

    def _fed_forward(self, hidden: Floats, layer: str) -> Floats:
        import numpy as np

        rows = hidden.reshape(-1, hidden.shape[-1])
        fed = np.empty_like(rows)
        for start in range(0, len(rows), _ROWS):
            inner = _gelu(self._linear(rows[start : start + _ROWS], layer + "intermediate.dense"))
            fed[start : start + _ROWS] = self._linear(inner, layer + "output.dense")
        return fed.reshape(hidden.shape)

    def _linear(self, inputs: Floats, name: str) -> Floats:
        import numpy as np

        blocks = self._blocks[f"{name}.weight"]
        count, width, block = blocks.shape
        # All rows of all texts at once: NumPy would do a stack of texts one by one, three times as slow.
        rows = inputs.reshape(1, -1, width)
        outputs = np.empty((rows.shape[1], count, block), np.float32)
        np.matmul(rows, blocks, out=outputs.transpose(1, 0, 2))
        products = outputs.reshape(*inputs.shape[:-1], -1)
        products += self._weights[f"{name}.bias"]
        return products

    def _norm(self, inputs: Floats, name: str) -> Floats:
        import numpy as np

        width = inputs.shape[-1]
        normed: Floats = inputs - inputs.sum(axis=-1, keepdims=True) / width
        normed /= np.sqrt(np.vecdot(normed, normed)[..., None] / width + _EPSILON)
        normed *= self._weights[f"{name}.LayerNorm.weight"]
        normed += self._weights[f"{name}.LayerNorm.bias"]
        return normed


def _joined(weights: Mapping[str, Floats], layers: int) -> dict[str, list[Floats]]:
    """The parts of which each weight is put together: query, key and value of a layer are one product, not three."""
    parts = {name: [weight] for name, weight in weights.items()}
    for number in range(layers):
        name = f"encoder.layer.{number}.attention.self."
        for kind in ("weight", "bias"):
            three = [parts.pop(f"{name}{part}.{kind}") for part in ("query", "key", "value")]
            parts[f"{name}{kind}"] = [part for (part,) in three]
    return parts


def _in_blocks(matrices: Mapping[str, Sequence[Floats]]) -> dict[str, Floats]:
    """(blocks, inputs, outputs of a block) of each matrix (outputs, inputs): as they are multiplied, and in blocks that
    a core's own cache holds. A short text takes a fifth longer with whole ones, and more than twice as long as the
    checkpoint has them [m]. They lie in one array because the kernel gives huge pages to what is large. Parts are put
    together one matrix at a time: what is freed again stays with the process."""
    import numpy as np

    room = np.empty(sum(part.size for parts in matrices.values() for part in parts), np.float32)
    blocks: dict[str, Floats] = {}
    start = 0
    for name, parts in matrices.items():
        matrix = np.concatenate(parts)
        outputs, inputs = matrix.shape
        width = gcd(outputs, _BLOCK)
        turned = matrix.reshape(outputs // width, width, inputs).transpose(0, 2, 1)
        blocks[name] = room[start : start + turned.size].reshape(turned.shape)
        blocks[name][:] = turned
        start += turned.size
    return blocks


def _softmax(scores: Floats) -> Floats:
    """In place."""
    import numpy as np

    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def _gelu(inputs: Floats) -> Floats:
    """x·Φ(x) = max(x, 0) - |x|·erfc(|x|/√2)/2, off by at most 1.5e-7: NumPy has no error function."""
    import numpy as np

    size = np.abs(inputs)
    t = 1 / (1 + np.float32(0.3275911 * 0.5**0.5) * size)
    tail = np.zeros_like(size)
    for coefficient in _ERFC:
        tail += coefficient / 2
        tail *= t
    tail *= size
    size *= size
    size *= -0.5
    tail *= np.exp(size, out=size)
    activated: Floats = np.maximum(inputs, 0)
    activated -= tail
    return activated
