"""What a public docstring begins with names what is told of: nobody has to look above it for the noun."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.source_trees import source_trees

pytestmark = pytest.mark.xdist_group("source trees")  # so that one worker alone reads them
IN_THE_AIR = re.compile(
    r"(Its?|They|Their|Theirs|Them|She|He|Him|His|Hers?|Those|These|The same|Of|By which|(That|Those) of"
    r"|(What|How|Whether|Where|When) (it|its|they|their|he|she)|One (who|whose|that|which|for|at|in)"
    r"|One of (these|those|them))\b"
)

PRIVATE = re.compile("_(?!_)")


def public_docstrings(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """By name the docstrings of public classes and functions, and of what such classes have, `__call__` and so on."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not PRIVATE.match(node.name):
            yield node.name, ast.get_docstring(node) or ""
            if isinstance(node, ast.ClassDef):
                yield from public_docstrings(node.body)


def in_the_air(tree: ast.Module) -> list[str]:
    return [name for name, text in public_docstrings(tree.body) if IN_THE_AIR.match(text)]


def test_no_public_docstring_begins_with_a_pronoun() -> None:
    found = [f"{path}: {name}" for path, tree in source_trees().items() for name in in_the_air(tree)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", ["Its name.", "The same, sorted.", "One who asks.", "Those that run.", "What it is."])
def test_a_pronoun_is_found_in_a_method_too(text: str) -> None:
    code = f'class A:\n    """A thing."""\n\n    def {{}}(self):\n        """{text}"""\n'
    for name in ("one", "__call__"):
        assert in_the_air(ast.parse(code.format(name))) == [name]


@pytest.mark.parametrize("text", ["One message of the model.", "Italics.", "The name.", "Offered tools."])
def test_what_names_its_noun_is_left_alone(text: str) -> None:
    assert in_the_air(ast.parse(f'def one():\n    """{text}"""\n')) == []
