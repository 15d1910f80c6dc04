"""The outline of a file: headings, definitions, keys, columns, with their lines."""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from html.parser import HTMLParser
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from local.core.errors import AttachmentRefused, ToolError
from local.core.pdf import pdf_pages

if TYPE_CHECKING:
    from tree_sitter import Language, Node


# The outline of a file: named parts with their lines, and its text within a budget of characters.

MOST_TITLE = 120
MOST_INDENT = 4


@dataclass(frozen=True, slots=True)
class FilePart:
    """One part of a file: a heading, a symbol or a key with its lines, counted from 1. Parts of level 2 are within one
    of level 1.
    """

    title: str
    start: int
    end: int
    level: int = 1


@dataclass(frozen=True, slots=True)
class Outline:
    """The parts of one file and the facts about it. `kind` is the sort of file, `facts` are lines about it as a whole.
    `lines` are the text whose lines the parts count: that of the file, or the text extracted from it.
    """

    kind: str
    lines: Sequence[str]
    parts: Sequence[FilePart] = ()
    facts: Sequence[str] = field(default_factory=tuple)

    def as_text(self, most_chars: int) -> str:
        """The facts and parts. What does not fit is left out: the deepest levels first, then what comes last."""
        facts = "\n".join(self.facts)
        room = most_chars - len(facts)
        depth = max((part.level for part in self.parts), default=1)
        while depth > 1 and sum(len(_line(part)) + 1 for part in self.parts if part.level <= depth) > room:
            depth -= 1
        shown = [part for part in self.parts if part.level <= depth]
        told = list[str]()
        for part in shown:
            room -= len(_line(part)) + 1
            if room < 0:
                break
            told.append(_line(part))
        missing = len(self.parts) - len(told)
        more = [f"… and {missing} more parts within these or after them"] if missing else []
        return "\n".join(filter(None, [facts, *told, *more]))

    def named(self, name: str) -> list[FilePart]:
        """The parts that a name fits: those with exactly that title, else those whose title holds it."""
        wanted = " ".join(name.casefold().lstrip("# ").split())
        titles = [" ".join(part.title.casefold().split()) for part in self.parts]
        exact = [part for part, title in zip(self.parts, titles, strict=True) if title == wanted]
        named = [part for part, title in zip(self.parts, titles, strict=True) if wanted in _words(title)]
        within = [part for part, title in zip(self.parts, titles, strict=True) if wanted and wanted in title]
        return exact or named or within


def nested(headings: Iterable[tuple[int, int, str]], last_line: int) -> list[FilePart]:
    """Parts from headings as (line, level, title) in order: each lasts up to the next of its level or above."""
    found = [FilePart(title[:MOST_TITLE], line, last_line, level) for line, level, title in headings]
    ends, still_open = [last_line] * len(found), list[int]()  # in one pass: a file may have 100,000 headings
    for index, part in enumerate(found):
        while still_open and found[still_open[-1]].level >= part.level:
            ends[still_open.pop()] = part.start - 1
        still_open.append(index)
    return [replace(part, end=end) for part, end in zip(found, ends, strict=True)]


def blocks(lines: Sequence[str], length: int = 60) -> list[FilePart]:
    """Parts of a text without any structure: so many lines each, called by their first words."""
    parts = []
    for start in range(0, len(lines), length):
        block = lines[start : start + length]
        title = next((line.strip() for line in block if line.strip()), "")
        parts.append(FilePart(title[: MOST_TITLE // 2], start + 1, start + len(block)))
    return parts


def _words(title: str) -> set[str]:
    """Return the names in a title such as `class Foo(Bar)`."""
    return set("".join(each if each.isalnum() or each in "_-$." else " " for each in title).split())


def _line(part: FilePart) -> str:
    place = f"{part.start}-{part.end}" if part.end > part.start else str(part.start)
    return f"{' ' * min(part.level - 1, MOST_INDENT)}{place} {part.title}"


MOST_DEPTH = 4  # symbols within symbols
MOST_SIGNATURE = 110
_PYTHON = "class_definition function_definition"
_C = "function_definition struct_specifier enum_specifier union_specifier type_definition preproc_function_def"
_JAVASCRIPT = (
    "class_declaration function_declaration generator_function_declaration method_definition interface_declaration"
    " enum_declaration type_alias_declaration internal_module abstract_class_declaration"
)
_GO = "function_declaration method_declaration type_declaration"
_RUST = "function_item struct_item enum_item trait_item impl_item mod_item macro_definition type_item union_item"
_JAVA = (
    "class_declaration interface_declaration enum_declaration record_declaration method_declaration"
    " constructor_declaration annotation_type_declaration"
)


@dataclass(frozen=True, slots=True)
class CodeLanguage:
    """A programming language that can be parsed: its name, the package with its grammar, the function there, and the
    nodes that count."""

    name: str
    package: str
    function: str
    symbols: frozenset[str]


def _language(name: str, package: str, symbols: str, function: str = "language") -> CodeLanguage:
    return CodeLanguage(name, package, function, frozenset(symbols.split()))


_TYPESCRIPT = _language("TypeScript", "tree_sitter_typescript", _JAVASCRIPT, "language_typescript")
_TSX = _language("TypeScript", "tree_sitter_typescript", _JAVASCRIPT, "language_tsx")
_IN_C = _language("C", "tree_sitter_c", _C)
_IN_JAVASCRIPT = _language("JavaScript", "tree_sitter_javascript", _JAVASCRIPT)
LANGUAGES = {
    **dict.fromkeys((".py", ".pyi", ".pyw"), _language("Python", "tree_sitter_python", _PYTHON)),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), _IN_JAVASCRIPT),
    **dict.fromkeys((".ts", ".mts", ".cts"), _TYPESCRIPT),
    ".tsx": _TSX,
    **dict.fromkeys((".c", ".h"), _IN_C),
    ".go": _language("Go", "tree_sitter_go", _GO),
    ".rs": _language("Rust", "tree_sitter_rust", _RUST),
    ".java": _language("Java", "tree_sitter_java", _JAVA),
}
"""By what the name of a file ends with."""


@dataclass(frozen=True, slots=True)
class CodeSymbol:
    """A definition in a program: its name, the names of those around it with dots, and where it stands."""

    name: str
    path: str
    part: FilePart


def is_code(name: str) -> bool:
    """Whether a file of that name is a program whose symbols can be listed."""
    return PurePosixPath(name).suffix.lower() in LANGUAGES


def code_outline(suffix: str, content: bytes, lines: Sequence[str]) -> Outline:
    """The symbols, each with its first line; nested ones are a level below."""
    parts = [symbol.part for symbol in code_symbols(suffix, content)]
    return Outline(LANGUAGES[suffix].name, lines, parts if len(parts) > 1 else blocks(lines))


def code_symbols(suffix: str, content: bytes) -> list[CodeSymbol]:
    """The symbols of a program in order, whose file's name ends with `suffix`."""
    from tree_sitter import Parser

    language = LANGUAGES[suffix]
    tree = Parser(grammar(language)).parse(content)
    return list(_symbols(tree.root_node, language, 1, ""))


@cache
def grammar(language: CodeLanguage) -> Language:
    """Return the tree-sitter grammar of a language."""
    from tree_sitter import Language

    return Language(getattr(importlib.import_module(language.package), language.function)())


def _symbols(node: Node, language: CodeLanguage, level: int, around: str) -> Iterator[CodeSymbol]:
    for child in node.named_children:
        if child.type in language.symbols or _is_named_function(child):
            first = _with_decorators(child)
            name = _name(child)
            path = f"{around}.{name}" if around else name
            part = FilePart(_signature(child), first.start_point[0] + 1, child.end_point[0] + 1, level)
            yield CodeSymbol(name, path, part)
            if level < MOST_DEPTH:
                yield from _symbols(child, language, level + 1, path)
        elif level == 1 or child.type not in ("block", "statement_block", "compound_statement") or _is_body(child):
            yield from _symbols(child, language, level, around)


def _name(node: Node) -> str:
    """Return a symbol's name: by its grammar the name, the type of an implementation, or that in a declarator."""
    for role in ("name", "type", "declarator", "key"):
        named = node.child_by_field_name(role)
        if named is not None and (role != "type" or node.type == "impl_item"):
            inner = named
            while (within := inner.child_by_field_name("declarator")) is not None:
                inner = within
            return (inner.text or b"").decode(errors="replace").lstrip("*& ")
    specification = next((child for child in node.named_children if child.type in ("type_spec", "type_alias")), None)
    return _name(specification) if specification is not None else ""


def _is_body(node: Node) -> bool:
    """Whether a block is that of a class or a module, and not one within a function."""
    return node.parent is not None and "function" not in node.parent.type and "method" not in node.parent.type


def _is_named_function(node: Node) -> bool:
    """`const f = () => …` and the like."""
    value = node.child_by_field_name("value") if node.type in ("variable_declarator", "pair") else None
    return value is not None and value.type in ("arrow_function", "function_expression", "class")


def _with_decorators(node: Node) -> Node:
    parent = node.parent
    return parent if parent is not None and parent.type in ("decorated_definition", "export_statement") else node


def _signature(node: Node) -> str:
    """Return the text before the body, on one line."""
    body = node.child_by_field_name("body")
    whole = node.text or b""
    head = whole[: body.start_byte - node.start_byte] if body is not None else whole.split(b"\n")[0]
    text = " ".join(head.decode(errors="replace").split()).rstrip("{: =>")
    return text if len(text) <= MOST_SIGNATURE else f"{text[:MOST_SIGNATURE]}…"


# Outlines of data: the keys of JSON, the columns of a table, and repeated lines of a log.

MOST_LINE = 2000  # characters; JSON with longer lines is reformatted, one value a line
MOST_COLUMNS, MOST_VALUE, MOST_SAMPLE = 60, 60, 100_000
MOST_PATTERNS = 25
_KEY = re.compile(r'^(\s*)"((?:[^"\\]|\\.)*)"\s*:\s*(.*)$')
_LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b", re.I)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\b\w{3} +\d{1,2} \d\d:\d\d:\d\d|\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d")
_VARIES = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+(?:[.:]\d+)*|\"[^\"]*\"|'[^']*'", re.I)


def json_outline(text: str, lines: Sequence[str]) -> Outline | None:
    """Return the keys down to the third level, and the lengths of lists; None if it is not JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if max(map(len, lines), default=0) > MOST_LINE or not any(map(_KEY.match, lines)):
        lines = json.dumps(value, indent=1, ensure_ascii=False).splitlines()
    parts = nested(_keys(lines), len(lines))
    facts = [f"{_shape(value)}; the lines are those of the file with one value a line"]
    return Outline("JSON", lines, parts if len(parts) > 1 else blocks(lines), facts)


def _keys(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    indents = sorted({len(mark[1]) for line in lines if (mark := _KEY.match(line))})[:3]
    for number, line in enumerate(lines, start=1):
        mark = _KEY.match(line)
        if mark and len(mark[1]) in indents:
            opens = mark[3] if mark[3] in ("[", "{") else ""
            yield number, indents.index(len(mark[1])) + 1, f"{mark[2]} {opens}".strip()


def _shape(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object of {len(value)} keys"
    return f"a list of {len(value)}" if isinstance(value, list) else type(value).__name__


def table_outline(text: str, lines: Sequence[str], delimiter: str | None = None) -> Outline:
    """Return the columns with their kinds of content, and the first rows."""
    try:
        chosen = delimiter or csv.Sniffer().sniff(text[:4096], ",;\t|").delimiter
    except csv.Error:
        chosen = ","
    rows = csv.reader(io.StringIO(text), delimiter=chosen)
    header, *body = list(islice(rows, MOST_SAMPLE)) or [[]]
    facts = [f"{len(body)} rows, {len(header)} columns, separated by {chosen!r}; of each column:"]
    for index, name in enumerate(header[:MOST_COLUMNS]):
        facts.append(f"- {name[:MOST_VALUE]}: {_column([row[index] for row in body if index < len(row)])}")
    facts += ["the first rows:", *(line[:500] for line in lines[1:4])]
    return Outline("table", lines, facts=facts)


def _column(values: Sequence[str]) -> str:
    filled = [value.strip() for value in values if value.strip()]
    if not filled:
        return "empty"
    missing = f", {len(values) - len(filled)} empty" if len(filled) < len(values) else ""
    try:
        numbers = [float(value) for value in filled]
        return f"numbers from {min(numbers):g} to {max(numbers):g}{missing}"
    except ValueError:
        pass
    common = Counter(filled).most_common(3)
    shown = ", ".join(f"{value[:MOST_VALUE]} ×{times}" for value, times in common)
    return f"{len(set(filled))} different texts, such as {shown}{missing}"


def looks_like_log(lines: Sequence[str]) -> bool:
    """Whether most of the first lines begin with a time or name a level."""
    first = [line for line in lines[:50] if line.strip()]
    return len(first) > 4 and sum(bool(_TIME.search(line[:60])) for line in first) > len(first) // 2


def log_outline(lines: Sequence[str]) -> Outline:
    """From when to when, how many lines of each level, and each sort of line with how often and where it comes."""
    times = [mark[0] for line in lines if (mark := _TIME.search(line[:80]))]
    levels = Counter(mark[1].upper() for line in lines if (mark := _LEVEL.search(line[:200])))
    sorts: dict[str, list[int]] = {}
    for number, line in enumerate(lines, start=1):
        sorts.setdefault(_VARIES.sub("…", _TIME.sub("", line))[:MOST_VALUE], []).append(number)
    facts = [f"from {times[0]} to {times[-1]}"] if times else []
    if levels:
        facts.append("levels: " + ", ".join(f"{level} {count}" for level, count in levels.most_common()))
    facts.append(f"{len(sorts)} sorts of lines; how often each comes, and at which line first:")
    rare_first = sorted(sorts.values(), key=lambda numbers: (not _is_bad(lines[numbers[0] - 1]), -len(numbers)))
    parts = [FilePart(f"×{len(each)} {lines[each[0] - 1].strip()[:110]}", each[0], each[0]) for each in rare_first]
    return Outline("log", lines, parts[:MOST_PATTERNS], facts)


def _is_bad(line: str) -> bool:
    mark = _LEVEL.search(line[:200])
    return mark is not None and mark[1].upper() in ("ERROR", "CRITICAL", "FATAL", "WARN", "WARNING")


# The outline of HTML and its like: headings, landmarks, forms, styles, scripts, and which classes are used.

LANDMARKS = ("main", "nav", "header", "footer", "aside", "section", "article", "form", "table", "style", "script")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
MOST_CLASSES, MARKUP_OUTLINE_MOST_TITLE = 15, 80


def markup_outline(text: str, lines: Sequence[str]) -> Outline:
    """Return the outline; headings count as parts of their landmark."""
    reader = _MarkupReader()
    reader.feed(text)
    reader.close()
    parts = nested(reader.found, len(lines))
    facts = []
    if reader.title:
        facts.append(f"title: {' '.join(reader.title.split())[:MARKUP_OUTLINE_MOST_TITLE]}")
    if reader.classes:
        common = ", ".join(f".{name} ×{times}" for name, times in reader.classes.most_common(MOST_CLASSES))
        facts.append(f"classes: {common}")
    return Outline("HTML", lines, parts if len(parts) > 1 else blocks(lines), facts)


class _MarkupReader(HTMLParser):
    """`found` are parts as (line, level, title)."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[int, int, str]] = []
        self.classes: Counter[str] = Counter()
        self.title = ""
        self._heading: tuple[int, str, list[str]] | None = None
        self._within: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A part begins."""
        named = dict(attrs)
        self.classes.update((named.get("class") or "").split())
        if tag == "title":
            self._within.append(tag)
        elif tag in HEADINGS:
            self._heading = self.getpos()[0], tag, []
        elif tag in LANDMARKS:
            name = named.get("id") or named.get("aria-label") or named.get("src") or named.get("class") or ""
            self.found.append((self.getpos()[0], 1, f"<{tag}> {name}".strip()[:MARKUP_OUTLINE_MOST_TITLE]))

    def handle_data(self, data: str) -> None:
        """Text of a heading or of the page's title."""
        if self._heading is not None:
            self._heading[2].append(data)
        elif self._within:
            self.title += data

    def handle_endtag(self, tag: str) -> None:
        """A heading is whole."""
        if tag == "title" and self._within:
            self._within.pop()
        elif self._heading is not None and tag == self._heading[1]:
            line, name, text = self._heading
            self.found.append((line, 1 + int(name[1]), " ".join("".join(text).split())[:MARKUP_OUTLINE_MOST_TITLE]))
            self._heading = None


def style_outline(lines: Sequence[str]) -> Outline:
    """The rules of a style sheet: each selector with its lines; what stands within @media is a level below."""
    found, depth = list[tuple[int, int, str]](), 0
    in_comment = False
    for number, line in enumerate(lines, start=1):
        code, in_comment = _uncommented(line, in_comment=in_comment)
        if "{" in code:
            selector = code.partition("{")[0].strip() or (lines[number - 2].strip() if number > 1 else "")
            if selector and depth < 2:
                found.append((number, depth + 1, selector))
        depth = max(0, depth + code.count("{") - code.count("}"))
    parts = nested(found, len(lines))
    return Outline("style sheet", lines, parts if len(parts) > 1 else blocks(lines))


def _uncommented(line: str, *, in_comment: bool) -> tuple[str, bool]:
    code = ""
    while line:
        if in_comment:
            _, closed, line = line.partition("*/")
            in_comment = not closed
        else:
            part, opened, line = line.partition("/*")
            code += part
            in_comment = bool(opened)
    return code, in_comment


# What a picture is, from its first bytes.


def picture_facts(content: bytes) -> str:
    """Return a picture's format and its size in pixels; empty for an unknown format."""
    if content.startswith(b"\x89PNG\r\n\x1a\n") and len(content) >= 24:
        return _described("PNG", *struct.unpack(">II", content[16:24]))
    if content[:6] in (b"GIF87a", b"GIF89a") and len(content) >= 10:
        return _described("GIF", *struct.unpack("<HH", content[6:10]))
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "a WebP picture"
    if content.startswith(b"\xff\xd8\xff"):
        return _of_jpeg(content)
    return ""


def _of_jpeg(content: bytes) -> str:
    """Return the size from the frame's header (ITU T.81, B.2.2)."""
    at = 2
    while at + 9 < len(content) and content[at] == 0xFF:
        marker, length = content[at + 1], struct.unpack(">H", content[at + 2 : at + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return _described("JPEG", width, height)
        at += 2 + length
    return "a JPEG picture"


def _described(name: str, width: int, height: int) -> str:
    return f"a {name} picture of {width} × {height} pixels"


# Outlines of texts that people write: Markdown, reStructuredText, settings, plain text.

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r"([=\-~^\"'*+#.:_`])\1{2,}\s*$")
_NUMBERED = re.compile(r"(\d+(?:\.\d+)*)[.)]?\s+[A-Z]\w")
_SETTING = re.compile(r"(?:\[{1,2}([^\[\]]+)\]{1,2}|([\w.\"'-]+)\s*:)(?:\s|$)")
MARKDOWN = (".md", ".markdown", ".mdx")
SETTINGS = (".toml", ".ini", ".cfg", ".conf", ".yaml", ".yml")


def text_outline(suffix: str, lines: Sequence[str]) -> Outline:
    """Return the outline of a text, by the suffix of the file's name; a text without headings in blocks of lines."""
    if suffix in MARKDOWN:
        kind, headings = "Markdown", list(_markdown(lines))
    elif suffix in SETTINGS:
        kind, headings = "settings", list(_settings(lines))
    else:
        kind, headings = "text", list(_underlined(lines)) or list(_numbered(lines))
    parts = nested(headings, len(lines))
    return Outline(kind, lines, parts if len(parts) > 1 else blocks(lines))


def _markdown(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    fence = ""
    for number, line in enumerate(lines, start=1):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        elif heading := _ATX.match(line):
            yield number, len(heading[1]), heading[2] or ""
        elif number > 1 and re.fullmatch(r"(=+|-{2,})\s*", line) and _is_title(lines, number - 2):
            yield number - 1, 1 if line[0] == "=" else 2, lines[number - 2].strip()


def _is_title(lines: Sequence[str], index: int) -> bool:
    """Whether a line may be the text of an underlined heading: a separate paragraph, not a list or a table."""
    text = lines[index].strip()
    alone = index == 0 or not lines[index - 1].strip()
    return bool(text) and alone and text[0] not in "#>|-*+`"


def _underlined(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Titles with a line of signs under them, in the order in which the signs come up, as in reStructuredText."""
    levels = list[str]()
    for index in range(1, len(lines)):
        mark, title = _UNDERLINE.match(lines[index]), lines[index - 1]
        if mark is None or not title.strip() or _UNDERLINE.match(title) or len(lines[index].rstrip()) < len(title) // 2:
            continue
        if title[0].isspace() and lines[index - 2 : index - 1] != [lines[index]]:
            continue
        sign = mark[1]
        if sign not in levels:
            levels.append(sign)
        yield index, levels.index(sign) + 1, title.strip()


def _numbered(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    for number, line in enumerate(lines, start=1):
        if len(line) <= 80 and (mark := _NUMBERED.match(line)) and not line.rstrip().endswith((".", ",", ";")):
            yield number, mark[1].count(".") + 1, line.strip()


def _settings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    for number, line in enumerate(lines, start=1):
        if line[:1] not in (" ", "\t", "#", "-") and (mark := _SETTING.match(line)):
            yield number, 1, (mark[1] or mark[2]).strip()


# The outline of any file, by its name and its content.

MARKUP = (".html", ".htm", ".xhtml", ".svg", ".xml", ".vue")
TABLES = {".csv": None, ".tsv": "\t"}
MOST_PAGES, MOST_CHARS_OF_PDF = 500, 2_000_000
PDF_SECONDS = 20.0  # less than the tool has


def file_outline(name: str, content: bytes) -> Outline:
    """Return the outline of a file. Raises `ToolError` (not_text) for a format without one."""
    suffix = PurePosixPath(name).suffix.lower()
    if content.startswith(b"%PDF-"):
        return _of_pdf(name, content)
    if facts := picture_facts(content):
        return Outline("picture", (), facts=[facts])
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = _in_another_encoding(name, content)
    return _of_text(suffix, content, text)


def _of_text(suffix: str, content: bytes, text: str) -> Outline:
    lines = text.splitlines()
    if suffix in LANGUAGES:
        with suppress(RecursionError):  # nested a thousand deep: it is not a real program
            return code_outline(suffix, content, lines)
    if suffix in MARKUP:
        return markup_outline(text, lines)
    if suffix in (".css", ".scss", ".less"):
        return style_outline(lines)
    if suffix in TABLES:
        with suppress(csv.Error):  # a field of more than 128 kB: it is not a table
            return table_outline(text, lines, TABLES[suffix])
    if (suffix in (".json", ".ipynb", ".geojson") or text[:1] in "{[") and (found := json_outline(text, lines)):
        return found
    if suffix == ".log" or looks_like_log(lines):
        return log_outline(lines)
    return text_outline(suffix, lines)


def _in_another_encoding(name: str, content: bytes) -> str:
    if b"\0" in content[:8192] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolError(f"{name} is no text, and no PDF and no picture: {len(content)} bytes", kind="not_text")
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "cp1252"
    return content.decode(encoding, errors="replace")


def _of_pdf(name: str, content: bytes) -> Outline:
    try:
        texts, note = pdf_pages(name, content, MOST_PAGES, MOST_CHARS_OF_PDF, PDF_SECONDS)
    except AttachmentRefused as error:
        raise ToolError(str(error), kind="not_text") from None
    lines, pages = list[str](), list[tuple[int, int, str]]()
    for number, page in enumerate(texts, start=1):
        first = next((line.strip() for line in page.splitlines() if line.strip()), "")
        pages.append((len(lines) + 1, 1, f"page {number}: {first[:60]}"))
        lines += page.splitlines() or [""]
    return Outline("PDF", lines, nested(pages, len(lines)), [note] if note else [])
