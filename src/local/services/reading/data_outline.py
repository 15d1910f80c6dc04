"""Outlines of data: the keys of JSON, the columns of a table, and what a log repeats."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from local.services.reading.outline import FilePart, Outline, blocks, nested

MOST_LINE = 2000  # characters; JSON with longer lines is written anew, one value a line
MOST_COLUMNS, MOST_VALUE, MOST_SAMPLE = 60, 60, 100_000
MOST_PATTERNS = 25
_KEY = re.compile(r'^(\s*)"((?:[^"\\]|\\.)*)"\s*:\s*(.*)$')
_LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b", re.I)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\b\w{3} +\d{1,2} \d\d:\d\d:\d\d|\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d")
_VARIES = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+(?:[.:]\d+)*|\"[^\"]*\"|'[^']*'", re.I)


def json_outline(text: str, lines: Sequence[str]) -> Outline | None:
    """The keys down to the third level, and how long lists are; None for what is no JSON."""
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
    """The columns with what is in them, and the first rows."""
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
