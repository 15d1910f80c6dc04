"""The trace of a query as a collector of OpenTelemetry receives it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from local.core.secrets import SecretStore
from local.core.shipped import shipped_dir
from local.queries.otlp import OtelConfig, TraceNotSent, load_otel, send
from local.queries.view import QueryTrace
from tests.queries.otlp_receiver import collector
from tests.queries.test_trace import WITH_TOOLS

ANSWER = {
    "query": "What is it?", "answer": "Four.",
    "tool_calls": [{"call_id": "q:0:1", "args": {"query": "dice"}, "result": "x"}],
}  # fmt: skip


def traced(query_id: str = "q", **more: Any) -> dict[str, Any]:
    spans = [span._asdict() for span in QueryTrace.of(query_id, WITH_TOOLS).spans()]
    return {"query_id": query_id, "spans": spans, "envelopes": [{"session_id": "s1"}], **more}


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


def test_a_collector_has_every_span_with_its_times_below_the_same_parent() -> None:
    trace = traced(agents=[traced("task", name="reader", agent_id="a1", agents=[])])
    with collector() as received:
        config = OtelConfig(endpoint=received.url)
        assert send(trace, config) == len(received.spans) == 18
        assert send(trace, config) == 18
    first, again = received.spans[:18], received.spans[18:]
    assert [span.span_id for span in first] == [span.span_id for span in again], "a trace that is sent twice is one"
    assert len({span.trace_id for span in first}) == 1 and len({span.span_id for span in first}) == 18
    for sent, span in zip([*trace["spans"], *trace["agents"][0]["spans"]], first, strict=True):
        assert (span.start_time_unix_nano, span.end_time_unix_nano) == (sent["started"] * 1e9, sent["ended"] * 1e9)
    of = dict(zip(("query", *(span["id"] for span in trace["spans"][1:])), first, strict=False))
    assert of["query"].parent_span_id == b"" and of["tool-1"].parent_span_id == of["query"].span_id
    assert first[9].parent_span_id == of["query"].span_id, "an agent is below the query that made it"
    path, headers = received.requests[0]
    assert (path, headers["content-type"]) == ("/v1/traces", "application/x-protobuf")


def test_the_names_are_those_of_the_conventions_and_content_stays_here() -> None:
    with collector() as received:
        send(traced(), OtelConfig(endpoint=received.url + "/v1/traces/"), ANSWER)
    by_name = {span.name: span for span in received.spans}
    model = by_name["chat gemma"]
    assert {"invoke_agent generator", "execute_tool dice", "execute_tool search_memory", "grade"} <= set(by_name)
    assert attributes(by_name["invoke_agent generator"])["gen_ai.conversation.id"] == "s1"
    assert attributes(model)["gen_ai.operation.name"] == "chat"
    assert model.kind == model.SPAN_KIND_CLIENT
    failed = by_name["execute_tool dice"]
    assert (failed.status.code, attributes(failed)["error.type"]) == (failed.status.STATUS_CODE_ERROR, "timeout")
    assert attributes(failed)["gen_ai.tool.call.id"] == "q:0:0"
    assert attributes(by_name["grade"])["local2.score"] == 4
    assert not any(word in str(received.spans) for word in ("What is it", "Four", "late"))


def test_content_is_sent_where_the_settings_say_so(tmp_path: Path) -> None:
    SecretStore(tmp_path).set("collector", "the-key-of-it")
    with collector() as received:
        text = f"endpoint: {received.url}\ncontent: true\nheaders: {{x-key: secret:collector}}\n"
        (tmp_path / "otel.yaml").write_text(text)
        send(traced(), load_otel([shipped_dir() / "config", tmp_path], tmp_path), ANSWER)
    by_name = {span.name: attributes(span) for span in received.spans}
    [asked] = json.loads(by_name["invoke_agent generator"]["gen_ai.input.messages"])
    assert asked == {"role": "user", "parts": [{"type": "text", "content": "What is it?"}]}
    assert by_name["execute_tool search_memory"]["gen_ai.tool.call.result"] == '"x"'
    assert received.requests[0][1]["x-key"] == "the-key-of-it"


def test_what_is_not_accepted_or_not_set_is_said(tmp_path: Path) -> None:
    with collector() as received:
        received.status = 401
        with pytest.raises(TraceNotSent, match=r"not accepted by .*/v1/traces: 401 .*; check endpoint and headers"):
            send(traced(), OtelConfig(endpoint=received.url))
    with pytest.raises(TraceNotSent, match="is a collector running there"):
        send(traced(), OtelConfig(endpoint=received.url))
    with pytest.raises(TraceNotSent, match=r"otel\.yaml: endpoint is not set"):
        send(traced(), load_otel([shipped_dir() / "config"], tmp_path))
    with pytest.raises(TraceNotSent, match="has no recorded times"):
        send({"query_id": "q", "spans": []}, OtelConfig(endpoint=received.url))
