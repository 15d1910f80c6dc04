"""A linear layer of a network: what goes in times its weights, plus a bias."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_LARGEST = 32_767  # of 16 bits
# A block has so many outputs, or half of them where there are many inputs: OpenBLAS multiplies without copying first
# where rows x inputs x outputs are at most a million, as for a question's 11 to 20 tokens then, too: .5 ms of 7.5 [m].
_BLOCK, _MANY_INPUTS = 64, 1_000
_FLOATS = 150_000  # of blocks that are multiplied at once by few rows
_MANY_ROWS, _OUTPUTS_AT_ONCE = 40, 192  # so many rows are multiplied by larger blocks


class LinearLayer:
    """Each weight is kept in 16 bits, as a share of the largest one of its output: half the memory of floats, and 256
    times as exact as with 8. No number of a text's vector changes by more than 3e-5, as little as float16 is off [m].

    They are multiplied block by block, each made floats where a core's own cache holds it: that costs no more time
    than to fetch the other half of them [m].
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
        """As few calls as may be, each for several blocks: a thread that waits for the interpreter does so at each."""
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
