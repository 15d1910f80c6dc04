"""The safetensors format: eight bytes of length, a JSON header, then the numbers, which are mapped, not read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from local.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LENGTH_BYTES = 8


def load_tensors(path: Path) -> dict[str, NDArray[np.float32]]:
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
