"""The forward pass of BERT on NumPy (Devlin et al. 2018), as MiniLM has it. Pure: token ids in, vectors out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING

from local.services.embeddings.linear_layer import LinearLayer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from local.services.embeddings.rows_on_disk import RowsOnDisk

    Floats = NDArray[np.float32]

_ROWS = 128  # tokens, of all texts, whose widest vectors are in memory at once
_EPSILON = 1e-12
WORDS = "embeddings.word_embeddings.weight"
_ERFC = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)  # Abramowitz and Stegun 7.1.26
_ATTENDING = ("query", "key", "value")


class Bert:
    """`weights` by their names in the checkpoint; their shapes say how many layers there are and how wide they are.
    `words` are those of `WORDS`, a vector for each token, of which a text needs a few."""

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
        """In place, with what was there added."""
        for start in range(0, len(hidden), _ROWS):
            rows = hidden[start : start + _ROWS]
            rows += self._linear[layer + "output.dense"](_gelu(self._linear[layer + "intermediate.dense"](rows)))

    def _norm(self, rows: Floats, name: str) -> None:
        """In place."""
        import numpy as np

        width = rows.shape[-1]
        rows -= rows.sum(axis=-1, keepdims=True) / width
        rows /= np.sqrt(np.vecdot(rows, rows)[:, None] / width + _EPSILON)
        rows *= self._weights[f"{name}.LayerNorm.weight"]
        rows += self._weights[f"{name}.LayerNorm.bias"]


def _layer(weights: Mapping[str, Floats], name: str) -> LinearLayer:
    """Of an attention, query, key and value are one product, not three."""
    import numpy as np

    names = [f"{name}.{part}" for part in _ATTENDING] if name.endswith("self") else [name]
    matrices, biases = ([weights[f"{each}.{kind}"] for each in names] for kind in ("weight", "bias"))
    return LinearLayer(np.concatenate(matrices), np.concatenate(biases))


def _softmax(scores: Floats) -> Floats:
    """In place."""
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
