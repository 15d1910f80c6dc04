"""Make `src/local/page/vendor` anew: `python3 scripts/vendor_page.py`, or `--check` to compare only.

The page's libraries are what their authors published on npm, byte for byte but for three things that a browser without
a build needs: bare imports become paths, a script becomes a module that exports what it defines, and the comments that
point to source maps go. Only who changes a version runs this (it needs npm); `vendor.json`, which it writes, has each
file's package, version, licence and hashes.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import posixpath
import re
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

VENDOR = Path(__file__).resolve().parent.parent / "src" / "local" / "page" / "vendor"
MANIFEST = "vendor.json"

_BARE = re.compile(rb"""(\bfrom|\bimport)(\s*)(["'])([@a-z][^"'./]*(?:/[^"']*)?)\3""")
_SOURCE_MAP = re.compile(rb"\n?//# sourceMappingURL=.*\s*$")


@dataclass(frozen=True, slots=True)
class Package:
    """One package of the npm registry: `files` are paths in it (a folder ends with a slash) and where each goes."""

    name: str
    version: str
    integrity: str
    licence: str
    files: dict[str, str]


PACKAGES = (
    Package(
        "preact",
        "11.2.0",
        "sha512-/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg==",
        "MIT",
        {
            "dist/preact.mjs": "preact.js",
            "hooks/dist/hooks.mjs": "preact_hooks.js",
            "debug/dist/debug.mjs": "preact_debug.js",
            "devtools/dist/devtools.mjs": "preact_devtools.js",
            "LICENSE": "licences/preact.txt",
        },
    ),
    Package(
        "htm",
        "3.1.1",
        "sha512-983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        "Apache-2.0",
        {"dist/htm.mjs": "htm.js", "LICENSE": "licences/htm.txt"},
    ),
    Package(
        "@preact/signals",
        "2.11.4",
        "sha512-Rb+5RPo9gWSaHtzJeauhHxiC8KP/IF2DEPkHPEOGOnuy2wnJzRqyeLRankUCYd6ADqtxS6GnWGv6Ie343d8aYw==",
        "MIT",
        {"dist/signals.mjs": "signals.js", "LICENSE": "licences/signals.txt"},
    ),
    Package(
        "@preact/signals-core",
        "1.14.5",
        "sha512-vcRv7Ityz5JVmeiVqIluLFzT/PDS/AlhHUpw3/aUWqcVUs6bDGIPXE/6RSC4evBNWYvnniozg5Syfj33al3gkg==",
        "MIT",
        {"dist/signals-core.mjs": "signals_core.js", "LICENSE": "licences/signals_core.txt"},
    ),
    Package(
        "marked",
        "18.2.1",
        "sha512-ii4bxCTCqqwpT86XZWgJNs+ZnAIZksmLGYMViWA7PDIXYIeNo1x6cDdX3JOip9NM/cI6p8z57FxliACboTruMA==",
        "MIT",
        {"lib/marked.esm.js": "marked.js", "LICENSE": "licences/marked.txt"},
    ),
    Package(
        "@speed-highlight/core",
        "2.1.0",
        "sha512-KLoDVy82Hm3N09SLf1L5HoqPo+oIPsPn6C5K3Iz3VTSFygs6vV1Rn3kLyV+D5uyMW3wXtGGFzfJ+kKcFtSSBUQ==",
        "CC0-1.0",
        {
            "dist/tokenize.js": "highlight/tokenize.js",
            **{
                f"dist/languages/{name}.js": f"highlight/languages/{name}.js"
                for name in (
                    *("asm", "bash", "c", "css", "csv", "diff", "docker", "git", "go", "html", "http", "ini", "java"),
                    *("js", "jsdoc", "json", "lua", "make", "md", "pl", "plain", "py", "regex", "rs", "sql", "todo"),
                    *("toml", "ts", "uri", "xml", "yaml"),
                )
            },
            "LICENSE": "licences/speed_highlight.txt",
        },
    ),
    Package(
        "temml",
        "0.13.5",
        "sha512-aPkDDgunanpLNL0ql32HbolqLep+w8DRcVXRql7rWrMt/PhczdLgL4UBYYVU3BYjCNjkGq4EqwIicu/zWr1iOg==",
        "MIT",
        {"dist/temml.min.js": "temml.js", "LICENSE": "licences/temml.txt"},
    ),
)

IMPORTS = {
    "preact": "preact.js",
    "preact/hooks": "preact_hooks.js",
    "preact/devtools": "preact_devtools.js",
    "@preact/signals-core": "signals_core.js",
}
SCRIPTS = {"temml.js": "temml"}
"""What is published as a script that defines one name: the name, which the module exports."""


def main() -> int:
    """Write the folder, or compare with it; the exit status is 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    wanted = make()
    if not parser.parse_args().check:
        for path, content in wanted.items():
            (VENDOR / path).parent.mkdir(parents=True, exist_ok=True)
            (VENDOR / path).write_bytes(content)
    there = {path.relative_to(VENDOR).as_posix(): path.read_bytes() for path in VENDOR.rglob("*") if path.is_file()}
    wrong = sorted(path for path in wanted.keys() | there.keys() if wanted.get(path) != there.get(path))
    for path in wrong:
        print(f"{path}: {'is not of any package' if path not in wanted else 'differs from what was published'}")
    return 1 if wrong else 0


def make() -> dict[str, bytes]:
    """Every file of the folder, the manifest included. Raises `ValueError` where a package is not what it was."""
    files: dict[str, bytes] = {}
    rows = []
    for package in PACKAGES:
        there = _contents(package)
        for path, target in package.files.items():
            files[target] = _for_browsers(there[path], target) if target.endswith(".js") else there[path]
            rows.append(
                {
                    "file": target,
                    "package": package.name,
                    "version": package.version,
                    "licence": package.licence,
                    "of": path,
                    "sha256": hashlib.sha256(files[target]).hexdigest(),
                }
            )
    packages = {package.name: {"version": package.version, "integrity": package.integrity} for package in PACKAGES}
    files[MANIFEST] = (json.dumps({"packages": packages, "files": rows}, indent=1) + "\n").encode()
    return files


def _contents(package: Package) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, f"{package.name}@{package.version}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        packed = next(Path(folder).glob("*.tgz")).read_bytes()
    found = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
    if found != package.integrity:
        raise ValueError(f"{package.name} {package.version} is {found}, not {package.integrity} as it was")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return {member.name.partition("/")[2]: _read(archive, member) for member in members}


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file else b""


def _for_browsers(content: bytes, target: str) -> bytes:
    """A module with paths for bare imports. Raises `KeyError` for one of a library that is not vendored."""

    def as_path(found: re.Match[bytes]) -> bytes:
        path = posixpath.relpath(IMPORTS[found[4].decode()], posixpath.dirname(target) or ".")
        return b'%b%b"./%b"' % (found[1], found[2], path.encode())

    exported = f"\nexport default {SCRIPTS[target]};\n".encode() if target in SCRIPTS else b""
    return _BARE.sub(as_path, _SOURCE_MAP.sub(b"\n", content)) + exported


if __name__ == "__main__":
    sys.exit(main())
