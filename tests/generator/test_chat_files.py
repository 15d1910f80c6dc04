"""Files of exported chats: what is read of those of each program, and what is said of others."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.generator import chat_files
from local.generator.chat_files import UnreadableChats, chat_in, exchanges_of, items_of, read_chats, shortened, time_of

Json = dict[str, Any]


def said(role: str, text: Any, parent: str | None, at: float | None = None, **more: Any) -> Json:
    """A node of ChatGPT's tree."""
    parts = text if isinstance(text, list) else [text]
    content = {"content_type": more.pop("content_type", "text"), "parts": parts}
    message = {"author": {"role": role}, "content": content, "create_time": at, **more}
    return {"message": message, "parent": parent}


CHATGPT = {
    "title": "Tea",
    "create_time": 1_700_000_000.5,
    "conversation_id": "c-1",
    "current_node": "b2",
    "mapping": {
        "root": {"message": None, "parent": None},
        "hidden": said("system", "You are ChatGPT.", "root"),
        "about": said("user", "I am Ada.", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        "a": said("user", ["How long?", {"content_type": "image_asset_pointer"}], "about", 1_700_000_001.0,
                  content_type="multimodal_text"),
        "b1": said("assistant", "An abandoned answer.", "a"),
        "call": said("assistant", "search()", "a", recipient="browser"),
        "tool": said("tool", "Found.", "call"),
        "b2": said("assistant", "Three minutes.\ue200cite\ue202turn0\ue201\x07", "tool", 1_700_000_009.0,
                   metadata={"model_slug": "gpt-4o"}),
    },
}  # fmt: skip
OPEN_WEBUI = {
    "id": "w-1", "title": "Tea", "created_at": 1_700_000_000, "chat": {
        "history": {"currentId": "2", "messages": {
            "1": {"id": "1", "parentId": None, "role": "user", "content": "How long?", "timestamp": 1_700_000_001},
            "2": {"id": "2", "parentId": "1", "role": "assistant", "model": "gemma", "timestamp": 1_700_000_009,
                  "content": '<details type="reasoning" done="true">\nHm.\n</details>\nThree minutes.'},
            "x": {"id": "x", "parentId": "1", "role": "assistant", "content": "Abandoned.", "timestamp": 1_700_000_010},
        }},
    },
}  # fmt: skip
LIBRECHAT = {
    "conversationId": "l-1", "title": "Tea", "options": {"model": "mistral"}, "messages": [
        {"messageId": "1", "parentMessageId": "0", "isCreatedByUser": True, "text": "How long?",
         "createdAt": "2023-11-14T22:13:21.000Z"},
        {"messageId": "2", "parentMessageId": "1", "isCreatedByUser": False, "createdAt": "2023-11-14T22:13:29.000Z",
         "content": [{"type": "think", "think": "Hm."}, {"type": "text", "text": {"value": "Three minutes."}}]},
        {"messageId": "e", "parentMessageId": "1", "isCreatedByUser": False, "text": "Abandoned.",
         "createdAt": "2023-11-14T22:13:25.000Z"},
    ],
}  # fmt: skip
IN_A_TREE = {
    "conversationId": "l-1", "title": "Tea", "options": {"model": "mistral"},
    "messagesTree": [{**LIBRECHAT["messages"][0], "children": LIBRECHAT["messages"][1:]}],  # type: ignore[index]
}  # fmt: skip
LOCAL2 = {
    "session": {"session_id": "s-1", "title": "Tea"}, "turns": [
        {"query": "How long?", "answer": "Three minutes.", "created_at": 1_700_000_001.0,
         "finished_at": 1_700_000_009.0, "model": "gemma"},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("item", "source", "origin_id", "query", "model"),
    [
        (CHATGPT, "ChatGPT", "c-1", "How long?\n\n[file, not imported]", "gpt-4o"),
        (OPEN_WEBUI, "Open WebUI", "w-1", "How long?", "gemma"),
        (LIBRECHAT, "LibreChat", "l-1", "How long?", "mistral"),
        (IN_A_TREE, "LibreChat", "l-1", "How long?", "mistral"),
        (LOCAL2, "LoCAL2", "s-1", "How long?", "gemma"),
    ],
    ids=["ChatGPT", "Open WebUI", "LibreChat", "LibreChat tree", "LoCAL2"],
)
def test_the_branch_that_was_shown_last_is_read(
    item: Json, source: str, origin_id: str, query: str, model: str
) -> None:
    chat = chat_in(json.loads(json.dumps(item)))
    assert chat is not None
    assert (chat.source, chat.origin_id, chat.title) == (source, origin_id, "Tea")
    asked_at, answered_at = 1_700_000_001.0, 1_700_000_009.0
    assert exchanges_of(chat) == [
        {"query": query, "answer": "Three minutes.", "asked_at": asked_at, "answered_at": answered_at, "model": model}
    ]


def test_without_a_mark_the_latest_branch_counts_and_a_circle_ends() -> None:
    nodes = {
        "a": said("user", "One?", "c"),
        "b": said("assistant", "Old.", "a", 5.0),
        "c": said("assistant", "New.", "a", 9.0),
    }
    chat = chat_in({"mapping": nodes, "current_node": []})
    assert chat is not None
    assert [one["answer"] for one in exchanges_of(chat)] == ["Old."]
    circle = chat_in({"mapping": nodes, "current_node": "c"})
    assert circle is not None
    assert [one["answer"] for one in exchanges_of(circle)] == ["New."]


def test_texts_of_one_side_are_joined_and_the_last_exchanges_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [{"query": query, "answer": answer} for query, answer in (("a", ""), ("b", "1"), ("c", "2"), ("d", ""))]
    chat = chat_in({"session": {}, "turns": turns})
    assert chat is not None
    exchanges = exchanges_of(chat)
    assert [(one["query"], one["answer"]) for one in exchanges] == [("a\n\nb", "1"), ("c", "2"), ("d", "")]
    monkeypatch.setattr(chat_files, "MOST_CHARACTERS", 3)
    assert [one["query"] for one in shortened(exchanges)] == ["c", "d"]


def test_times_of_all_kinds() -> None:
    wanted = 1_700_000_000.0
    assert [time_of(wanted * 10**power) for power in (0, 3, 6, 9)] == pytest.approx([wanted] * 4)
    assert time_of("2023-11-14T22:13:20Z") == time_of("2023-11-14T22:13:20") == wanted
    assert {time_of(value) for value in (None, True, "then", -1, 10**400, float("nan"), float("inf"))} == {None}


def file(*items: Any) -> io.BytesIO:
    return io.BytesIO(json.dumps(items).encode("utf-8-sig"))


def test_a_large_list_is_read_item_by_item(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_files, "CHUNK", 7)  # so that each item is cut, within escapes, too
    items = [LOCAL2, {"x": '\\"],[{\u00e9'}, CHATGPT, [[], 1.5]]
    assert list(items_of(file(*items))) == items
    assert list(items_of(io.BytesIO(json.dumps(OPEN_WEBUI).encode()))) == [OPEN_WEBUI]


def test_an_archive_is_read_and_a_conversation_counts_once() -> None:
    packed, lines = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/conversations-000.json", json.dumps([CHATGPT]))
        archive.writestr("x/conversations-001.json", json.dumps([CHATGPT, LOCAL2, {"session": {}, "turns": []}, 3]))
        archive.writestr("x/user.json", "{}")
    packed.seek(0)
    told = read_chats(items_of(packed), lines.write)
    assert [(one["source"], one["turns"]) for one in told["found"]] == [("ChatGPT", 1), ("LoCAL2", 1)]
    assert [one["reason"] for one in told["left_out"]] == [
        "there is no question in it", "1 of 5 items: not a conversation, but a number",
    ]  # fmt: skip
    second = told["found"][1]
    line = lines.getvalue()[second["offset"] : second["offset"] + second["size"]]
    assert json.loads(line)[0]["query"] == "How long?"


def _zip(name: str, content: str = "[]") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b" \n", "is empty"),
        (b"<!doctype html>", "begins with '<!doctype html>'"),
        (json.dumps([LOCAL2, LOCAL2]).encode()[:-9], "not complete JSON"),
        (b'[{"session": {}} {}]', "a comma"),
        (b"[]", "an empty list"),
        (b'{"name": 1, "mode": 2}', "an object with the fields 'name', 'mode'"),
        (b"[[1]]", "a list"),
        (b"caf\xe9", "not text in UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"PK\x03\x04 no archive", "damaged"),
        (_zip("chat.html"), "only 'chat.html'"),
        (_zip("conversations.json", f"[{json.dumps(LOCAL2)}, {' ' * 12_000_000}1]"), "times its size"),
    ],
)
def test_a_file_that_is_no_export_is_refused_with_what_it_is(content: bytes, found: str) -> None:
    with pytest.raises(UnreadableChats, match=r"^(the file|the ZIP file|no conversation)") as error:
        read_chats(items_of(io.BytesIO(content)))
    assert found in str(error.value)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(["a", "b", "user", "assistant", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "id", "parent", "message", "author", "content", "parts"]), inner)
    ),
    max_leaves=12,
)
NAMES = (
    "mapping", "current_node", "chat", "history", "messages", "messagesTree", "conversationId", "session", "turns",
    "currentId", "options", "title", "create_time",
)  # fmt: skip


def _with(names: tuple[str, ...]) -> Callable[[Any], st.SearchStrategy[Json]]:
    return lambda inner: st.dictionaries(st.sampled_from(names), inner, min_size=1)


@given(_with(NAMES)(JSON | _with(NAMES)(JSON)))
def test_whatever_a_file_has_instead_is_left_out(item: Json) -> None:
    chat = chat_in(item)
    if chat is not None:
        for one in shortened(exchanges_of(chat)):
            assert one["query"]


def webui(content: str) -> Json:
    message = {"id": "1", "parentId": None, "role": "user", "content": content}
    return {"id": "w", "chat": {"history": {"currentId": "1", "messages": {"1": message}}}}


@pytest.mark.parametrize(
    "item",
    [
        webui("?" + '<details type="reasoning" ' * 100_000),
        webui("?" + '<details type="reasoning"></details>' * 50_000),
        {"conversation_id": "c", "mapping": {"a": said("user", "\ue200" * 2_000_000, None)}},
        {"session": {"session_id": "s"}, "turns": [{"query": "x" * 50} for _ in range(100_000)]},
        {"session": {"session_id": "s"}, "turns": [{"query": "?"}, *({"answer": "x" * 50} for _ in range(100_000))]},
    ],
    ids=["begun", "ended", "cited", "questions", "answers"],
)
def test_reading_takes_time_in_proportion_to_the_file(item: Json) -> None:
    begun = time.process_time()
    read_chats([item])
    assert time.process_time() - begun < 10  # a second on a slow machine; in proportion to the square it takes minutes


def test_what_open_webui_folds_is_left_out_wherever_it_is() -> None:
    rest = 'b <details type="other">2</details> <details type="reasoning">3'
    chat = chat_in(webui(f'A <details type="tool_calls" x>1</details>\n\n{rest}'))
    assert chat is not None
    assert chat.said[0].text == f"A {rest}"


def test_the_process_that_reads_a_file_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    source = tmp_path / "never ends"
    os.mkfifo(source)
    command = [sys.executable, "-I", chat_files.__file__, str(source), str(tmp_path / "lines")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as reader, source.open("wb"):
        assert reader.stdin is not None
        reader.stdin.close()  # as at the death of the other end
        assert reader.wait(60) == 1
