"""JSON in and out of HTTP bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.field_fault import field_fault, field_path
from local.errors import LocalError
from local.protocol.message import parse_object

M = TypeVar("M", bound=BaseModel)
MAX_FAULTS = 5


class InvalidBody(LocalError):
    """A body that is JSON, but not what this route takes; `param` is the first field at fault."""

    kind = "invalid"

    def __init__(self, message: str, param: str | None) -> None:
        super().__init__(message)
        self.param = param


class JsonResponse(Response):
    """A JSON answer; pydantic models in `content` are written as such."""

    media_type = "application/json"

    def __init__(self, content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(to_json(content, by_alias=True), status, headers)


async def read_body(request: Request, model: type[M]) -> M:
    """The request's body. Raises `MalformedFrame` if it is no JSON object, `InvalidBody` if it is not that model."""
    fields = parse_object(await request.body(), "body")
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        places = [field_path(fault, fields) for fault in faults[:MAX_FAULTS]]
        texts = [f"{place or 'body'}: {field_fault(fault)}" for place, fault in zip(places, faults, strict=False)]
        raise InvalidBody("; ".join(texts), places[0] or None) from None


def takes(model: type[BaseModel]) -> dict[str, Any]:
    """What /openapi.json says of a route that reads its body with `read_body`."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}
