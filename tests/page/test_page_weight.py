"""What a browser has to fetch before the page can be used, packed as it is sent."""

from __future__ import annotations

import re

from local.api.page import FOLDER, INDEX, MEDIA_TYPES, PageBundle

FIRST_LOAD, FIRST_VIEW, ALL = 145_000, 155_000, 418_000  # bytes; a view is what is loaded and what it fetches by itself
UNFETCHED = re.compile(
    r"types/|icon-\d+\.png|vendor/(licences/|vendor\.json|preact_(debug|devtools)\.js)"
)  # of no use to a visitor
DIALOGS = "views/dialogs.js"  # what a view without a conversation fetches when it has time


def contents() -> dict[str, bytes]:
    files = [path for path in FOLDER.rglob("*") if path.suffix in MEDIA_TYPES]
    return {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in files}


def named(bundle: PageBundle) -> set[str]:
    """What the index of the page has a browser fetch."""
    index = bundle.files[INDEX].content.decode()
    return {INDEX, *re.findall(rf'(?:src|href)="/app/{bundle.digest}/([^"]+)"', index)}


def packed(bundle: PageBundle, paths: set[str]) -> int:
    files = [bundle.files[path] for path in paths]
    return sum(len(file.packed or file.content) for file in files)


def test_the_page_is_small_at_first_and_with_all_that_comes_later() -> None:
    bundle = PageBundle(contents())
    first = named(bundle)
    assert {"main.js", "vendor/preact.js", "style/tokens.css"} <= first
    later = {"vendor/highlight/tokenize.js", "views/inspector.js", DIALOGS, "views/palette.js"}
    assert not later & first, "colours are loaded when code is there, and what opens is when there is time"
    assert packed(bundle, first) <= FIRST_LOAD
    assert packed(bundle, {path for path in bundle.files if not UNFETCHED.match(path)}) <= ALL


def test_what_a_first_view_fetches_by_itself_is_small_too() -> None:
    bundle = PageBundle(contents())
    script = f'<script type="module" src="/app/{DIALOGS}"></script></head>'
    opened = PageBundle({**contents(), INDEX: script.encode()})
    assert "views/palette.js" in named(opened)
    assert packed(bundle, named(bundle) | named(opened)) <= FIRST_VIEW
