"""The forward pass of BERT on NumPy (Devlin et al. 2018), as MiniLM has it. Pure: token ids in, vectors out."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Ints = NDArray[np.int64]

_BLOCK = 128  # columns
_EPSILON = 1e-12
_MASKED = -1e9  # added to the attention scores of padding


class Bert:
    """`weights` by their names in the checkpoint; their shapes say how many layers there are and how wide they are."""

    def __init__(self, weights: Mapping[str, Floats], heads: int) -> None:

        self._heads = heads
        # The matrices of the layers lie as they are multiplied, and in blocks that a core's own cache holds: a short
        # text takes a fifth longer with whole ones, and more than twice as long as the checkpoint has them [m].
        self._weights = {
            name: _in_blocks(weight) if name.startswith("encoder.") and weight.ndim == 2 else weight
            for name, weight in weights.items()
        }
        self._layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))

    def mean_pooled(self, token_ids: Ints, is_token: Ints) -> Floats:
        """The mean over each text's tokens of the last layer: (texts, width) for two inputs of (texts, tokens).

        `is_token` is 1 for a token and 0 for padding.
        """
        import numpy as np

        hidden = self._embedded(token_ids)
        penalty = ((1 - is_token) * _MASKED).astype(np.float32)[:, None, None, :]
        for number in range(self._layers):
            layer = f"encoder.layer.{number}."
            hidden = self._norm(
                hidden + self._attended(hidden, penalty, layer + "attention."), layer + "attention.output"
            )
            inner = _gelu(self._linear(hidden, layer + "intermediate.dense"))
            hidden = self._norm(hidden + self._linear(inner, layer + "output.dense"), layer + "output")
        weights = is_token.astype(np.float32)[:, :, None]
        return np.asarray((hidden * weights).sum(axis=1) / weights.sum(axis=1), dtype=np.float32)

    def _embedded(self, token_ids: Ints) -> Floats:
        part = "embeddings.{}_embeddings.weight".format
        words = self._weights[part("word")][token_ids]
        positions = self._weights[part("position")][: token_ids.shape[1]]
        return self._norm(words + positions + self._weights[part("token_type")][0], "embeddings")

    def _attended(self, hidden: Floats, penalty: Floats, name: str) -> Floats:
        texts, tokens, width = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{name}self.{part}").reshape(texts, tokens, self._heads, -1).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / (width // self._heads) ** 0.5 + penalty
        mixed = _softmax(scores) @ value
        return self._linear(mixed.transpose(0, 2, 1, 3).reshape(texts, tokens, width), name + "output.dense")

    def _linear(self, inputs: Floats, name: str) -> Floats:
        blocks = self._weights[f"{name}.weight"]
        # All rows of all texts at once: NumPy would do a stack of texts one by one, three times as slow.
        products: Floats = inputs.reshape(1, -1, blocks.shape[1]) @ blocks
        return products.transpose(1, 0, 2).reshape(*inputs.shape[:-1], -1) + self._weights[f"{name}.bias"]

    def _norm(self, inputs: Floats, name: str) -> Floats:
        import numpy as np

        centred = inputs - inputs.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + _EPSILON)
        normed: Floats = scaled * self._weights[f"{name}.LayerNorm.weight"] + self._weights[f"{name}.LayerNorm.bias"]
        return normed


def _in_blocks(weight: Floats) -> Floats:
    """(blocks, inputs, outputs of a block) of a matrix (outputs, inputs)."""
    import numpy as np

    outputs, inputs = weight.shape
    width = gcd(outputs, _BLOCK)
    return np.ascontiguousarray(weight.reshape(outputs // width, width, inputs).transpose(0, 2, 1))


def _softmax(scores: Floats) -> Floats:
    import numpy as np

    powers: Floats = np.exp(scores - scores.max(axis=-1, keepdims=True))
    powers /= powers.sum(axis=-1, keepdims=True)
    return powers


def _gelu(inputs: Floats) -> Floats:
    """x·Φ(x), with the error function from Abramowitz and Stegun 7.1.26 (off by at most 1.5e-7): NumPy has none."""
    import numpy as np

    size = np.abs(inputs) * np.float32(0.5**0.5)
    t = 1 / (1 + np.float32(0.3275911) * size)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    activated: Floats = inputs * 0.5 * (1 + np.sign(inputs) * (1 - series * np.exp(-size * size)))
    return activated
