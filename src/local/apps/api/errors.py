"""Failures as HTTP answers: a status for each kind, one shape, and OpenAI's shape where OpenAI's clients listen."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.field_fault import field_fault
from local.apps.api.json_body import JsonResponse
from local.errors import LocalError
from local.queries.errors import QueryRefused

log = logging.getLogger(__name__)

OPENAI_PREFIX = "/v1/"
RETRY_SECONDS = "5"
STATUS: Mapping[str, int] = {
    "malformed": 400,
    "bad_model": 422,
    "bad_name": 422,
    "invalid": 422,
    "unauthorized": 401,
    "quota": 402,
    "forbidden": 403,
    "denied": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "too_slow": 408,
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
    """A request that is turned down. `kind` is one of `STATUS`, `param` the field at fault if there is one."""

    def __init__(self, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.kind, self.param = kind, param


def status_of(error: LocalError) -> int:
    """The HTTP status; what has no status of its own is 502 if it came of a query, and 500 if it came of us."""
    return STATUS.get(error.kind, 502 if isinstance(error, QueryRefused) else 500)


def error_response(path: str, error: LocalError, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to a request for `path` that failed with `error`."""
    status, details = status_of(error), getattr(error, "details", {})
    if status in (429, 503):
        seconds = getattr(error, "retry_seconds", RETRY_SECONDS)
        headers = {"retry-after": str(seconds), **(headers or {})}
    if path.startswith(OPENAI_PREFIX):
        return JsonResponse(openai_error(error), 400 if status == 422 else status, headers)
    return JsonResponse({"error": {"kind": error.kind, "message": str(error), **details}}, status, headers)


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
