"""What clients make of the bytes of an answer, in both dialects and without a socket: a right answer or a typed error.

Everything here has been seen of a model server. What a whole turn makes of it is tested with the turn.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.core.errors import ModelError
from local.models.chat import (
    ContentDelta,
    Delta,
    Done,
    ErrorClass,
    ProgressDelta,
    ThinkingDelta,
    TokenScore,
    TokenScores,
    ToolCall,
    Usage,
    classify,
)
from local.models.http import MAX_LINE_BYTES, AnswerStream, Piece, ThinkTagSplitter, token_scores
from tests.models.wires import OLLAMA, OPENAI, Wire


@dataclass(frozen=True)
class Heard:
    """What the caller got."""

    content: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


def heard(deltas: Sequence[Delta]) -> Heard:
    return Heard(
        "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta)),
        "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta)),
        tuple((delta.name, delta.arguments) for delta in deltas if isinstance(delta, ToolCall)),
    )


def decode(decoder: AnswerStream, *pieces: bytes) -> list[Delta]:
    """The deltas of an answer, of which nothing is read behind its end."""
    deltas: list[Delta] = []
    for piece in pieces:
        if not decoder.done:
            deltas += decoder.feed(piece)
    return deltas if decoder.done else [*deltas, *decoder.end()]


def failure(decoder: AnswerStream, *pieces: bytes) -> tuple[ModelError, list[Delta]]:
    """How an answer fails, and what came before."""
    before: list[Delta] = []
    with pytest.raises(ModelError) as caught:
        for piece in pieces:
            for delta in decoder.feed(piece):
                before.append(delta)
        list(decoder.end())
    return caught.value, before


HI, TWICE = Heard("Hi"), Heard(calls=(("f", {"a": 1}), ("f", {"a": 2})))


def one(arguments: Any) -> Heard:
    return Heard(calls=(("f", arguments),))


ANSWERED: dict[str, tuple[Callable[[Any], list[bytes]], Heard]] = {
    "thinking before the answer": (lambda w: [w.think("hm"), w.chunk(content="Hi"), w.stop()], Heard("Hi", "hm")),
    "thinking after the answer": (lambda w: [w.chunk(content="Hi"), w.think("hm"), w.stop()], Heard("Hi", "hm")),
    "an answer only in the thinking": (lambda w: [w.think("It is 42."), w.stop()], Heard(thinking="It is 42.")),
    "content on the last chunk": (lambda w: [w.stop(content="Hé🙂")], Heard("Hé🙂")),
    "think tags leak": (lambda w: [w.chunk(content="<think>hm</think>Hi"), w.stop()], Heard("Hi", "hm")),
    "a tag half said at the end": (lambda w: [w.chunk(content="Hi <thi"), w.stop()], Heard("Hi <thi")),
    "one call": (lambda w: [w.chunk(tool_calls=[w.call({"a": 1})]), w.stop()], one({"a": 1})),
    "a call on the last chunk": (lambda w: [w.stop(tool_calls=[w.call({"a": 1})])], one({"a": 1})),
    "two calls in one chunk": (
        lambda w: [w.chunk(tool_calls=[w.call({"a": n}, call_id=str(n)) for n in (1, 2)]), w.stop()], TWICE),
    "two calls without ids": (
        lambda w: [*(w.chunk(tool_calls=[w.call({"a": n}, call_id=None)]) for n in (1, 2)), w.stop()], TWICE),
    "content and a call": (lambda w: [w.chunk(content="Hi", tool_calls=[w.call({})]), w.stop()],
                           Heard("Hi", calls=(("f", {}),))),
    "arguments as a text": (lambda w: [w.stop(tool_calls=[w.call('{"a": 1}')])], one({"a": 1})),
    "arguments empty": (lambda w: [w.stop(tool_calls=[w.call("")])], one({})),
    "arguments missing": (lambda w: [w.stop(tool_calls=[w.call(None)])], one({})),
    "66 calls": (lambda w: [w.stop(tool_calls=[w.call({}, call_id=str(n)) for n in range(66)])],
                 Heard(calls=(("f", {}),) * 66)),
    "an unknown reason to stop": (lambda w: [w.chunk(content="Hi"), w.stop("load")], HI),
    "empty message": (lambda w: [w.stop()], Heard()),
    "null fields": (lambda w: [w.chunk(content=None, tool_calls=None), w.chunk(content="Hi"), w.stop()], HI),
    "blank lines": (lambda w: [b"\n\r\n", w.chunk(content="Hi"), b"\n\n", w.stop()], HI),
    "CRLF": (lambda w: [part.replace(b"\n", b"\r\n") for part in (w.chunk(content="Hi"), w.stop())], HI),
    "no line end at the end": (lambda w: [w.chunk(content="Hi"), w.stop().rstrip()], HI),
    "more after the end": (lambda w: [w.chunk(content="Hi"), w.stop() + w.chunk(content="more") + b"garbage\n"], HI),
    "a flood": (lambda w: [*(w.chunk(content="word ") * 100 for _ in range(30)), w.stop()], Heard("word " * 3000)),
    "one huge token": (lambda w: [w.chunk(content="x" * 300_000), w.stop()], Heard("x" * 300_000)),
}  # fmt: skip


@pytest.mark.parametrize("wire", [OLLAMA, OPENAI], ids=["ollama", "openai"])
@pytest.mark.parametrize("name", ANSWERED)
def test_an_answer_is_the_same_in_whatever_pieces_it_comes(name: str, wire: Wire) -> None:
    steps, expected = ANSWERED[name]
    data = b"".join(steps(wire))
    deltas = decode(wire.decoder(), data)
    assert heard(deltas) == expected and isinstance(deltas[-1], Done)
    if len(data) < 2000:
        assert heard(decode(wire.decoder(), *(data[at : at + 1] for at in range(len(data))))) == expected


BROKEN: dict[str, tuple[Callable[[Any], bytes], str]] = {
    "a call without a name": (lambda w: w.stop(tool_calls=[w.call({}, "")]), "bad_call"),
    "a call without a function": (lambda w: w.stop(tool_calls=[{"id": "c"}]), "bad_call"),
    "a call that is a text": (lambda w: w.stop(tool_calls=["f()"]), "bad_call"),
    "calls that are no list": (lambda w: w.stop(tool_calls=3), "bad_stream"),
    "half of the arguments": (lambda w: w.stop(tool_calls=[w.call('{"a": ')]), "bad_call"),
    "arguments that are a list": (lambda w: w.stop(tool_calls=[w.call([1])]), "bad_call"),
    "arguments that are a number": (lambda w: w.stop(tool_calls=[w.call("3")]), "bad_call"),
    "an end without done": (lambda w: b"", "stream_cut"),
    "half a line at the end": (lambda w: w.stop()[:30], "bad_stream"),
    "an error in the stream": (lambda w: w.error("runner died") + w.stop(), "server_error"),
    "an overflow": (lambda w: w.error("request exceeds the available context size"), "context_overflow"),
    "memory runs out": (lambda w: w.error("CUDA error: out of memory"), "out_of_memory"),
    "garbage": (lambda w: b"\x00%&garbage\n" + w.stop(), "bad_stream"),
    "a web page": (lambda w: b"<html>Log in</html>\n", "bad_stream"),
    "a list": (lambda w: w.line([1]), "bad_stream"),
    "a message that is a text": (lambda w: w.line({"message": "Hi", "choices": [{"delta": "Hi"}]}), "bad_stream"),
    "content that is a number": (lambda w: w.chunk(content=3), "bad_stream"),
    "text that is no UTF-8": (lambda w: w.chunk(content="Hi").replace(b"Hi", b"\xff"), "bad_stream"),
    "nesting without end": (lambda w: b"data: "[: 6 * (w is OPENAI)] + b"[" * 20_000 + b"\n", "bad_stream"),
    "a line without end": (lambda w: b"data: {" + b" " * MAX_LINE_BYTES, "bad_stream"),
}  # fmt: skip


@pytest.mark.parametrize("wire", [OLLAMA, OPENAI], ids=["ollama", "openai"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_is_a_typed_error_and_what_came_before_is_heard(name: str, wire: Wire) -> None:
    rest, kind = BROKEN[name]
    error, before = failure(wire.decoder(), wire.chunk(content="Hi"), rest(wire))
    assert error.kind == kind and classify(error) is not ErrorClass.UNKNOWN
    assert heard(before).content == "Hi" and len(str(error)) < 600


def test_tokens_and_seconds_are_told_with_the_end() -> None:
    end = {"done": True, "done_reason": "length", "prompt_eval_count": 5, "eval_count": 7, "eval_duration": 15 * 10**8}
    durations = {"total": 0, "load": 0, "prompt_eval": 0, "eval": 1.5}
    assert decode(OLLAMA.decoder(), OLLAMA.line({"model": "m", **end})) == [Done(Usage(5, 7, durations), "length", "m")]
    timings = {"prompt_ms": 500, "predicted_ms": 1500.0}
    told = {"usage": {"prompt_tokens": 5, "completion_tokens": 7}, "timings": timings}
    stream = OPENAI.chunk(reason="tool_calls") + OPENAI.line({"choices": [], **told})
    assert decode(OPENAI.decoder(), stream) == [Done(Usage(5, 7, {"prompt_eval": 0.5, "eval": 1.5}), "tool_calls", "m")]


# Server-sent events


@pytest.mark.parametrize(
    "noise",
    [
        b": OPENROUTER PROCESSING\n\n",
        b"event: message\nid: 7\nretry: 10\n",
        b"data:\n\n",
        OPENAI.line({"choices": []}),
        OPENAI.line({"object": "chat.completion.chunk"}),
        OPENAI.line({"choices": [{"index": 0, "delta": None}]}),
        OPENAI.line({"choices": [{"index": 0}], "usage": None, "error": None}),
        OPENAI.line({"choices": None, "prompt_progress": {"total": 9}}),
    ],
)
def test_what_says_nothing_changes_nothing(noise: bytes) -> None:
    said = OPENAI.chunk(content="Hi")
    assert decode(OPENAI.decoder(), noise + said + noise + OPENAI.stop()) == decode(
        OPENAI.decoder(), said + OPENAI.stop()
    )


def test_how_far_the_prompt_is_read_is_told_before_the_first_token() -> None:
    read = [{"total": 4348, "cache": 100, "processed": done, "time_ms": 5} for done in (100, 1124)]
    lines = [OPENAI.line({"choices": [{"index": 0, "delta": {}}], "prompt_progress": each}) for each in read]
    deltas = decode(OPENAI.decoder(), *lines, OPENAI.stop(content="Hi"))
    assert deltas[:3] == [ProgressDelta(100, 4348, 100), ProgressDelta(1124, 4348, 100), ContentDelta("Hi")]


def test_the_forms_in_which_servers_differ_are_read_alike() -> None:
    stop = OPENAI.stop()
    bare = (OPENAI.chunk(content="H") + OPENAI.chunk(content="i") + stop).replace(b"\n\n", b"\n")
    both = OPENAI.line({"choices": [{"delta": {"content": "Hi"}}, {"index": 1, "delta": {"content": "no"}}]})
    for stream in (bare.replace(b"data: ", b"data:"), OPENAI.chunk(refusal="Hi") + stop, both + stop):
        assert heard(decode(OPENAI.decoder(), stream)) == HI
    doubled = OPENAI.chunk(reasoning="hm", reasoning_content="hm") + stop
    assert decode(OPENAI.decoder(), doubled)[0] == ThinkingDelta("hm")
    for end in (OPENAI.chunk(reason="stop"), OPENAI.chunk(reason="stop") + b'data: {"usa', b"data: [DONE]\n\n"):
        assert isinstance(decode(OPENAI.decoder(), OPENAI.chunk(content="Hi") + end)[-1], Done)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (OPENAI.line({"error": "boom"}), "server_error"),
        (OPENAI.line({"error": {"code": 429, "message": "Rate limit exceeded"}, "choices": [{}]}), "rate_limit"),
        (OPENAI.line({"choices": [{"delta": {}, "error": {"code": 502, "message": "away"}}]}), "overloaded"),
        (OPENAI.line({"object": "error", "message": "boom", "type": "BadRequestError", "code": 400}), "bad_request"),
        (b'error: {"code":400,"message":"the request exceeds the available context size"}\n\n', "context_overflow"),
        (b'{"error":{"code":500,"message":"boom"}}\n', "server_error"),
        (OPENAI.chunk(reason="content_filter"), "filtered"),
        (OPENAI.chunk(reason="error"), "server_error"),
        (OPENAI.chunk(reason="function_call_filter: MALFORMED_FUNCTION_CALL"), "bad_call"),
    ],
)
def test_a_failure_told_under_status_200_has_its_kind(line: bytes, kind: str) -> None:
    error, before = failure(OPENAI.decoder(), OPENAI.chunk(content="Hi") + line)
    assert (error.kind, heard(before)) == (kind, HI)


def test_a_server_that_does_not_stream_is_read_too() -> None:
    message = {"role": "assistant", "content": "Hi", "reasoning": "hm", "tool_calls": [OPENAI.call({})]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = json.dumps({"model": "m", "choices": [choice], "usage": {"prompt_tokens": 1}}, indent=1).encode()
    deltas = decode(OPENAI.decoder("application/json; charset=utf-8"), body[:20], body[20:])
    assert deltas == [ThinkingDelta("hm"), ContentDelta("Hi"), ToolCall("f", {}, "c"), Done(Usage(1, 0), "stop", "m")]
    for broken, kind in (
        (b'{"error": {"code": 429, "message": "slow down"}}', "rate_limit"),
        (b'[{\n "error": {"code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED"}\n}\n]', "rate_limit"),
        (b'{"choices": [', "bad_stream"),
        (b"", "bad_stream"),
        (b"{}", "stream_cut"),
    ):
        assert failure(OPENAI.decoder("application/json"), broken)[0].kind == kind


WORDS = "choices delta message content tool_calls function name arguments id index error code usage done raw prompt_ms"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS.split()), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=10)
@given(JSON)
def test_no_json_makes_a_decoder_fail_otherwise_than_with_a_model_error(value: Any) -> None:
    chunks = ({"choices": [{"delta": value, "finish_reason": None}]}, value, {"choices": value, "message": value})
    for wire in (OLLAMA, OPENAI):
        try:
            assert decode(wire.decoder(), *map(wire.line, chunks))
        except ModelError as error:
            assert str(error)


def test_probabilities_are_read_and_in_another_form_break_nothing() -> None:
    top = [{"token": "4", "logprob": -0.1}, {"token": "5", "logprob": -2.5}]
    entry = {"token": "4", "logprob": -0.1, "bytes": [52], "top_logprobs": top}
    expected = TokenScores((TokenScore("4", {"4": -0.1, "5": -2.5}),))
    assert list(token_scores({"logprobs": [entry]}, "logprobs")) == [expected]
    for found in (None, [], {}, "x", [3], [{"token": None}], [{"top_logprobs": 3}]):
        scores = [score for read in token_scores({"logprobs": found}, "logprobs") for score in read.tokens]
        assert all(score.alternatives == {} for score in scores)


# Thinking that leaks into the content


def split(*pieces: str) -> list[Piece]:
    splitter = ThinkTagSplitter()
    return [*itertools.chain.from_iterable(splitter.feed(piece) for piece in pieces), *splitter.close()]


def told_apart(*pieces: str) -> tuple[str, str]:
    found = heard(split(*pieces))
    return found.thinking, found.content


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>hm, 2 < 3</think>\n\nYes.", ("hm, 2 < 3", "Yes.")),
        ("\n<thinking>hm</thinking>Yes.", ("hm", "\nYes.")),
        ("<think>a</think>\n<think>b</think>Yes.", ("ab", "Yes.")),
        ("<|channel>thought\nhm<channel|>Yes.", ("hm", "Yes.")),
        ("<|channel>thought<channel|>Yes.", ("", "Yes.")),
        ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.", ("hm", "Yes.")),
        ("Let me see. <think>hm</think>Yes.", ("hm", "Let me see. Yes.")),
        ("<think>never closed", ("never closed", "")),
        ("<think>closed by ``` </think>Yes.", ("closed by ``` ", "Yes.")),
        # what only looks like a tag
        ("a < b and b > c, 1 << 3, <b>bold</b>", ("", "a < b and b > c, 1 << 3, <b>bold</b>")),
        ("`<think>` opens a block", ("", "`<think>` opens a block")),
        ("```xml\n<think>\n</think>\n```\nand so on", ("", "```xml\n<think>\n</think>\n```\nand so on")),
        ("</think> without an opening", ("", "</think> without an opening")),
        ("ends with <thin", ("", "ends with <thin")),
        ("   indented\n", ("", "   indented\n")),
    ],
)
def test_leaked_thinking_is_told_apart_wherever_the_text_is_cut(text: str, expected: tuple[str, str]) -> None:
    assert told_apart(*text) == expected
    assert all(told_apart(text[:cut], text[cut:]) == expected for cut in range(len(text) + 1))


def test_an_answer_that_mentions_an_unclosed_tag_is_not_lost() -> None:
    thinking, content = told_apart("Models use <think> to ", "open a block.")
    assert (thinking, content) == (" to open a block.", "Models use <think> to open a block.")


def test_text_passes_at_once_unless_it_may_become_a_tag() -> None:
    splitter = ThinkTagSplitter()
    assert [splitter.feed(piece) for piece in ("a < b", "x <", " y")] == [
        [ContentDelta("a < b")], [ContentDelta("x ")], [ContentDelta("< y")],
    ]  # fmt: skip
    text = "<" * 20_000 + "."
    assert split(text) == [ContentDelta(text)]
