"""Server-sent events to deltas, without a socket."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.core.errors import ModelError
from local.models.chat import (
    ContentDelta,
    Delta,
    Done,
    ProgressDelta,
    ThinkingDelta,
    ToolCall,
    Usage,
    ollama_errors,
    openai_errors,
)
from local.models.http import MAX_LINE_BYTES
from local.models.ollama import OllamaStream as OllamaDecoder
from local.models.openai import OpenAIStream

ERRORS = openai_errors("http://host:1/v1")
END = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(reason: str | None = None, **delta: Any) -> bytes:
    return event({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def usage(prompt: int, completion: int, **more: Any) -> bytes:
    return event({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}, **more})


STOP = chunk("stop") + END


def decode(*pieces: bytes, content_type: str = "text/event-stream") -> list[Delta]:
    decoder = OpenAIStream("m", ERRORS, content_type)
    return [*(delta for piece in pieces for delta in decoder.feed(piece)), *([] if decoder.done else decoder.end())]


def failure(*pieces: bytes, content_type: str = "text/event-stream") -> ModelError:
    with pytest.raises(ModelError) as caught:
        decode(*pieces, content_type=content_type)
    return caught.value


def whole(message: Any, **choice: Any) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": "stop"} | choice
    return json.dumps({"model": "m", "choices": [choice], "usage": {"prompt_tokens": 1}}, indent=1).encode()


def test_thinking_content_calls_and_usage_come_in_order() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    stream = chunk(role="assistant", content="") + chunk(reasoning_content="hm") + chunk(content="Hi")
    timings = {"prompt_ms": 500, "predicted_ms": 1500.0}
    ending = chunk(tool_calls=[call]) + chunk("tool_calls") + usage(5, 7, timings=timings) + END
    assert decode(stream + ending) == [
        ThinkingDelta("hm"),
        ContentDelta("Hi"),
        ToolCall("f", {"a": 1}, "c"),
        Done(Usage(5, 7, {"prompt_eval": 0.5, "eval": 1.5}), "tool_calls", "m"),
    ]


def test_a_stream_cut_at_any_byte_gives_the_same() -> None:
    stream = (
        chunk(reasoning="é")
        + b": ping\r\n\r\n"
        + chunk(content="<think>so</think>Ja 🙂").replace(b"\n", b"\r\n")
        + STOP
    )
    expected = decode(stream)
    assert expected[:-1] == [ThinkingDelta("é"), ThinkingDelta("so"), ContentDelta("Ja 🙂")]
    assert decode(*(stream[i : i + 1] for i in range(len(stream)))) == expected
    for cut in range(len(stream)):
        assert decode(stream[:cut], stream[cut:]) == expected


@pytest.mark.parametrize(
    "noise",
    [
        b": OPENROUTER PROCESSING\n\n",
        b":\n",
        b"event: message\nid: 7\nretry: 10\n",
        b"data:\n\n",
        b"\r\n\r\n",
        event({"choices": []}),
        event({"object": "chat.completion.chunk"}),
        event({"choices": [{"index": 0, "delta": None}]}),
        event({"choices": [{"index": 0}], "usage": None, "error": None}),
        event({"choices": None, "prompt_progress": {"total": 9}}),
    ],
)
def test_what_says_nothing_changes_nothing(noise: bytes) -> None:
    assert decode(noise + chunk(content="Hi") + noise + STOP) == decode(chunk(content="Hi") + STOP)


def test_the_progress_of_llama_server_is_told_before_the_first_token() -> None:
    read = [{"total": 4348, "cache": 100, "processed": done, "time_ms": 5} for done in (100, 1124)]
    progress = b"".join(event({"choices": [{"index": 0, "delta": {}}], "prompt_progress": each}) for each in read)
    assert decode(progress + chunk(content="Hi") + STOP)[:3] == [
        ProgressDelta(100, 4348, 100),
        ProgressDelta(1124, 4348, 100),
        ContentDelta("Hi"),
    ]


def test_events_need_neither_a_blank_line_nor_a_space_after_the_colon() -> None:
    stream = (chunk(content="a") + chunk(content="b") + STOP).replace(b"\n\n", b"\n").replace(b"data: ", b"data:")
    assert decode(stream)[:-1] == [ContentDelta("a"), ContentDelta("b")]


def test_both_names_of_the_thinking_at_once_are_one_thought() -> None:
    assert decode(chunk(reasoning="hm", reasoning_content="hm") + STOP)[0] == ThinkingDelta("hm")


def test_a_refusal_is_an_answer() -> None:
    assert decode(chunk(refusal="I can't.") + STOP)[0] == ContentDelta("I can't.")


def test_only_the_first_choice_counts() -> None:
    both = event({"choices": [{"delta": {"content": "a"}}, {"index": 1, "delta": {"content": "b"}}]})
    assert decode(both + STOP)[:-1] == [ContentDelta("a")]


@pytest.mark.parametrize("ending", [chunk("stop"), chunk("stop") + usage(1, 2), chunk("stop") + b'data: {"usa', END])
def test_a_reason_or_an_end_mark_is_enough_to_be_done(ending: bytes) -> None:
    deltas = decode(chunk(content="Hi") + ending)
    assert deltas[0] == ContentDelta("Hi")
    assert isinstance(deltas[1], Done)


def test_the_reason_is_the_servers_and_usage_may_be_absent() -> None:
    assert decode(chunk("length", content="Hi") + END)[-1] == Done(Usage(), "length", "m")


def test_what_was_held_back_for_a_tag_comes_before_done() -> None:
    assert decode(chunk(content="a <thi") + STOP)[:-1] == [ContentDelta("a "), ContentDelta("<thi")]


def test_an_end_without_a_reason_is_a_cut_stream() -> None:
    assert failure(chunk(content="Hi")).kind == "stream_cut"
    assert failure(b"").kind == "stream_cut"
    assert failure(b": ping\n\n").kind == "stream_cut"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (event({"error": {"message": "boom", "type": "server_error"}}), "server_error"),
        (event({"error": "boom"}), "server_error"),
        (event({"error": {"code": 429, "message": "Rate limit exceeded"}, "choices": [{"delta": {}}]}), "rate_limit"),
        (event({"choices": [{"delta": {}, "error": {"code": 502, "message": "away"}}]}), "overloaded"),
        (event({"object": "error", "message": "boom", "type": "BadRequestError", "code": 400}), "bad_request"),
        (b'error: {"code":400,"message":"the request exceeds the available context size"}\n\n', "context_overflow"),
        (b'{"error":{"code":500,"message":"boom"}}\n', "server_error"),
        (chunk("content_filter"), "filtered"),
        (chunk("error"), "server_error"),
        (chunk("function_call_filter: MALFORMED_FUNCTION_CALL"), "bad_call"),
    ],
)
def test_a_failure_told_under_status_200_has_its_kind(line: bytes, kind: str) -> None:
    decoder = OpenAIStream("m", ERRORS, "text/event-stream")
    deltas: list[Delta] = []
    with pytest.raises(ModelError) as caught:
        for delta in decoder.feed(chunk(content="Hi") + line + END):
            deltas.append(delta)
    assert caught.value.kind == kind
    assert deltas == [ContentDelta("Hi")]


@pytest.mark.parametrize(
    "line",
    [
        b'data: {"choices":[{"delta":{"content":"Hi"\n',
        b"<html>\n",
        b"\x00%&garbage\n",
        b"data: [1]\n",
        b'data: {"choices":3}\n',
        b'data: {"choices":["Hi"]}\n',
        b'data: {"choices":[{"delta":"Hi"}]}\n',
        b'data: {"choices":[{"delta":{"content":["Hi"]}}]}\n',
        b'data: {"choices":[{"delta":{"tool_calls":3}}]}\n',
        b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n',
        b"data: " + b"[" * 10_000 + b"\n",
        b"data: {" + b" " * MAX_LINE_BYTES,
    ],
    ids=lambda line: repr(line[:40]),
)
def test_what_is_not_openais_format_is_a_bad_stream(line: bytes) -> None:
    error = failure(line)
    assert error.kind == "bad_stream"
    assert len(str(error)) < 400


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    decoder = OpenAIStream("m", ERRORS, "text/event-stream")
    with pytest.raises(ModelError, match="a line of more than"):
        list(decoder.feed(b"data: {" + b" " * MAX_LINE_BYTES))


def test_a_whole_body_answers_a_request_for_a_stream_too() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = whole({"role": "assistant", "content": "Hi", "reasoning": "hm", "tool_calls": [call]})
    deltas = decode(body[:20], body[20:], content_type="application/json; charset=utf-8")
    assert deltas == [ThinkingDelta("hm"), ContentDelta("Hi"), ToolCall("f", {}, "c"), Done(Usage(1, 0), "stop", "m")]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"error": {"code": 429, "message": "slow down"}}', "rate_limit"),
        (b'[{\n "error": {"code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED"}\n}\n]', "rate_limit"),
        (b'{"choices": [', "bad_stream"),
        (b"", "bad_stream"),
        (b"{}", "stream_cut"),
    ],
)
def test_a_whole_body_that_is_no_answer_is_an_error(body: bytes, kind: str) -> None:
    assert failure(body, content_type="application/json").kind == kind


@pytest.mark.parametrize("content_type", ["text/html", "application/x-ndjson", "no content type"])
def test_another_content_type_is_a_bad_stream(content_type: str) -> None:
    assert content_type in str(failure(content_type=content_type))


KEYS = (
    "choices delta message content tool_calls function name arguments id index error code usage timings "
    "finish_reason metadata raw done object prompt_ms"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, JSON)
def test_no_json_makes_a_decoder_fail_otherwise_than_with_a_model_error(value: Any, other: Any) -> None:
    openai = OpenAIStream("m", ERRORS, "text/event-stream")
    chunks = ({"choices": [{"delta": value, "finish_reason": None}]}, value, {"choices": other, "message": value})
    for decoder, lines in (
        (openai, b"".join(map(event, chunks))),
        (
            OllamaDecoder("m", ollama_errors("http://h:1")),
            b"".join(json.dumps(item).encode() + b"\n" for item in chunks),
        ),
    ):
        try:
            assert [*decoder.feed(lines), *decoder.end()]
        except ModelError as error:
            assert str(error)
