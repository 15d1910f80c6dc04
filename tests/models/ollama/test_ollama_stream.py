"""NDJSON to deltas, without a socket."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.core.errors import ModelError
from local.models.chat import ContentDelta, Delta, Done, ThinkingDelta, ToolCall, Usage, ollama_errors
from local.models.http import MAX_LINE_BYTES
from local.models.ollama import OllamaStream

SERVER = "http://host:1"


def chunk(content: str = "", *, done: bool = False, **message: Any) -> bytes:
    metrics = {"done_reason": "stop", "eval_count": 7, "eval_duration": 1_500_000_000, "prompt_eval_count": 5}
    body = {"model": "m", "message": {"role": "assistant", "content": content, **message}, "done": done}
    return json.dumps(body | (metrics if done else {})).encode() + b"\n"


def call(arguments: Any, name: Any = "f") -> bytes:
    return chunk(tool_calls=[{"id": "call_1", "function": {"name": name, "arguments": arguments}}])


def decode(*pieces: bytes) -> list[Delta]:
    decoder = OllamaStream("m", ollama_errors(SERVER))
    return [*(delta for piece in pieces for delta in decoder.feed(piece)), *([] if decoder.done else decoder.end())]


def failure(*pieces: bytes) -> ModelError:
    with pytest.raises(ModelError) as caught:
        decode(*pieces)
    return caught.value


def test_every_chunk_counts_the_one_that_says_done_included() -> None:
    calls = [{"function": {"name": "f", "arguments": {"a": 1}}}]
    stream = chunk(thinking="hm") + chunk("Hi") + chunk("!", done=True, thinking="so", tool_calls=calls)
    durations = {"total": 0, "load": 0, "prompt_eval": 0, "eval": 1.5}
    assert decode(stream) == [
        ThinkingDelta("hm"),
        ContentDelta("Hi"),
        ThinkingDelta("so"),
        ContentDelta("!"),
        ToolCall("f", {"a": 1}),
        Done(Usage(5, 7, durations), "stop", "m"),
    ]


def test_a_stream_cut_at_any_byte_gives_the_same() -> None:
    stream = chunk(thinking="hm") + chunk("<think>é</think>") + call({"a": "ü"}) + chunk("Ja 🙂", done=True)
    whole = decode(stream)
    assert len(whole) == 5
    assert decode(*(stream[i : i + 1] for i in range(len(stream)))) == whole
    for cut in range(len(stream)):
        assert decode(stream[:cut], stream[cut:]) == whole


def test_what_was_held_back_for_a_tag_comes_before_done() -> None:
    deltas = decode(chunk("a <thi"), chunk(done=True))
    assert deltas[:-1] == [ContentDelta("a "), ContentDelta("<thi")]


def test_a_last_line_without_its_line_end_counts() -> None:
    assert isinstance(decode(chunk("Hi"), chunk(done=True).rstrip())[-1], Done)


def test_nothing_follows_done() -> None:
    assert isinstance(decode(chunk(done=True) + chunk("more") + b"garbage\n")[-1], Done)


def test_blank_lines_and_null_fields_are_nothing() -> None:
    stream = b"\n\r\n" + chunk(thinking=None, tool_calls=None) + b'{"message":null}\n' + chunk(done=True)
    assert len(decode(stream)) == 1


def test_an_end_without_done_is_a_cut_stream() -> None:
    error = failure(chunk("Hi"))
    assert error.kind == "stream_cut"
    assert SERVER in str(error)


def test_what_came_before_a_failure_is_not_lost() -> None:
    decoder = OllamaStream("m", ollama_errors(SERVER))
    deltas: list[Delta] = []
    with pytest.raises(ModelError, match="boom"):
        for delta in decoder.feed(chunk("Hi") + b'{"error":"boom"}\n'):
            deltas.append(delta)
    assert deltas == [ContentDelta("Hi")]


def test_an_error_line_under_status_200_has_its_kind() -> None:
    assert failure(b'{"error":"the input length exceeds the context length"}\n').kind == "context_overflow"


@pytest.mark.parametrize(
    "line",
    [
        b'{"message":{"content":"Hi"\n',
        b"<html>\n",
        b"[1]\n",
        b'{"message":"Hi"}\n',
        b'{"message":{"content":["Hi"]}}\n',
        b'{"message":{"thinking":1}}\n',
        b'{"message":{"content":"\xff"}}\n',
        b"[" * 10_000 + b"\n",
        b"{" + b" " * MAX_LINE_BYTES,
    ],
    ids=lambda line: repr(line[:40]),
)
def test_what_is_not_ollamas_format_is_a_bad_stream(line: bytes) -> None:
    error = failure(line)
    assert error.kind == "bad_stream"
    assert len(str(error)) < 400


@pytest.mark.parametrize(
    ("sent", "arguments"), [({"a": 1}, {"a": 1}), ('{"a": 1}', {"a": 1}), (None, {}), ("", {}), ("{}", {})]
)
def test_arguments_are_an_object_however_they_are_written(sent: Any, arguments: dict[str, Any]) -> None:
    assert decode(call(sent), chunk(done=True))[0] == ToolCall("f", arguments, "call_1")


@pytest.mark.parametrize("sent", ["{half", "[1]", [1], 3])
def test_a_call_whose_arguments_cannot_be_read_is_never_guessed_at(sent: Any) -> None:
    error = failure(call(sent))
    assert error.kind == "bad_call"
    assert "f" in str(error)


@pytest.mark.parametrize("line", [call({}, name=""), call({}, name=None), chunk(tool_calls=["f"])])
def test_a_call_without_a_name_is_a_bad_call(line: bytes) -> None:
    assert failure(line).kind == "bad_call"
