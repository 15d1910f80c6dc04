"""The arguments of the tools that a turn is itself, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

MOST_FAULTS = 5


def fault_in(tool: str, model: type[BaseModel], args: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of a call, as the model reads it; empty if nothing is."""
    try:
        model.model_validate(args)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:MOST_FAULTS])
        return f"{tool}: bad arguments: {faults}. Expected: {', '.join(model.model_fields)}."
    return ""
