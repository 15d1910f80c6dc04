import gzip
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from local.core.errors import ToolError
from local.web.fetch import read_body


async def chunked(body: bytes, size: int) -> AsyncIterator[bytes]:
    for offset in range(0, len(body), size):
        yield body[offset : offset + size]


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_a_gzip_body_is_the_same_however_it_arrives(size):
    text = b"some text " * 100
    assert await read_body(chunked(gzip.compress(text), size), "gzip", 1000) == text
    assert await read_body(chunked(text, size), "", 1000) == text


async def test_a_gzip_body_may_break_off_or_be_followed_by_junk():
    packed = gzip.compress(b"hello " * 10)
    assert await read_body(chunked(packed[:-4], 10), "gzip", 100) == b"hello " * 10
    assert await read_body(chunked(packed + b"junk" * 9, 10), "gzip", 100) == b"hello " * 10


async def test_a_body_may_be_as_large_as_the_cap_and_not_larger():
    assert await read_body(chunked(b"x" * 100, 9), "", 100)
    with pytest.raises(ToolError) as caught:
        await read_body(chunked(b"x" * 101, 9), "", 100)
    assert caught.value.kind == "too_large"


async def test_a_gzip_bomb_never_takes_more_memory_than_the_cap():
    bomb = gzip.compress(bytes(20_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(ToolError, match="10,000 bytes"):
            await read_body(chunked(bomb, len(bomb)), "gzip", 10_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 500_000
