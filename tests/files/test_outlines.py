"""What is told of each kind of file, and that its lines are those of the parts."""

import json
import time

import pytest

from local.core.errors import ToolError
from local.files.outlines import FilePart, Outline, file_outline, nested

PYTHON = '''import os

@cache
def first(a: int, *, b: str = "") -> int:
    def inner(): ...
    return a

class Shape(Base):
    """Round."""

    async def area(self) -> float:
        return 1.0
'''
GO = 'package a\n\ntype T struct{}\n\nfunc (t T) Name() string {\n\treturn ""\n}\n'
RUST = "struct S;\n\nimpl S {\n    fn name(&self) -> u8 {\n        1\n    }\n}\n"
JAVA = "class A {\n  int b() {\n    return 1;\n  }\n}\n"
C = "struct s {\n  int a;\n};\n\nint main(void) {\n  return 0;\n}\n"
TYPESCRIPT = "interface P {\n  x: number;\n}\n\nexport const f = (a: P): number => {\n  return a.x;\n};\n"
JAVASCRIPT = "class A {\n  go() {\n    return 1;\n  }\n}\n\nfunction b() {}\n"
MARKDOWN = "# One\n\n```sh\n# no heading\n```\n\n## Two #\ntext\n\nThree\n=====\n\n- a\n---\n"
RST = "=====\nTitle\n=====\n\nFirst\n-----\ntext\n\nDeeper\n~~~~~~\n\nSecond\n------\n"
HTML = (
    '<html><head><title>Shop</title></head>\n<body>\n<nav id="menu"></nav>\n<main>\n<h1>All <b>fruit</b></h1>\n'
    '<p class="note big">x</p>\n<p class="note">y</p>\n<h2>Pears</h2>\n</main></body></html>'
)
CSS = "a { color: red }\n/* b { */\n@media print {\n  .c {\n    top: 0;\n  }\n}\n"
TOML = "[tool]\nname = 1\n\n[[other]]\nb = 2\n"
YAML = "a: 1\nb:\n  c: 2\n# d: 3\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.py", PYTHON, [
            ("def first(a: int, *, b: str = \"\") -> int", 3, 6, 1),
            ("class Shape(Base)", 8, 12, 1), ("async def area(self) -> float", 11, 12, 2),
        ]),
        ("a.go", GO, [("type T struct{}", 3, 3, 1), ("func (t T) Name() string", 5, 7, 1)]),
        ("a.rs", RUST, [("struct S;", 1, 1, 1), ("impl S", 3, 7, 1), ("fn name(&self) -> u8", 4, 6, 2)]),
        ("A.java", JAVA, [("class A", 1, 5, 1), ("int b()", 2, 4, 2)]),
        ("a.c", C, [("struct s", 1, 3, 1), ("int main(void)", 5, 7, 1)]),
        ("a.ts", TYPESCRIPT, [("interface P", 1, 3, 1), ("f = (a: P): number", 5, 7, 1)]),
        ("a.js", JAVASCRIPT, [("class A", 1, 5, 1), ("go()", 2, 4, 2), ("function b()", 7, 7, 1)]),
        ("a.md", MARKDOWN, [("One", 1, 9, 1), ("Two", 7, 9, 2), ("Three", 10, 14, 1)]),
        ("a.rst", RST, [("Title", 2, 13, 1), ("First", 5, 11, 2), ("Deeper", 9, 11, 3), ("Second", 12, 13, 2)]),
        ("a.html", HTML, [
            ("<nav> menu", 3, 3, 1), ("<main>", 4, 9, 1), ("All fruit", 5, 9, 2), ("Pears", 8, 9, 3),
        ]),
        ("a.css", CSS, [("a", 1, 2, 1), ("@media print", 3, 7, 1), (".c", 4, 7, 2)]),
        ("a.toml", TOML, [("tool", 1, 3, 1), ("other", 4, 5, 1)]),
        ("a.yaml", YAML, [("a", 1, 1, 1), ("b", 2, 4, 1)]),
    ],
)  # fmt: skip
def test_the_parts_of_a_file_are_found_with_their_lines(name: str, text: str, expected: list[object]) -> None:
    found = file_outline(name, text.encode())
    assert [(part.title, part.start, part.end, part.level) for part in found.parts] == expected
    assert list(found.lines) == text.splitlines()


def test_of_html_the_title_and_the_classes_are_told() -> None:
    assert file_outline("a.html", HTML.encode()).facts == ["title: Shop", "classes: .note ×2, .big ×1"]


def test_json_on_one_line_is_read_as_one_value_a_line() -> None:
    found = file_outline("a.json", json.dumps({"users": [{"name": "a" * 3000}], "count": 2}).encode())
    assert found.facts[0].startswith("an object of 2 keys")
    assert [part.title for part in found.parts] == ["users [", "name", "count"]
    assert max(map(len, found.lines[:3])) < 20


def test_broken_json_is_text() -> None:
    assert file_outline("a.json", b'{"a": 1').kind == "text"


def test_of_a_table_the_columns_are_told() -> None:
    found = file_outline("a.csv", b"id,colour\n1,red\n2,red\n3,\n")
    assert found.facts[:3] == [
        "3 rows, 2 columns, separated by ','; of each column:", "- id: numbers from 1 to 3",
        "- colour: 1 different texts, such as red ×2, 1 empty",
    ]  # fmt: skip
    assert file_outline("empty.csv", b"").lines == []


def test_a_table_with_a_field_without_end_is_text() -> None:
    assert file_outline("a.csv", b'"' + b"a" * 140_000).kind == "text"


def test_of_a_log_the_times_levels_and_sorts_of_lines_are_told_errors_first() -> None:
    lines = [f"2026-11-22 10:00:{second:02} INFO answered {second}" for second in range(30)]
    lines.insert(20, "2026-11-22 10:00:20 ERROR disk 7 is full")
    found = file_outline("a.log", "\n".join(lines).encode())
    assert found.facts[:2] == ["from 2026-11-22 10:00:00 to 2026-11-22 10:00:29", "levels: INFO 30, ERROR 1"]
    assert [(part.title[:3], part.start) for part in found.parts] == [("×1 ", 21), ("×30", 1)]


def test_of_a_picture_the_size_is_told() -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (640).to_bytes(4) + (480).to_bytes(4)
    assert file_outline("a.png", png).facts == ["a PNG picture of 640 × 480 pixels"]
    jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08" + (90).to_bytes(2) + (160).to_bytes(2) + b"\0" * 9
    assert file_outline("a.jpg", jpeg).facts == ["a JPEG picture of 160 × 90 pixels"]


def test_what_is_nothing_of_that_is_no_text() -> None:
    with pytest.raises(ToolError, match="is no text, and no PDF and no picture: 3 bytes"):
        file_outline("a.bin", b"\0\x01\xff")
    with pytest.raises(ToolError, match="is not a readable PDF"):
        file_outline("a.pdf", b"%PDF-1.4 nonsense")


def test_text_in_another_encoding_is_read() -> None:
    assert list(file_outline("a.txt", "Größe".encode("cp1252")).lines) == ["Größe"]
    assert list(file_outline("a.txt", "Größe".encode("utf-16")).lines) == ["Größe"]


def test_an_outline_that_is_too_long_leaves_out_the_deepest_and_then_the_last() -> None:
    parts = nested([(1, 1, "one"), (2, 2, "in one"), (3, 1, "two"), (4, 1, "three")], 9)
    outline = Outline("text", ["x"] * 9, parts)
    assert outline.as_text(1000) == "1-2 one\n 2 in one\n3 two\n4-9 three"
    assert outline.as_text(30) == "1-2 one\n3 two\n4-9 three\n… and 1 more parts within these or after them"
    assert outline.as_text(16) == "1-2 one\n3 two\n… and 2 more parts within these or after them"


def test_a_file_of_headings_takes_time_by_their_number_alone() -> None:
    """Two megabytes can hold 150,000 keys, whose parts took a minute of the process that all file tools share."""
    began = time.process_time()
    parts = nested([(number, 1 + number % 2, "x") for number in range(1, 100_001)], 100_000)
    assert time.process_time() - began < 5
    assert [(part.start, part.end) for part in parts[:2]] == [(1, 1), (2, 3)] and parts[-1].end == 100_000


def test_a_part_is_found_by_its_title_or_a_name_in_it() -> None:
    parts = (FilePart("class Food", 1, 2), FilePart("class Foo(Bar)", 3, 4))
    for name in ("class Foo(Bar)", "foo"):
        assert Outline("Python", ["x"] * 4, parts).named(name)[0].start == 3


@pytest.mark.parametrize("suffix", ["py", "js", "html", "css", "json", "csv", "log", "md", "toml", "txt", "c"])
def test_no_text_is_too_odd(suffix: str) -> None:
    for text in (
        "",
        "\n",
        "(" * 3000,
        "{" * 3000,
        "\x00\x01",
        "a" * 50_000,
        "]]>\ufeff<!--",
        'a,"b\n',
        "`" * 4000,
        "/*" * 4000,
    ):
        try:
            found = file_outline(f"a.{suffix}", text.encode())
        except ToolError:
            continue
        assert all(1 <= part.start <= part.end <= max(1, len(found.lines)) for part in found.parts)
