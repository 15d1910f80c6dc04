"""The first estimate of a prompt is within a tenth of what real tokenizers count."""

from __future__ import annotations

import pytest

from local.generator.context import TokenMeter, size_of

ENGLISH = (
    "The quick brown fox jumps over the lazy dog. I am severely allergic to hazelnuts, and my birthday is next week, so"
    " please suggest a cake that I could bake with my daughter on Saturday afternoon. We have flour, butter, eggs and"
    " sugar at home, but no chocolate. "
) * 4


@pytest.mark.parametrize("counted", [233, 229])  # by Qwen2.5 and by SmolLM2
def test_english(counted: int) -> None:
    assert abs(TokenMeter().tokens(size_of(ENGLISH)) / counted - 1) < 0.1
