"""The libraries of the page are what their authors published, as `scripts/vendor_page.py` wrote it down."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "src" / "local" / "page"
VENDOR = PAGE / "vendor"
MANIFEST = json.loads((VENDOR / "vendor.json").read_text())


def test_every_vendored_file_is_in_the_manifest_with_its_hash_and_no_other_is_there() -> None:
    written_down = {row["file"]: row["sha256"] for row in MANIFEST["files"]}
    there = {path.relative_to(VENDOR).as_posix(): path.read_bytes() for path in VENDOR.rglob("*") if path.is_file()}
    del there["vendor.json"]
    assert {name: hashlib.sha256(content).hexdigest() for name, content in there.items()} == written_down


def test_each_package_has_its_version_its_integrity_and_its_licence_beside_it() -> None:
    for name, package in MANIFEST["packages"].items():
        rows = [row for row in MANIFEST["files"] if row["package"] == name]
        assert package["integrity"].startswith("sha512-")
        assert {row["version"] for row in rows} == {package["version"]}
        assert any(row["file"].startswith("licences/") for row in rows), name


def test_no_module_of_the_page_imports_what_a_browser_would_not_find() -> None:
    for path in PAGE.rglob("*.js"):
        for named in re.findall(r"""(?:\bfrom\s+|(?<!")\bimport\s*\(?)["']([^"'\n]+)["']""", path.read_text()):
            assert named.startswith("."), f"{path.name} imports {named}"
            assert (path.parent / named).is_file(), f"{path.name} imports {named}"


def test_the_page_makes_no_html_of_strings_and_sets_no_style_attribute() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|DOMParser|\beval\("
        r"|new Function"
        r"|\sstyle=|setAttribute\(\s*[\"']style|srcdoc"
    )
    preview = PAGE / "preview.html"  # draws in an origin of its own; test_previews.py attacks it
    for path in PAGE.rglob("*"):
        if path.is_file() and {VENDOR, preview}.isdisjoint({path, *path.parents}) and path.suffix in {".js", ".html"}:
            found = forbidden.search(path.read_text())
            assert found is None, f"{path.relative_to(PAGE)}: {found[0]}" if found else ""
