"""A Markdown text that begins with settings in YAML between two lines of `---`, as skills and profiles have them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from local.core.config_file import ConfigFile, parse
from local.core.config_file import settings_fault as fault

FENCE = "---"


@dataclass(frozen=True)
class FrontMatter:
    """The front matter of a Markdown file: the settings, with their line numbers in the whole text, and the Markdown
    after them.
    """

    settings: ConfigFile
    body: str


def split_front_matter(path: Path, text: str) -> FrontMatter:
    """Read a text that has front matter. Raises `ConfigError`, which names path, line and fault."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        raise fault(path, 1, f"expected {FENCE} on the first line, then settings such as 'name: …'")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        raise fault(path, len(lines), f"the settings are not closed; expected a line {FENCE} after them")
    settings = parse(path, "\n" + "\n".join(lines[1:end]))  # so that lines are counted as in the whole text
    return FrontMatter(settings, "\n".join(lines[end + 1 :]).strip())
