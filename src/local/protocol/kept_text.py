"""The whole of a text that was too long to be told."""

from __future__ import annotations

KeptText = dict[str, str | int]
"""Where the whole of a text lies that was cut off: `$blob` is the name of the blob, `size` its bytes in UTF-8,
`characters` how many they are, and `shown` how many of them stand in the result."""
