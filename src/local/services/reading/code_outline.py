"""The outline of a program: its classes, functions and the like, as tree-sitter finds them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from local.services.reading.outline import FilePart, Outline, blocks

if TYPE_CHECKING:
    from tree_sitter import Language, Node

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
    """A language: what it is called, the package with its grammar, the function there, and the nodes that count."""

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
    """A class, function or the like: its name, the names of those around it with dots, and where it stands."""

    name: str
    path: str
    part: FilePart


def is_code(name: str) -> bool:
    """Whether a file of that name is a program whose symbols can be told."""
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
    """What tree-sitter parses a language by."""
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
    """What a symbol is called: by its grammar the name, the type of an implementation, or what a declarator holds."""
    for field in ("name", "type", "declarator", "key"):
        named = node.child_by_field_name(field)
        if named is not None and (field != "type" or node.type == "impl_item"):
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
    """What stands before the body, on one line."""
    body = node.child_by_field_name("body")
    whole = node.text or b""
    head = whole[: body.start_byte - node.start_byte] if body is not None else whole.split(b"\n")[0]
    text = " ".join(head.decode(errors="replace").split()).rstrip("{: =>")
    return text if len(text) <= MOST_SIGNATURE else f"{text[:MOST_SIGNATURE]}…"
