"""The tool calls of one query, put together from requests and results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from local.protocol.envelope import Envelope
from local.protocol.messages import ToolRequest, ToolResult
from local.protocol.subjects import TOOL_REQUEST, TOOL_RESULT

Json = dict[str, Any]


class Span(NamedTuple):
    """The time from a request to its result, in seconds since 1970; `ended` is None while there is none."""

    call_id: str
    began: float
    ended: float | None = None


class CallLog:
    """Calls in the order in which they were made. Where a payload was removed, the headers say what answers what."""

    def __init__(self) -> None:
        self._calls: dict[str, Json] = {}
        self._spans: dict[str, Span] = {}  # by the id of the request's envelope
        self._removed: set[str] = set()

    def __iter__(self) -> Iterator[Json]:
        """Each call as JSON: call_id, tool, args, and once it has settled result or error, sources, duration_ms."""
        return iter(self._calls.values())

    @property
    def spans(self) -> list[Span]:
        """How long each request that was heard took."""
        return list(self._spans.values())

    @property
    def sources(self) -> Iterator[str]:
        """Where results came from."""
        return (source for call in self for source in call.get("sources", ()))

    def steps(self) -> list[list[Json]]:
        """The calls made in one message of the model together: a call_id is `query_id:step:index`."""
        steps: dict[str, list[Json]] = {}
        for call_id, call in self._calls.items():
            steps.setdefault(call_id.rpartition(":")[0], []).append(call)
        return list(steps.values())

    def is_removed(self, call: Json) -> bool:
        """Whether the call's result is no longer on record."""
        return call["call_id"] in self._removed

    def receive(self, message: ToolRequest | ToolResult, envelope: Envelope) -> None:
        """Take in a request or a result."""
        if isinstance(message, ToolRequest):
            self._begin(message.call_id, message.tool, envelope)["args"] = message.args
        else:
            call = self._end(message.call_id, message.tool, envelope)
            call.update(message.model_dump(mode="json", exclude={"query_id"}))

    def receive_removed(self, envelope: Envelope) -> None:
        """Take in a request or a result whose payload was removed."""
        if envelope.subject.startswith(TOOL_REQUEST):
            self._begin(envelope.id, envelope.subject.removeprefix(TOOL_REQUEST), envelope)
        else:
            span = self._spans.get(envelope.in_reply_to or "")
            call_id = span.call_id if span is not None else envelope.in_reply_to or envelope.id
            self._end(call_id, envelope.subject.removeprefix(TOOL_RESULT), envelope)
            self._removed.add(call_id)

    def _begin(self, call_id: str, tool: str, envelope: Envelope) -> Json:
        self._spans.setdefault(envelope.id, Span(call_id, envelope.sent_at))
        return self._calls.setdefault(call_id, {"call_id": call_id, "tool": tool})

    def _end(self, call_id: str, tool: str, envelope: Envelope) -> Json:
        span = self._spans.get(envelope.in_reply_to or "")
        if span is not None and envelope.in_reply_to is not None:
            self._spans[envelope.in_reply_to] = span._replace(ended=envelope.sent_at)
        return self._calls.setdefault(call_id, {"call_id": call_id, "tool": tool})
