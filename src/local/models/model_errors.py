"""What a model server's failures mean, as a `ModelError` that says what to do about them. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

import httpx
from pydantic_core import from_json

from local.errors import ModelBusy, ModelError

_LONGEST_TEXT = 300
_BUSY = ("overloaded", "rate_limit")


class ErrorClass(StrEnum):
    """What a caller can do about a failure, whichever server it came from."""

    TIMEOUT = "timeout"
    RATE_LIMIT = "rate_limit"
    CONTEXT_OVERFLOW = "context_overflow"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    UNKNOWN = "unknown"


_CLASSES = {
    "timeout": ErrorClass.TIMEOUT,
    "rate_limit": ErrorClass.RATE_LIMIT,
    "context_overflow": ErrorClass.CONTEXT_OVERFLOW,
    **dict.fromkeys(
        ("unreachable", "stream_cut", "bad_stream", "bad_call", "overloaded", "server_error"), ErrorClass.TRANSIENT
    ),
    **dict.fromkeys(
        ("model_missing", "unsupported", "out_of_memory", "unauthorised", "quota", "filtered", "bad_request"),
        ErrorClass.PERMANENT,
    ),
}


def classify(error: ModelError) -> ErrorClass:
    """The class of a failure by its kind."""
    return _CLASSES.get(error.kind, ErrorClass.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A kind of error, and a sentence with the placeholders {server}, {model} and {text}."""

    kind: str
    advice: str


@dataclass(frozen=True, slots=True)
class ServerErrors:
    """The errors of one server. `name` is what it is called, `kin` what it should be, `start` what to do if it is away.

    The first of `by_text` that matches decides, then `by_status`. `secret` is struck out of whatever the server says.
    """

    server: str
    name: str
    kin: str
    start: str
    by_text: Sequence[tuple[re.Pattern[str], Meaning]]
    by_status: Mapping[int, Meaning]
    secret: str = field(default="", repr=False)
    limit: str = ""  # the setting that says how long the server may be silent

    def explain(self, body: Any, *, status: int | None, model: str, retry_after: float | None = None) -> ModelError:
        """The error for an HTTP error body, or for an error told in a stream under status 200 (then `status` is None).

        `retry_after` is the seconds for which the server does not want to be asked.
        """
        text = self.hidden(error_text(body))
        searched = f"{text} {error_codes(body)}"
        meaning = next((meaning for pattern, meaning in self.by_text if pattern.search(searched)), None)
        if meaning is None:
            kind = "bad_request" if status and 400 <= status < 500 else "server_error"
            fallback = Meaning(kind, f"the {self.name} at {{server}} failed: {{text}}")
            meaning = self.by_status.get(status or 0, fallback)
        message = meaning.advice.format(model=model or "the model", server=self.server, text=text)
        if meaning.kind in _BUSY:
            return ModelBusy(message, kind=meaning.kind, status=status, retry_after=retry_after)
        return ModelError(message, kind=meaning.kind, status=status)

    def from_transport(self, error: httpx.HTTPError | httpx.InvalidURL) -> ModelError:
        """The error for a connection that could not be made, or broke."""
        reason = str(error) or type(error).__name__
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
            return ModelError(f"no {self.name} answers at {self.server}: {self.start} ({reason})", kind="unreachable")
        return ModelError(f"the connection to the {self.name} at {self.server} broke: {reason}", kind="stream_cut")

    def silent(self, path: str, seconds: float) -> ModelError:
        """The error for a server that keeps us waiting."""
        found = f"no sign of life from the {self.name} at {self.server} for {seconds:g} s ({path})"
        advice = f"raise {self.limit}" if self.limit else "a large model on a slow machine needs a longer limit"
        return ModelError(f"{found}; {advice}", kind="timeout")

    def cut(self, model: str) -> ModelError:
        """The error for an answer that ended before the model had finished."""
        message = f"the {self.name} at {self.server} stopped in the middle of an answer of {model}"
        return ModelError(message, kind="stream_cut")

    def bad_stream(self, found: str) -> ModelError:
        """The error for an answer that is not in the server's format."""
        message = f"the server at {self.server} sent {self.hidden(found)}; is it {self.kin}?"
        return ModelError(message, kind="bad_stream")

    def hidden(self, text: str) -> str:
        """The text without the secret."""
        return text.replace(self.secret, "***") if self.secret else text


def error_text(body: Any) -> str:
    """The sentence inside an error body, however deep; servers pass on each other's bodies as strings in their own."""
    while True:
        if isinstance(body, list):
            body = body[0] if body else ""
        elif isinstance(body, dict):
            raw = _raw(body)
            body = next((body[key] for key in ("error", "message", "detail", "msg") if body.get(key)), "")
            if raw and isinstance(body, str):
                body = f"{body}: {error_text(raw)}"
        elif isinstance(body, str | bytes) and body.lstrip()[:1] in ("{", b"{", "[", b"["):
            try:
                body = from_json(body)
            except ValueError:
                break
        else:
            break
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body or "")
    return " ".join(text.split())[:_LONGEST_TEXT] or "no reason given"


def error_codes(body: Any) -> str:
    """The words for programs in an error body, `insufficient_quota` or `RESOURCE_EXHAUSTED`, parted by spaces."""
    error = error_object(body)
    return " ".join(word for key in ("code", "type", "status") if isinstance(word := error.get(key), str))


def error_object(body: Any) -> Mapping[str, Any]:
    """The object that describes the error in a body; empty if there is none."""
    if isinstance(body, str | bytes):
        try:
            body = from_json(body)
        except ValueError:
            return {}
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, dict):
        return {}
    inner = body.get("error")
    return inner if isinstance(inner, dict) else body


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """The Retry-After header in seconds; a date counts from the server's own Date. None if there is no such wish."""
    wish = headers.get("retry-after", "").strip()
    try:
        return max(0.0, float(wish))
    except ValueError:
        pass
    try:
        wait = parsedate_to_datetime(wish) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, wait.total_seconds())


def _raw(body: Mapping[str, Any]) -> Any:
    # OpenRouter says "Provider returned error" and keeps the provider's own words here.
    metadata = body.get("metadata")
    return metadata.get("raw") if isinstance(metadata, dict) else None
