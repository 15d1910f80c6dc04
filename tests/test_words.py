"""The glossary in docs/architecture.md has every word of ours that a reader meets as the name of a concept.

Such a word is the last one of a public class's name (`SendQueue`: queue), if another package below `local` imports the
class, or if two classes share the word. Left out are exceptions, messages and their parts, which docs/protocol.md
explains, settings, which their YAML files explain, and the insides of the apps and of the stand-in.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest

from tests.source_trees import source_trees
from tests.test_docs import ARCHITECTURE, table

LEFT_OUT = {"Data", "Message", "Settings"}
INSIDES = ("apps", "models/stand_in")
pytestmark = pytest.mark.xdist_group("source trees")  # so that one worker alone reads them


@cache
def bases() -> dict[str, list[str]]:
    """By a class's name, the names of what it inherits from."""
    return {
        node.name: [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]
        for tree in source_trees().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }


def is_left_out(name: str) -> bool:
    builtin = getattr(builtins, name, None)
    is_exception = isinstance(builtin, type) and issubclass(builtin, BaseException)
    return (
        is_exception
        or name in LEFT_OUT
        or name.endswith(("Config", "Settings"))
        or any(map(is_left_out, bases().get(name, ())))
    )


def concepts() -> Iterator[tuple[str, str]]:
    """The public classes that may need a word, with the package that they are in."""
    for path, tree in source_trees().items():
        for node in tree.body:
            is_public = isinstance(node, ast.ClassDef) and not node.name.startswith("_")
            if is_public and not path.startswith(INSIDES) and not is_left_out(node.name):
                yield node.name, path.partition("/")[0]


def importers() -> dict[str, set[str]]:
    """By a class's name, the packages that import it."""
    found = defaultdict(set)
    for path, tree in source_trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("local."):
                for alias in node.names:
                    found[alias.name].add(path.partition("/")[0])
    return found


def word_of(name: str) -> str:
    """The last word of a class's name, in the singular: a class of many things needs no word beside that of one."""
    word = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)[-1].lower()
    return SINGULAR.get(word, word)


SINGULAR = {"queries": "query", "replies": "reply"} | {
    f"{word}s": word
    for word in (
        "attachment", "attempt", "call", "change", "consumer", "declaration", "deletion", "event", "exchange", "fact",
        "figure", "file", "hook", "judgement", "lease", "limit", "log", "offer", "output", "part", "profile", "request",
        "resource", "retry", "score", "session", "subscription", "text", "timeout", "tool",
    )
}  # fmt: skip


def test_every_word_that_names_a_concept_is_explained() -> None:
    classes, imported_by = dict(concepts()), importers()
    of_word = defaultdict(set)
    for name in classes:
        of_word[word_of(name)].add(name)
    met = {
        word: names
        for word, names in of_word.items()
        if len(names) > 1 or any(imported_by[name] - {classes[name]} for name in names)
    }
    explained = {row[0].strip("*").rpartition(" ")[2] for row in table(ARCHITECTURE, "word")}
    assert {word: sorted(names) for word, names in met.items() if word not in explained} == {}


def test_each_word_is_explained_once_in_one_sentence() -> None:
    rows = [(row[0].strip("*"), row[1]) for row in table(ARCHITECTURE, "word")]
    assert [word for word, _ in rows] == sorted({word for word, _ in rows})
    assert [word for word, meaning in rows if not meaning or ". " in meaning or meaning.endswith(".")] == []
