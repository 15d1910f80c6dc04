"""Failures as HTTP answers: a status for each kind, one shape, and OpenAI's shape where OpenAI's clients listen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from fastapi import FastAPI, Path
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, StringConstraints, ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from local.bus.message import parse_object
from local.core.errors import LocalError
from local.queries.errors import QueryRefused

if TYPE_CHECKING:
    from jsonschema.exceptions import SchemaError


# Identifiers as clients may choose them.

ID_PATTERN = r"^[A-Za-z0-9._:~-]{1,128}$"
ID_WORDS = "1 to 128 letters, digits and ._:~-"

Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
"""In a body: 1 to 128 letters, digits and `._:~-`."""

PathId = Annotated[str, Path(pattern=ID_PATTERN)]
"""The same in a path."""


# The errors in fields of a request, in our own words if pydantic's do not say what would be right.

_VALUE_ERROR = "Value error, "  # pydantic's prefix of our own validators' messages
_EXPECTED = {
    "tuple_type": "expected a list",
    "list_type": "expected a list",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
}


def field_fault(fault: Mapping[str, Any]) -> str:
    """The sentence for one of pydantic's errors, without the field's name."""
    if fault["type"] == "extra_forbidden":
        return "there is no such field; GET /openapi.json describes those there are"
    if fault["type"] == "string_pattern_mismatch" and fault["ctx"]["pattern"] == ID_PATTERN:
        return f"expected {ID_WORDS}"
    return _EXPECTED.get(fault["type"]) or str(fault["msg"]).removeprefix(_VALUE_ERROR)


def field_path(fault: Mapping[str, Any], fields: Any) -> str:
    """Return the place of a pydantic error in the `fields` of a body, as `messages.0.content`; empty for the whole
    body. The names of types that pydantic adds are left out.
    """
    found, value = list[str](), fields
    for part in fault["loc"]:
        if (isinstance(value, list) and isinstance(part, int)) or (isinstance(value, dict) and part in value):
            value = value[part]
        elif not isinstance(value, dict) or fault["type"] != "missing" or part != fault["loc"][-1]:
            continue
        found.append(_visible(str(part)))
    return ".".join(found)


def _visible(part: str) -> str:
    """Return the name of a field, which may come from a client, with invisible characters as their codes."""
    return (part if part and part.isprintable() else ascii(part))[:100]


# JSON in and out of HTTP bodies.

M = TypeVar("M", bound=BaseModel)
MAX_FAULTS = 5


class InvalidBody(LocalError):
    """A body that is JSON, but invalid for this route; `param` is the first invalid field."""

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
    """Return the request's body. Raises `MalformedFrame` if it is no JSON object, `InvalidBody` if it does not match
    the model.
    """
    fields = parse_object(await request.body(), "body")
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        places = [field_path(fault, fields) for fault in faults[:MAX_FAULTS]]
        texts = [f"{place or 'body'}: {field_fault(fault)}" for place, fault in zip(places, faults, strict=False)]
        raise InvalidBody("; ".join(texts), places[0] or None) from None


def takes(model: type[BaseModel]) -> dict[str, Any]:
    """Return the /openapi.json description of a route that reads its body with `read_body`."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


log = logging.getLogger(__name__)

OPENAI_PREFIX = "/v1/"
RETRY_SECONDS = "5"
STATUS: Mapping[str, int] = {
    "malformed": 400,
    "bad_model": 422,
    "unsupported": 400,
    "bad_name": 422,
    "invalid": 422,
    "unauthorized": 401,
    "quota": 402,
    "forbidden": 403,
    "denied": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "too_slow": 408,
    "trace_not_sent": 502,
    "cancelled": 409,
    "changed": 409,
    "config": 409,
    "conflict": 409,
    "elsewhere": 409,
    "link": 409,
    "not_a_file": 409,
    "not_a_folder": 409,
    "outside": 409,
    "deleted": 410,
    "not_kept": 410,
    "removed": 409,
    "too_large": 413,
    "context_overflow": 413,
    "unsupported_media_type": 415,
    "unsendable": 422,
    "budget_spent": 429,
    "busy": 429,
    "rate_limit": 429,
    "too_many_queries": 429,
    "unavailable": 503,
    "overloaded": 503,
    "not_confirmed": 503,
    "stopping": 503,
    "timeout": 503,
    "publish_timeout": 503,
    "bus_not_ready": 503,
    "bus_closed": 503,
    "journal_gone": 503,
    "store_gone": 503,
    "store_locked": 503,
    "store_read_only": 503,
    "fenced": 503,
    "gone": 503,
    "disk_full": 507,
    "journal_full": 507,
    "store_full": 507,
}


class RequestRefused(LocalError):
    """The error for a request that is refused. `kind` is one of `STATUS`, `param` the wrong field if there is one."""

    def __init__(self, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.kind, self.param = kind, param


class ClientLeft(Exception):
    """The error for a client that has left: there is no connection to answer on."""


def status_of(error: LocalError) -> int:
    """Return the HTTP status; without a status of its own 502 if a query caused it, else 500."""
    return STATUS.get(error.kind, 502 if isinstance(error, QueryRefused) else 500)


def error_response(path: str, error: LocalError, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to a request for `path` that failed with `error`."""
    status, details = status_of(error), getattr(error, "details", {})
    if status in (429, 503, 507):
        seconds = getattr(error, "retry_seconds", RETRY_SECONDS)
        headers = {"retry-after": str(seconds), **(headers or {})}
    if path.startswith(OPENAI_PREFIX):
        return JsonResponse(openai_error(error), 400 if status == 422 else status, headers)
    return JsonResponse({"error": {"kind": error.kind, "message": str(error), **details}}, status, headers)


def waited(request: Request) -> float:
    """For how many seconds a request waits already, since it has arrived at this machine."""
    since_arrival: Callable[[], float] | None = request.scope.get("state", {}).get("waited")
    return 0.0 if since_arrival is None else since_arrival()


def openai_error(error: LocalError) -> dict[str, Any]:
    """A failure in OpenAI's words."""
    status = status_of(error)
    of_type = "rate_limit_error" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    param = getattr(error, "param", None)
    return {"error": {"message": str(error), "type": of_type, "param": param, "code": error.kind}}


def handle_errors(app: FastAPI) -> None:
    """Make every exception of a route an answer."""

    @app.exception_handler(LocalError)
    async def ours(request: Request, error: LocalError) -> Response:
        if status_of(error) == 500:
            log.error("%s %s: %s", request.method, request.url.path, error)
        return error_response(request.url.path, error)

    @app.exception_handler(HTTPException)
    async def no_such_route(request: Request, error: HTTPException) -> Response:
        asked = f"{request.method} {request.url.path[:200]}"
        if error.status_code == 405:
            refusal = RequestRefused("method_not_allowed", f"{asked}: this route does not take {request.method}")
        else:
            refusal = RequestRefused("not_found", f"there is no route {asked}; GET /openapi.json describes them")
        return error_response(request.url.path, refusal, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        faults = [
            f"{'.'.join(str(part) for part in fault['loc'][1:])}: {field_fault(fault)}" for fault in error.errors()
        ]
        return error_response(request.url.path, RequestRefused("invalid", "; ".join(faults)))

    @app.exception_handler(Exception)
    async def fault_of_ours(request: Request, error: Exception) -> Response:
        log.error(
            "%s %s: %s: %s", request.method, request.url.path, type(error).__name__, error,
            exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
        )  # fmt: skip
        return error_response(request.url.path, LocalError("something went wrong in here; the log says what"))


# Responses that are written in parts: server-sent events, and downloads.

Chunks = AsyncGenerator[bytes, None]
KEEP_ALIVE = b": keep-alive\n\n"


class ServerEvent(NamedTuple):
    """One event before it is written: `data` is one line of JSON, `number` the name by which a client may refer
    to it.
    """

    name: str
    data: bytes
    number: str = ""


def sse(event: str, data: bytes, number: str = "") -> bytes:
    """Return one event. `data` is one line."""
    id_line = f"id: {number}\n" if number else ""
    return b"%sevent: %s\ndata: %s\n\n" % (id_line.encode(), event.encode(), data)


@contextmanager
def ticking(seconds: float, tick: Callable[[], object]) -> Iterator[None]:
    """Call `tick` every so many seconds for as long as the block lasts."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def go_on() -> None:
        nonlocal timer
        tick()
        timer = loop.call_later(seconds, go_on)

    timer = loop.call_later(seconds, go_on)
    try:
        yield
    finally:
        timer.cancel()


class Streamed(StreamingResponse):
    """A response whose chunks are written as they come; when the client leaves, `chunks` is closed. A failure before
    the first chunk still has a status; a later one cuts the connection, so that the client notices that it is
    incomplete.
    """

    def __init__(self, chunks: Chunks, headers: Mapping[str, str]) -> None:
        super().__init__(chunks, headers=headers)
        self._chunks = chunks

    async def stream_response(self, send: Send) -> None:
        """Send all chunks, the head with the first one."""
        async with aclosing(self._chunks) as chunks:
            first = await anext(chunks, b"")
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": first, "more_body": True})
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class Download(Streamed):
    """A streamed response that a browser saves as a file; lines of JSON by default."""

    def __init__(self, chunks: Chunks, name: str, media_type: str = "application/x-ndjson") -> None:
        self.media_type = media_type
        super().__init__(chunks, {"cache-control": "no-store", "content-disposition": f'attachment; filename="{name}"'})


class EventStream(Streamed):
    """A streamed response of server-sent events."""

    media_type = "text/event-stream"

    def __init__(self, chunks: Chunks) -> None:
        super().__init__(chunks, {"cache-control": "no-store", "x-accel-buffering": "no"})


# Errors in a client's JSON Schema, which model servers report without details.

MOST_CHARACTERS = 200


class SchemaFault(NamedTuple):
    """One fault in a client's JSON Schema. `place` is that of the wrong value, as `properties.city.type`."""

    place: str
    text: str


def schema_fault(schema: Any) -> SchemaFault | None:
    """Return the fault of a value that no current draft accepts as a schema; None if one does. Takes milliseconds.

    `schema` is nested no deeper than a request's body may be.
    """
    from jsonschema import (
        Draft201909Validator,  # takes long, and is rarely needed
        Draft202012Validator,  # takes long, and is rarely needed
        FormatChecker,  # takes long, and is rarely needed
    )
    from jsonschema.exceptions import SchemaError

    any_pattern = FormatChecker(())  # model servers have other regular expressions than Python
    try:
        Draft202012Validator.check_schema(schema, any_pattern)
    except SchemaError as error:
        if not Draft201909Validator(Draft201909Validator.META_SCHEMA).is_valid(schema):  # has lists as `items`
            return SchemaFault(".".join(str(part)[:80] for part in error.absolute_path), _text(error))
    return None


def _text(error: SchemaError) -> str:
    if names := next((each.validator_value for each in error.context or () if each.validator == "enum"), None):
        return f"expected one of {', '.join(names)}"
    if error.validator == "type":
        types = error.validator_value
        return f"expected {types if isinstance(types, str) else ' or '.join(types)}"
    return error.message if len(error.message) <= MOST_CHARACTERS else f"…{error.message[-MOST_CHARACTERS:]}"
