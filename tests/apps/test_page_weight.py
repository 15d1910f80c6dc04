"""What a browser has to fetch before the page can be used, packed as it is sent."""

from __future__ import annotations

import re

from local.apps.api.page_bundle import INDEX, MEDIA_TYPES, PageBundle
from local.apps.api.page_folder import FOLDER

FIRST_LOAD, ALL = 150_000, 400_000  # bytes


def test_the_page_is_small_at_first_and_with_all_that_comes_later() -> None:
    files = [path for path in FOLDER.rglob("*") if path.suffix in MEDIA_TYPES]
    bundle = PageBundle({path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in files})
    sizes = {path: len(file.packed or file.content) for path, file in bundle.files.items()}
    named = re.findall(rf'(?:src|href)="/app/{bundle.digest}/([^"]+)"', bundle.files[INDEX].content.decode())
    assert {"main.js", "vendor/preact.js", "style/tokens.css"} <= set(named)
    assert "vendor/highlight/tokenize.js" not in named, "colours are loaded when code is there"
    assert sum(sizes[path] for path in {INDEX, *named}) <= FIRST_LOAD
    assert sum(sizes.values()) <= ALL
