"""A class name is there once, a file has that of its class, things have their field's words, imports are declared."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.source_trees import source_trees

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.xdist_group("source trees")  # so that one worker alone reads them
# What is still to be renamed: the list only gets shorter.
NAMED_OTHERWISE = {
    "agents/grading/fitness.py",
    "agents/remembering/fitness.py",
    "journal/server/redaction.py",
    "models/openai.py", "agents/generator.py", "agents/generator_b.py", "apps/api/context.py", "bus/zeromq.py",
    "journal/store/store.py", "services/conversation.py", "services/engrams/service.py",
    "tools/compare_answers.py", "apps/session.py",
}  # fmt: skip
RETIRED = {
    "Sealer", "Outbox", "Reception", "Host", "LiveIntake", "DurableIntake", "DurableIntakes", "Keeper", "VectorKeeper",
    "JournalDesk", "ConversationDesk", "MemoryDesk", "ContextDesk", "Exchanges", "Means", "Opening", "Learning",
    "Fence", "Doorkeeper", "ApiDoor", "max_in_hand", "in_hand", "park", "parked", "Park", "COMPANY_SECONDS",
    "Patience", "desk", "company",
}  # fmt: skip
# Declared, and imported by nobody: what for.
NOT_IMPORTED = {
    "ddgs": "a search provider loads it by name where it is installed",
    "lxml-html-clean": "trafilatura imports it",
    "tzdata": "zoneinfo reads it where the system has no time zones",
    **dict.fromkeys(
        (f"tree-sitter-{language}" for language in ("c", "go", "java", "javascript", "python", "rust", "typescript")),
        "the outline of a program loads the grammar of its language by name",
    ),
}
# Imported where it is there: what for.
NOT_DECLARED: dict[str, str] = {}


def public(tree: ast.Module, *kinds: type[ast.stmt]) -> list[str]:
    """The public names that a file defines at its top."""
    return [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]  # type: ignore[attr-defined]


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def identifiers(tree: ast.Module) -> Iterator[str]:
    """Every name in the code."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg", "asname"):
            if isinstance(name := getattr(node, field, None), str):
                yield name


def imported(tree: ast.Module) -> Iterator[str]:
    """The packages that a file imports from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_no_class_name_is_there_twice() -> None:
    counts = Counter(name for _, tree in source_trees().items() for name in public(tree, ast.ClassDef))
    assert {name for name, count in counts.items() if count > 1} == set()


def test_a_file_of_one_class_has_its_name() -> None:
    otherwise = set()
    for path, tree in source_trees().items():
        classes = public(tree, ast.ClassDef)
        functions = public(tree, ast.FunctionDef, ast.AsyncFunctionDef)
        name = Path(path).stem.replace("_", "")
        if len(classes) == 1 and not functions and snake_case(classes[0]).replace("_", "") != name:
            otherwise.add(path)
    assert otherwise <= NAMED_OTHERWISE


def test_the_words_that_were_given_up_are_gone() -> None:
    texts = [file.read_text("utf-8") for folder in ("src", "tests") for file in (ROOT / folder).rglob("*.py")]
    suspects = [text for text in texts if RETIRED.intersection(re.findall(r"\w+", text))]  # may say it in words alone
    said = {name for text in suspects for name in identifiers(ast.parse(text))}
    assert said & RETIRED == set()


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    lines = [*project["dependency-groups"]["run"], *(line for extra in extras for line in extra)]
    declared = {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in lines}
    homes = packages_distributions()
    found = (
        {name for _, tree in source_trees().items() for name in imported(tree)} - sys.stdlib_module_names - {"local"}
    )
    used = {home.lower().replace("_", "-") for name in found for home in homes.get(name, [name])}
    assert declared - used == NOT_IMPORTED.keys()
    assert used - declared == NOT_DECLARED.keys()


def test_one_framework_reads_command_lines() -> None:
    others = {"argparse", "optparse", "getopt", "click"}
    assert {path for path, tree in source_trees().items() if others & set(imported(tree))} == set()


@pytest.mark.parametrize(
    ("name", "file"), [("BlobStore", "blob_store"), ("LoCALSession", "lo_cal_session"), ("HTTPDoor", "http_door")]
)
def test_the_file_of_a_class_is_its_name_in_small_letters(name: str, file: str) -> None:
    assert snake_case(name) == file
