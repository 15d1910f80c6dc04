"""Traces for other tools: the spans of a query as OpenTelemetry's, with the names of its GenAI conventions, over HTTP.

The spans are those of `QueryTrace`, so that a viewer shows what `local2 trace` shows. Ids are made of the query's id:
a trace that is sent twice is one. Content (question, answer, arguments and results of tools) is left out unless the
settings say otherwise.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, SecretStr

from local.core.config import Settings, load
from local.core.errors import LocalError
from local.core.secrets import SecretStore, with_secrets

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

Json = Mapping[str, Any]

PATH = "/v1/traces"
NANOSECONDS = 1_000_000_000
TOOLS = ("tool", "memory")  # kinds of spans that may be calls of tools, which have a call_id


class TraceNotSent(LocalError):
    """The error for a trace that no collector has accepted."""

    kind = "trace_not_sent"


class OtelConfig(Settings):
    """The settings file `otel.yaml`: where traces are sent, and whether with content."""

    endpoint: str | None = Field(None, pattern=r"^https?://[^\s]+$")
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    content: bool = False
    timeout_seconds: float = Field(10.0, gt=0, le=120)

    @property
    def url(self) -> str:
        """The address to send to. Raises `TraceNotSent` if there is none."""
        if self.endpoint is None:
            raise TraceNotSent("otel.yaml: endpoint is not set; set it to the address of your collector")
        base = self.endpoint.rstrip("/")
        return base if base.endswith(PATH) else base + PATH


def load_otel(layers: Sequence[Path], data_dir: Path, endpoint: str | None = None) -> OtelConfig:
    """Return the settings, with the values of the secrets that they name. Raises `ConfigError`."""
    config = load("otel", OtelConfig, layers, {"endpoint": endpoint})
    return with_secrets(config, "otel", SecretStore(data_dir).get)


def send(trace: Json, config: OtelConfig, answer: Json | None = None) -> int:
    """Send the trace of a query, as `GET /query/{query_id}/trace` has it, and return the number of its spans. `answer`
    is the content that is sent with it. Raises `TraceNotSent`.
    """
    import httpx

    body, count = encoded(trace, answer if config.content else None)
    headers = {name: value.get_secret_value() for name, value in config.headers.items()}
    headers |= {"content-type": "application/x-protobuf", "user-agent": "LoCAL2"}
    try:
        response = httpx.post(config.url, content=body, headers=headers, timeout=config.timeout_seconds)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise TraceNotSent(f"the trace was not sent to {config.url}: {error}; is a collector running there?") from None
    if not response.is_success:
        why = f"{response.status_code} {response.text[:200]!a}"
        raise TraceNotSent(f"the trace was not accepted by {config.url}: {why}; check endpoint and headers")
    return count


def encoded(trace: Json, answer: Json | None = None) -> tuple[bytes, int]:
    """Return a trace as a request of OTLP, and the number of its spans. Raises `TraceNotSent` without the extra."""
    try:
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
        from opentelemetry.sdk.resources import Resource
    except ImportError as error:
        text = f"traces need the extra `otel` ({error}); install it with `pip install 'local2-assistant[otel]'`"
        raise TraceNotSent(text) from None
    resource = Resource({"service.name": "local2", "service.version": version("local2-assistant")})
    spans = list(_spans(trace, resource, trace["query_id"], None, answer))
    if not spans:
        raise TraceNotSent(f"query {trace['query_id']} has no recorded times")
    return encode_spans(spans).SerializeToString(), len(spans)


def _spans(
    trace: Json, resource: Any, root_query_id: str, parent: Any, answer: Json | None = None
) -> Iterator[ReadableSpan]:
    """Yield the spans of a query and of the agents that it has made. Those of agents are below its whole span."""
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    query_id = trace.get("query_id") or root_query_id
    contexts = {
        span["id"]: SpanContext(
            _number(root_query_id, 16), _number(f"{query_id}/{span['id']}", 8), False, TraceFlags(TraceFlags.SAMPLED)
        )
        for span in trace["spans"]
    }
    for span in trace["spans"]:
        detail, is_whole = span["detail"], span["parent"] is None
        name, attributes = _named(span, trace, answer if is_whole or "call_id" in detail else None)
        error = detail.get("error")
        first = detail.get("first_token")
        yield ReadableSpan(
            name=name,
            context=contexts[span["id"]],
            parent=parent if is_whole else contexts[span["parent"]],
            resource=resource,
            attributes=attributes | ({"error.type": error["kind"]} if error else {}),
            events=[Event("first_token", timestamp=_nanoseconds(first))] if first else (),
            kind=SpanKind.CLIENT if span["kind"] == "model" else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, error["message"] if answer else None) if error else Status(),
            start_time=_nanoseconds(span["started"]),
            end_time=None if span["ended"] is None else _nanoseconds(span["ended"]),
        )
    whole = next((contexts[span["id"]] for span in trace["spans"] if span["parent"] is None), parent)
    for agent in trace.get("agents", ()):
        yield from _spans(agent, resource, root_query_id, whole)


def _named(span: Json, trace: Json, answer: Json | None) -> tuple[str, dict[str, Any]]:
    """The name and the attributes of a span."""
    kind, name, detail = span["kind"], span["name"], span["detail"]
    more: dict[str, Any] = {"local2.kind": kind, "local2.attempt": span["attempt"]}
    if span["parent"] is None:
        agent = trace.get("name", "generator")
        more |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
        more |= {"gen_ai.provider.name": "local2", "local2.query_id": trace["query_id"]}
        sessions = [each["session_id"] for each in trace.get("envelopes", ()) if each.get("session_id")]
        more |= {"gen_ai.conversation.id": sessions[0]} if sessions else {}
        more |= {"gen_ai.agent.id": trace["agent_id"]} if "agent_id" in trace else {}
        if answer is not None:
            more["gen_ai.input.messages"] = _message("user", answer.get("query"))
            more["gen_ai.output.messages"] = _message("assistant", answer.get("answer"))
        return f"invoke_agent {agent}", more
    if kind == "model":
        more |= {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "local2", "gen_ai.request.model": name}
        for key, attribute in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")):
            if key in detail:
                more[f"gen_ai.usage.{attribute}"] = detail[key]
        return f"chat {name}", more
    if kind in TOOLS and "call_id" in detail:
        more |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
        more["gen_ai.tool.call.id"] = detail["call_id"]
        calls = answer.get("tool_calls", ()) if answer else ()
        for call in (each for each in calls if each.get("call_id") == detail["call_id"]):
            more["gen_ai.tool.call.arguments"] = json.dumps(call.get("args"), ensure_ascii=False)
            more["gen_ai.tool.call.result"] = json.dumps(call.get("result"), ensure_ascii=False)
        return f"execute_tool {name}", more
    facts = {f"local2.{key}": value for key, value in detail.items() if isinstance(value, str | int | float)}
    return name, more | facts


def _message(role: str, text: Any) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text or ""}]}], ensure_ascii=False)


def _number(text: str, size: int) -> int:
    """An id of so many bytes, always the same one for a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size])


def _nanoseconds(seconds: float) -> int:
    return round(seconds * NANOSECONDS)
