"""Searches through programs, done as the process does them."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import ToolError
from local.files.code import CodeJob, CodeLimits, Verb
from local.files.code_worker import answer, findings

BASKET = """\
class Basket:
    def total(self):
        return sum(self.prices)


def total(prices):
    print("total", prices)
    return sum(prices)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    for name, text in {
        "src/basket.py": BASKET, "src/app.ts": "export class Shop { total(): number { return 1 } }\n",
        "notes.md": "The total is due.\n", "build/out.py": "total = 1\n", "src/keep.log": "total kept\n",
        "src/drop.log": "total dropped\n", ".git/config": "total\n", ".gitignore": "build/\n*.log\n[bad\n",
        "src/.gitignore": "!keep.log\n", "src/.ignore": "\n# nothing\n",
    }.items():  # fmt: skip
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    (work / "data.bin").write_bytes(b"total\0")
    return work


def look(root: Path, verb: Verb, wanted: str, path: str = "", **fields: Any) -> list[str]:
    parts = tuple(part for part in path.split("/") if part)
    job = CodeJob(verb, str(root), parts, fields.pop("limits", CodeLimits()), wanted, **fields)
    return findings(job).text.splitlines()


def test_lines_are_found_in_all_files_but_ignored_ones(root: Path) -> None:
    assert look(root, "text", "total") == [
        "6 lines in 4 of 7 files", "notes.md", " 1: The total is due.", "src/app.ts",
        " 1: export class Shop { total(): number { return 1 } }", "src/basket.py", " 2:     def total(self):",
        " 6: def total(prices):", ' 7:     print("total", prices)', "src/keep.log", " 1: total kept",
    ]  # fmt: skip


def test_a_search_is_of_lines_and_can_be_narrowed(root: Path) -> None:
    searches: list[tuple[str, dict[str, Any], list[str]]] = [
        (r"^def \w+", {}, [" 6: def total(prices):"]),
        ("DEF T", {"ignore_case": True, "pattern": "*.py"}, [" 2:     def total(self):", " 6: def total(prices):"]),
        ("total", {"path": "build"}, [" 1: total = 1"]),
        ("total", {"path": "src/drop.log"}, [" 1: total dropped"]),
        (r"self.prices\)$", {"path": "src"}, [" 3:         return sum(self.prices)"]),
        ("nowhere", {}, []),
        ("x*", {"path": "notes.md"}, [" 1: The total is due."]),
    ]
    for wanted, fields, places in searches:
        assert [line for line in look(root, "text", wanted, **fields)[1:] if line.startswith(" ")] == places


def test_a_search_that_finds_too_much_says_how_to_narrow_it(root: Path) -> None:
    (root / "many.txt").write_text("hit\n" * 30)
    heading, *lines = look(root, "text", "hit", limits=CodeLimits(hits=10))
    assert "10 lines" in heading and "more than 10: name a folder" in heading
    assert lines == ["many.txt", *(f" {number}: hit" for number in range(1, 11))]
    late = look(root, "text", "hit", limits=CodeLimits(seconds=-1))
    assert "-1 s were over" in late[0]
    assert "-1 s were over" in look(root, "structure", "", limits=CodeLimits(seconds=-1))[0]
    assert "these are 1 files" in look(root, "structure", "", limits=CodeLimits(files=1))[0]


def test_long_lines_are_cut_around_the_hit(root: Path) -> None:
    (root / "long.js").write_text(f"{'a' * 5000}NEEDLE{'b' * 5000}\n")
    line = look(root, "text", "NEEDLE")[-1]
    assert "NEEDLE" in line and len(line) < 250


def test_large_files_are_left_out_and_counted(root: Path) -> None:
    assert "1 larger ones were not read" in look(root, "text", "sum", limits=CodeLimits(file_bytes=60))[0]


def test_words_are_found_in_whatever_case_also_where_letters_are_not_ascii(root: Path) -> None:
    for wanted, line in (
        ("kelvin", "5 \u212aELVIN"),
        ("ma\u017fs", "MASS"),
        ("\u00e4pfel", "\u00c4PFEL"),
        ("a b", "A B"),
    ):
        (root / "case.txt").write_text(f"one\n{line}\n")
        assert look(root, "text", wanted, ignore_case=True, pattern="case.txt")[1:] == ["case.txt", f" 2: {line}"]
        assert look(root, "text", wanted, pattern="case.txt")[1:] == []


def test_of_a_file_that_is_no_text_the_beginning_alone_is_read(root: Path) -> None:
    (root / "big.bin").write_bytes(b"\0" + b"x" * 100_000)
    (root / "big.txt").write_text("sum\n" * 25_000)
    assert "larger" not in look(root, "text", "sum", pattern="big.bin")[0]
    assert "25000 lines" in look(root, "text", "sum", pattern="big.txt", limits=CodeLimits(hits=30_000))[0]


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "canary.py").write_text("class Canary: pass\n")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "file.py").symlink_to(tmp_path / "outside" / "canary.py")
    (root / "src" / ".gitignore").unlink()
    (root / "src" / ".gitignore").symlink_to(tmp_path / "outside" / "canary.py")
    os.mkfifo(root / "pipe.py")
    for verb in ("text", "definitions", "structure"):
        assert "canary" not in "\n".join(look(root, verb, "Canary")[1:]).casefold()
    for path in ("folder", "file.py"):
        with pytest.raises(ToolError) as refused:
            look(root, "text", "Canary", path)
        assert refused.value.kind == "link"


def test_definitions_are_found_by_name_and_by_the_class_around_it(root: Path) -> None:
    assert look(root, "definitions", "total") == [
        "3 definitions of total", "src/app.ts:1 total(): number", "src/basket.py:2-3 def total(self)",
        "src/basket.py:6-8 def total(prices)",
    ]  # fmt: skip
    assert look(root, "definitions", "Basket.total") == [
        "1 definitions of Basket.total", "src/basket.py:2-3 def total(self)"
    ]  # fmt: skip
    assert look(root, "definitions", "bask") == [
        "no definition of bask; what is called like it:", "src/basket.py:1-3 class Basket"
    ]  # fmt: skip
    assert look(root, "definitions", "zzz") == ["no definition of zzz in 2 files of programs"]


def test_a_folder_is_told_by_its_symbols_and_a_large_one_by_its_folders(root: Path) -> None:
    assert look(root, "structure", "", "src") == [
        "2 files of programs, 5 symbols", "src/app.ts", " 1 class Shop", "  1 total(): number", "src/basket.py",
        " 1-3 class Basket", "  2-3 def total(self)", " 6-8 def total(prices)",
    ]  # fmt: skip
    for number in range(40):
        (root / f"m{number}.py").write_text("\n".join(f"def function_number_{n}_of_it(): pass" for n in range(20)))
    assert look(root, "structure", "")[1:] == ["./ 40 files", "src/ 2 files"]


def test_syntax_is_found_in_the_files_of_the_language_of_the_query(root: Path) -> None:
    for query, found in (
        ('(call function: (identifier) @f (#match? @f "^pr"))', ["src/basket.py", " 7 @f print"]),
        ("(export_statement) @e", ["src/app.ts", " 1 @e export class Shop { total(): number { return 1 } }"]),
    ):
        assert look(root, "syntax", query)[1:] == found


def test_what_cannot_be_looked_for_says_why(root: Path) -> None:
    searches: list[tuple[Verb, str, str, str]] = [
        ("text", "(", "", "bad_pattern"),
        ("text", "x" * 100_000 + "{99999999999}", "", "bad_pattern"),
        ("text", "x", "nowhere", "not_found"),
        ("syntax", "(call", "", "bad_query"),
        ("syntax", "(call)", "", "bad_query"),
        ("structure", "", "notes.md", "not_code"),
    ]
    for verb, wanted, path, kind in searches:
        with pytest.raises(ToolError) as refused:
            look(root, verb, wanted, path)
        assert refused.value.kind == kind


def test_a_job_goes_through_json_and_its_answer_too(root: Path) -> None:
    job = CodeJob("text", str(root), ("notes.md",), CodeLimits(), "total")
    told = json.loads(answer(json.dumps(asdict(job))))
    assert list(told["digests"]) == ["notes.md"]
    error = json.loads(answer(json.dumps(asdict(replace(job, wanted="(")))))
    assert error["kind"] == "bad_pattern"
