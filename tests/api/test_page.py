"""The page is delivered whole, of one version, with its rules, and nothing beside it."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.api.http import RequestRefused
from local.api.page import KEPT, LOOK_SECONDS, PageBundle, PageFolder
from local.api.routes import CONTENT_SECURITY_POLICY

System = Any  # of conftest.py
INDEX = b'<html><head>\n<script type="module" src="/app/main.js"></script></head><body></body></html>'
ADDRESS = re.compile(r'(?:src|href)="(/app/[^"]+)"')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "page"
    (folder / "vendor").mkdir(parents=True)
    (folder / "index.html").write_bytes(INDEX)
    (folder / "main.js").write_text(
        'import{a}from"./vendor/a.js";\nimport "./b.js"; const math = () => import("./math.js")'
    )
    (folder / "vendor" / "a.js").write_text('export { b as a } from "../b.js";')
    (folder / "b.js").write_text('import * as main from "./main.js"; export const b = "import \'./none.js\'";')
    (folder / "math.js").write_text("// for later")
    return folder


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def paths_of(index: bytes) -> list[str]:
    return [path.split("/", 3)[3] for path in ADDRESS.findall(index.decode())]


async def test_the_page_names_its_files_and_each_of_them_is_there_for_good(client: httpx.AsyncClient) -> None:
    index = await client.get("/")
    assert index.headers["content-type"] == "text/html; charset=utf-8"
    assert index.headers["cache-control"] == "no-cache"
    named = set(ADDRESS.findall(index.text))
    assert named and '"/app/main.js"' not in index.text
    for path in named:
        file = await client.get(path)
        assert (file.status_code, file.headers["x-content-type-options"]) == (200, "nosniff"), path
        assert "immutable" in file.headers["cache-control"]
        assert file.headers["content-security-policy"] == CONTENT_SECURITY_POLICY


async def test_a_page_that_is_known_is_not_sent_again(client: httpx.AsyncClient) -> None:
    tag = (await client.get("/")).headers["etag"]
    same = await client.get("/", headers={"if-none-match": f'"other", {tag}'})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    assert (await client.get("/", headers={"if-none-match": '"other"'})).status_code == 200


async def test_who_takes_gzip_gets_it(client: httpx.AsyncClient) -> None:
    for accepted, packed in [
        ("gzip, br", True),
        ("br;q=1, GZIP;q=0.5", True),
        ("*", True),
        ("", False),
        ("gzip;q=0", False),
        ("br", False),
    ]:
        plain = await client.get("/", headers={"accept-encoding": "identity"})
        answer = await client.get("/", headers={"accept-encoding": accepted})
        assert ("content-encoding" in answer.headers, answer.headers["vary"]) == (packed, "accept-encoding")
        assert answer.content == plain.content


async def test_nothing_but_the_page_s_files_is_served(system: System) -> None:
    async with system.frontend() as client:
        digest = ADDRESS.findall((await client.get("/")).text)[0].split("/")[2]
    escapes = [
        "../../api/app.py", "%2e%2e/%2e%2e/api/app.py", "..%2f..%2fapi/app.py", "/etc/passwd", "//etc/passwd",
        "..\\..\\api\\app.py", "", ".", "vendor", "vendor/", "./main.js", "vendor/../main.js", "main.js/", "main.js%00",
        "types/local2.d.ts", "MAIN.JS", "x" * 5000,
    ]  # fmt: skip
    async with system.frontend():
        for path in [
            *(f"{digest}/{one}" for one in escapes),
            "",
            digest,
            "../app.py",
            "zzz/main.js",
            f"{'0' * 16}/main.js",
        ]:
            assert await raw_status(system.port, f"/app/{path}") == 404, path


async def raw_status(port: int, path: str) -> int:
    """Of a path as it is written, which no client makes plain first."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n".encode())
    line = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return int(line.split()[1])


def test_the_whole_graph_is_fetched_at_once_and_what_is_for_later_is_not(folder: Path) -> None:
    contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}
    bundle = PageBundle(contents)
    index = bundle.files["index.html"].content
    assert paths_of(index) == ["main.js", "main.js", "vendor/a.js", "b.js"]
    assert index.count(b"modulepreload") == 3
    assert all(f"/app/{bundle.digest}/" in path for path in ADDRESS.findall(index.decode()))


async def test_files_of_other_kinds_and_hidden_ones_are_not_the_page_s(folder: Path) -> None:
    for name in (".secret.js", "notes.md", "x.py", ".git/a.js", "__pycache__/a.js", "types.d.ts"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    bundle = await PageFolder(folder).newest()
    assert sorted(bundle.files) == ["b.js", "index.html", "main.js", "math.js", "vendor/a.js"]


async def test_an_edit_is_served_without_a_restart_and_a_page_under_way_gets_what_it_began_with(folder: Path) -> None:
    clock = Clock()
    page = PageFolder(folder, clock)
    before = await page.newest()
    (folder / "b.js").write_text("// after")
    assert await page.newest() is before  # it looks once a second
    clock.now += LOOK_SECONDS
    after = await page.newest()
    assert after.digest != before.digest and after.files["b.js"].content == b"// after"
    assert await page.bundle(before.digest) is before and await page.bundle(after.digest) is after
    os.utime(folder / "b.js", (1, 1))
    clock.now += LOOK_SECONDS
    assert (await page.newest()).digest == after.digest  # the same content is the same version
    for round_ in range(KEPT):
        (folder / "b.js").write_text("// again" + "!" * round_)
        clock.now += LOOK_SECONDS
        await page.newest()
    assert await page.bundle(before.digest) is None


async def test_a_folder_in_the_middle_of_an_edit_changes_nothing(folder: Path) -> None:
    clock = Clock()
    page = PageFolder(folder, clock)
    before = await page.newest()
    (folder / "index.html").unlink()
    clock.now += LOOK_SECONDS
    assert await page.newest() is before
    with pytest.raises(RequestRefused, match="install LoCAL2 again"):
        await PageFolder(folder / "vendor").newest()


async def test_what_no_gzip_makes_smaller_is_sent_as_it_is() -> None:
    files = PageBundle({"index.html": INDEX, "a.png": b"\x89" * 900, "b.js": b"x", "c.js": b"x" * 900}).files
    assert files["a.png"].packed is None and files["b.js"].packed is None
    assert gzip.decompress(files["c.js"].packed or b"") == files["c.js"].content
