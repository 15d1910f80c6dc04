"""What an assistant of one kind is for, and what it may use of what there is: Markdown with settings before it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError

from local.config import Settings
from local.config_fault import faults
from local.config_file import ConfigFile, fault
from local.config_front_matter import split_front_matter
from local.errors import ConfigError

EVERY_TOOL = "*"
MOST_TOOLS = 128
RESERVED = frozenset({"remember"})  # a model's name at /v1 that means something else

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1024)]
ToolName = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_-]{1,64}|\*)$")]


class ProfileSettings(Settings):
    """What stands before a profile's text; docs/prompt.md says what each key means."""

    name: Name
    description: Line
    tools: Annotated[tuple[ToolName, ...], Field(min_length=1, max_length=MOST_TOOLS)]
    model: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./:@-]{0,199}$")] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class AssistantProfile:
    """`tools` are those that the model is offered at most, None for no limit; `origin` is where it stands."""

    name: str
    description: str
    tools: tuple[str, ...] | None
    instructions: str = ""
    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    origin: str = "built in"


def parse_profile(path: Path, text: str) -> AssistantProfile:
    """A profile as it stands in a file. Raises `ConfigError`, one line that names file, line, key and fault."""
    front = split_front_matter(path, text)
    try:
        said = ProfileSettings.model_validate_json(json.dumps(front.settings.values, default=str), strict=True)
    except ValidationError as error:
        raise _fault(front.settings, error) from None
    if said.name in RESERVED:
        raise fault(path, front.settings.lines["name",], f"name: {said.name} is taken; choose another")
    return AssistantProfile(
        name=said.name,
        description=" ".join(said.description.split()),
        tools=None if EVERY_TOOL in said.tools else said.tools,
        instructions="\n\n".join(filter(None, (said.instructions.strip(), front.body))),
        model=said.model,
        temperature=said.temperature,
        max_tokens=said.max_tokens,
        origin=str(path),
    )


def _fault(settings: ConfigFile, error: ValidationError) -> ConfigError:
    first, *others = faults(error.errors(), settings.values, ProfileSettings.model_fields)
    what = first.text + (f" (and {len(others)} more)" if others else "")
    lines = (settings.lines.get(first.place[:length]) for length in range(len(first.place), 0, -1))
    return fault(settings.path, next(filter(None, lines), 1), what)
