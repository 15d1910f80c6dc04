"""The texts about settings: the comments in `config/*.yaml`, from which the reference and the page have them, too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path


def comments(text: str) -> tuple[list[str], list[tuple[list[str], list[str]]]]:
    """The comment at the head of a file, and for each comment below it the keys that follow it directly."""
    head: list[str] = []
    keys: list[tuple[list[str], list[str]]] = []
    block: list[str] = []
    for line in text.splitlines():
        if line.startswith("#"):
            block.append(line[1:].removeprefix(" "))
        elif found := re.match(r"(\w+):", line):
            if block:
                keys.append(([], block))
            if keys:
                keys[-1][0].append(found[1])
            block = []
        elif not line and block:
            head, block = head + ([""] if head else []) + block, []
    return head, keys


def paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """The paragraphs of a comment; lines that are indented are an example, and stay so."""
    text: list[str] = []
    example: list[str] = []
    for line in [*lines, ""]:
        if line.startswith("  "):
            example.append(f"    {line}")
            continue
        if example:
            yield " ".join(text)
            yield "\n".join(example)
            text, example = [], []
        text.append(line.strip())
    if said := " ".join(text).strip():
        yield said


def texts_of(file: Path) -> tuple[list[str], dict[str, list[str]]]:
    """Return a defaults file's comments on itself and on each of its keys, in paragraphs; empty if there are none."""
    head, keys = comments(file.read_text("utf-8")) if file.is_file() else ([], [])
    return list(paragraphs(head)), {name: list(paragraphs(comment)) for names, comment in keys for name in names}
