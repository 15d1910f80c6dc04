"""Reads files of exported chats: of ChatGPT, Open WebUI, LibreChat and LoCAL2 itself.

Run by its path it is the process that reads one file for the API: it imports nothing of LoCAL2, is limited in memory
and time, and a large file holds up nobody else. It ends when its standard input does, which the API holds open. Every
step takes time in proportion to the file. Its arguments are the file and where to write the exchanges, a line of JSON
for each conversation; its output is JSON with what it has `found` and `left_out`, or an `error`.

What is kept of a chat is its text: the questions and answers of the branch that was shown last. The files are lists of
conversations that may have hundreds of megabytes, so one after the other is read, and never the whole list.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import resource
import sys
import threading
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, BinaryIO, NamedTuple, TextIO

Json = dict[str, Any]

MOST_CONVERSATIONS = 20_000
MOST_EXCHANGES = 2_000  # of one conversation, the last
MOST_CHARACTERS = 2_000_000  # of one conversation
MOST_UNPACKED = 4 * 1024**3  # bytes of an archive
MOST_RATIO, MAY_BE_DENSE = 100, 10_000_000  # of unpacked to packed bytes, of an archive with more unpacked bytes
MOST_OF_ITEM = 200_000_000  # characters
MEMORY_BYTES = 2 * 1024**3
SECONDS = 60  # of processor time
DEEPEST = 10_000
CHUNK = 1_000_000

CHATGPT, OPEN_WEBUI, LIBRECHAT, LOCAL2 = "ChatGPT", "Open WebUI", "LibreChat", "LoCAL2"
EXPECTED = (
    "expected an export of ChatGPT (conversations.json, or the ZIP file that it is in), or the JSON of Open WebUI,"
    " LibreChat or LoCAL2"
)
_OF_ARCHIVE = re.compile(r"(?:.*/)?conversations(?:[-_]\d+)?\.json")


class UnreadableChats(Exception):
    """The error for a file that is no export of chats: what was found, and what was expected."""


class Said(NamedTuple):
    """One message of a chat; `at` is seconds since 1970."""

    is_question: bool
    text: str
    at: float | None = None
    model: str = ""


class Chat(NamedTuple):
    """One conversation of a file. `origin_id` is its id where it is from."""

    source: str
    origin_id: str
    title: str
    at: float | None
    said: Sequence[Said]


# Text and times, whatever the file has in their place.

_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_CITED = re.compile("\ue200[^\ue200\ue201]{0,2000}\ue201")  # marks of ChatGPT that lead nowhere outside it
_DETAILS = re.compile(r'<details type="(?:reasoning|tool_calls|code_interpreter)"')
_DETAILS_END = "</details>"
_ANY_SPACE = re.compile(r"\s*")
_NOT_HERE = "[file, not imported]"


def text_of(value: Any) -> str:
    """A text without control characters; empty for anything else."""
    if not isinstance(value, str):
        return ""
    return _UNWANTED.sub("", value.replace("\r\n", "\n").replace("\r", "\n")).strip()


def _without_details(text: str) -> str:
    """A text without the parts that Open WebUI folds: thinking, and calls of tools."""
    kept, at = list[str](), 0
    while begin := _DETAILS.search(text, at):
        end = text.find(_DETAILS_END, begin.end())
        if end < 0:
            break
        kept.append(text[at : begin.start()])
        at = _ANY_SPACE.match(text, end + len(_DETAILS_END)).end()  # type: ignore[union-attr] # it matches anything
    return "".join([*kept, text[at:]])


def time_of(value: Any) -> float | None:
    """Seconds since 1970 of a number of seconds, milli-, micro- or nanoseconds, or of a date as ISO 8601 has it."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
            value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        seconds = 0.0 if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except (ValueError, OverflowError):
        return None
    while 1e11 < seconds < 1e20:
        seconds /= 1000
    return seconds if 0 < seconds <= 1e11 else None


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _name(value: Any) -> str | None:
    """What may be the id of a node."""
    return value if isinstance(value, str) else None


def _id(item: Json, *names: str) -> str:
    found = next((text for name in names if (text := text_of(item.get(name)))), "")
    return found or hashlib.sha256(json.dumps(item, sort_keys=True).encode()).hexdigest()


def _path(nodes: Mapping[str, Json], leaf: Any, parent: str) -> list[Json]:
    """The nodes from the root of a tree to a leaf."""
    path: list[Json] = []
    seen = set[str]()
    while (name := _name(leaf)) is not None and name in nodes and name not in seen:
        seen.add(name)
        path.append(_object(nodes[name]))
        leaf = path[-1].get(parent)
    return path[::-1]


def _latest(nodes: Mapping[str, Json], parent: str, when: Callable[[Json], float | None]) -> str | None:
    """The leaf that was said last, of several at the same time the last of the file."""
    inner = {_name(_object(node).get(parent)) for node in nodes.values()}
    leaves = [name for name in nodes if name not in inner]
    return max(reversed(leaves), key=lambda name: when(_object(nodes[name])) or 0.0, default=None)


# One reader for each kind of file.


def _of_chatgpt(item: Json) -> Chat:
    """A tree of nodes in `mapping`; `current_node` is the last one of the branch that was shown."""
    nodes: dict[str, Json] = item["mapping"]
    leaf = _name(item.get("current_node"))
    if leaf not in nodes:
        leaf = _latest(nodes, "parent", lambda node: time_of(_object(node.get("message")).get("create_time")))
    said = [_chatgpt_message(_object(node.get("message"))) for node in _path(nodes, leaf, "parent")]
    at = time_of(item.get("create_time"))
    return Chat(CHATGPT, _id(item, "conversation_id", "id"), text_of(item.get("title")), at, [*filter(None, said)])


def _chatgpt_message(message: Json) -> Said | None:
    role, meta = _object(message.get("author")).get("role"), _object(message.get("metadata"))
    content = _object(message.get("content"))
    if role not in ("user", "assistant") or meta.get("is_visually_hidden_from_conversation"):
        return None
    if content.get("content_type") not in (None, "text", "multimodal_text"):
        return None  # code that was run, thoughts, instructions
    if role == "assistant" and message.get("recipient") not in (None, "all"):
        return None  # the call of a tool
    text = "\n\n".join(filter(None, map(_chatgpt_part, _list(content.get("parts")))))
    return Said(role == "user", text, time_of(message.get("create_time")), text_of(meta.get("model_slug")))


def _chatgpt_part(part: Any) -> str:
    if isinstance(part, str):
        return text_of(_CITED.sub("", part))
    return text_of(part.get("text")) or _NOT_HERE if isinstance(part, dict) else ""


def _of_open_webui(item: Json) -> Chat:
    """A chat with a `history`: a tree of messages, and `currentId`, the last one of the branch that was shown."""
    chat = _object(item["chat"])
    history = _object(chat.get("history"))
    nodes = _object(history.get("messages"))
    leaf = _name(history.get("currentId"))
    if leaf not in nodes:
        leaf = _latest(nodes, "parentId", lambda node: time_of(node.get("timestamp")))
    messages = _path(nodes, leaf, "parentId") if nodes else [*map(_object, _list(chat.get("messages")))]
    said = [
        Said(
            message["role"] == "user",
            text_of(_without_details(_parts(message.get("content")))),
            time_of(message.get("timestamp")),
            text_of(message.get("model")),
        )
        for message in messages
        if message.get("role") in ("user", "assistant")
    ]
    title = text_of(item.get("title")) or text_of(chat.get("title"))
    at = time_of(item.get("created_at")) or time_of(chat.get("timestamp"))
    return Chat(OPEN_WEBUI, _id(item, "id"), title, at, said)


def _of_librechat(item: Json) -> Chat:
    """A list of `messages` that name their parents, or a `messagesTree` of messages with `children`."""
    nodes: dict[str, Json] = {}
    top = _list(item.get("messages")) or _list(item.get("messagesTree"))
    waiting: deque[tuple[Any, str | None]] = deque((message, None) for message in top)
    while waiting:
        message, parent = waiting.popleft()
        if isinstance(message, dict):
            name = text_of(message.get("messageId")) or f"{len(nodes)}"
            nodes[name] = {**message, "parentMessageId": parent or _name(message.get("parentMessageId"))}
            waiting += [(child, name) for child in _list(message.get("children"))]
    are_linked = any(node["parentMessageId"] in nodes for node in nodes.values())
    leaf = _latest(nodes, "parentMessageId", lambda node: time_of(node.get("createdAt")))
    path = _path(nodes, leaf, "parentMessageId") if are_linked else list(nodes.values())
    said = [_librechat_message(message) for message in path if not message.get("error")]
    options = _object(item.get("options"))
    model = text_of(options.get("model"))
    return Chat(
        LIBRECHAT,
        _id(item, "conversationId"),
        text_of(item.get("title")),
        time_of(options.get("createdAt")),
        [each if each.is_question or each.model else each._replace(model=model) for each in said],
    )


def _librechat_message(message: Json) -> Said:
    is_question = message.get("isCreatedByUser") is True
    text = text_of(message.get("text")) or text_of(_parts(message.get("content")))
    return Said(is_question, text, time_of(message.get("createdAt")), text_of(message.get("model")))


def _parts(content: Any) -> str:
    """The text of a message that is a text, or a list of parts."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in _list(content) if isinstance(part, dict) and part.get("type") == "text"]
    values = [text.get("value") if isinstance(text, dict) else text for text in texts]
    return "\n\n".join(value for value in values if isinstance(value, str))


def _of_local2(item: Json) -> Chat:
    """What `local2 sessions export --format json` writes: the `session`, and its `turns`."""
    said: list[Said] = []
    for turn in map(_object, item["turns"]):
        said.append(Said(True, text_of(turn.get("query")), time_of(turn.get("created_at"))))
        at = time_of(turn.get("finished_at"))
        said.append(Said(False, text_of(turn.get("answer")), at, text_of(turn.get("model"))))
    session = item["session"]
    return Chat(LOCAL2, _id(session, "session_id"), text_of(session.get("title")), said[0].at if said else None, said)


class Format(NamedTuple):
    """One kind of file: how its conversations are recognised and read."""

    is_one: Callable[[Json], bool]
    read: Callable[[Json], Chat]


FORMATS = (
    Format(lambda item: isinstance(item.get("session"), dict) and isinstance(item.get("turns"), list), _of_local2),
    Format(lambda item: isinstance(item.get("mapping"), dict), _of_chatgpt),
    Format(lambda item: not {"history", "messages"}.isdisjoint(_object(item.get("chat"))), _of_open_webui),
    Format(
        lambda item: "conversationId" in item and isinstance(item.get("messages", item.get("messagesTree")), list),
        _of_librechat,
    ),
)


def chat_in(item: Any) -> Chat | None:
    """The conversation in one item of a file; None where it is none."""
    if not isinstance(item, dict):
        return None
    return next((each.read(item) for each in FORMATS if each.is_one(item)), None)


# From messages to questions with their answers.


def exchanges_of(chat: Chat) -> list[Json]:
    """The questions with their answers: what follows each other of one side is one text, and what comes before the
    first question is left out."""
    exchanges: list[Json] = []
    last = chat.at
    for said in chat.said:
        at = last = said.at or last
        if not said.text or (not exchanges and not said.is_question):
            continue
        if said.is_question and (not exchanges or exchanges[-1]["answer"]):
            exchanges.append({"query": [], "answer": [], "asked_at": at, "answered_at": None, "model": ""})
        one = exchanges[-1]
        one["query" if said.is_question else "answer"].append(said.text)
        if not said.is_question:
            one |= {"answered_at": at, "model": said.model or one["model"]}
    return [{**one, "query": "\n\n".join(one["query"]), "answer": "\n\n".join(one["answer"])} for one in exchanges]


def shortened(exchanges: list[Json]) -> list[Json]:
    """The last exchanges, as many as are kept of one conversation."""
    kept, room = list[Json](), MOST_CHARACTERS
    for one in reversed(exchanges[-MOST_EXCHANGES:]):
        room -= len(one["query"]) + len(one["answer"])
        if room < 0:
            break
        kept.append(one)
    return kept[::-1]


# From a file to its items.

_SPACE = re.compile(r"[ \t\r\n]*")
_NEAR_END = 32  # characters, within which a fault of JSON may be that the rest is missing


def items_in(stream: TextIO, beginning: str = "") -> Iterator[Any]:
    """The items of a JSON list, one after the other; what is no list is the only item. `beginning` was read before.
    Raises `ValueError`."""
    text, at = (beginning + stream.read(CHUNK)).lstrip(" \t\r\n"), 1
    if not text.startswith("["):
        yield json.loads(text + stream.read(MOST_OF_ITEM))
        return
    decode = json.JSONDecoder().raw_decode
    needs_comma = False
    while True:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr] # it matches anything
        if at < len(text) and text[at] == "]":
            return
        if at < len(text) and needs_comma:
            if text[at] != ",":
                raise ValueError(f"expected a comma between two items, found {text[at : at + 20]!r}")
            at, needs_comma = at + 1, False
            continue
        try:
            item, at = decode(text, at)
        except json.JSONDecodeError as fault:
            is_cut = fault.pos >= len(text) - _NEAR_END or fault.msg.startswith("Unterminated")
            more = stream.read(max(CHUNK, len(text) - at)) if is_cut and len(text) - at < MOST_OF_ITEM else ""
            if not more:
                raise ValueError(f"{fault.msg}, near {text[fault.pos : fault.pos + 20]!r}") from None
            text, at = text[at:] + more, 0
            continue
        needs_comma = True
        yield item


def items_of(file: BinaryIO) -> Iterator[Any]:
    """The items of a JSON file, or of the ZIP file with one that ChatGPT sends. Raises `UnreadableChats`."""
    if file.read(4) != b"PK\x03\x04":
        file.seek(0)
        yield from _decoded(file)
        return
    try:
        with zipfile.ZipFile(file) as archive:
            members = [each for each in archive.infolist() if _OF_ARCHIVE.fullmatch(each.filename)]
            if not members:
                names = ", ".join(repr(name)[:80] for name in archive.namelist()[:5])
                raise UnreadableChats(f"the ZIP file has no conversations.json, only {names or 'nothing'}; {EXPECTED}")
            size, packed = sum(each.file_size for each in members), sum(each.compress_size for each in members)
            if size > MOST_UNPACKED:
                raise UnreadableChats(f"the ZIP file unpacks to more than {MOST_UNPACKED // 1024**3} GB")
            if size > MAY_BE_DENSE and size > MOST_RATIO * packed:
                raise UnreadableChats(
                    f"the ZIP file unpacks to {size // max(1, packed):,} times its size; no more than {MOST_RATIO}"
                    " times is accepted, which exports do not reach: send conversations.json itself"
                )
            for member in sorted(members, key=lambda each: each.filename):
                with archive.open(member) as inner:
                    yield from _decoded(inner)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise UnreadableChats(f"the ZIP file is damaged or encrypted ({error}); download it again") from None


def _decoded(file: Any) -> Iterator[Any]:
    beginning = ""
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as stream:
        try:
            beginning = stream.read(60)
            if not beginning.strip():
                raise UnreadableChats(f"the file is empty; {EXPECTED}")
            yield from items_in(stream, beginning)
        except UnicodeDecodeError:
            raise UnreadableChats(f"the file is not text in UTF-8; {EXPECTED}") from None
        except RecursionError:
            raise UnreadableChats("the file is nested too deeply") from None
        except ValueError as fault:
            begins = " ".join(beginning.split())[:40]
            raise UnreadableChats(
                f"the file is not complete JSON ({fault}); it begins with {begins!r}; {EXPECTED}"
            ) from None


def described(item: Any) -> str:
    """What an item is that is no conversation, for people."""
    if isinstance(item, dict):
        names = ", ".join(repr(name)[:40] for name in list(item)[:6])
        return f"an object with the fields {names}" if names else "an empty object"
    kinds: Mapping[type, str] = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(item), "a number")


# The whole file.


def read_chats(items: Iterable[Any], write: Callable[[bytes], int] = len) -> Json:
    """What is in a file: `found` has for each conversation source, origin_id, title, turns, and the `offset` and `size`
    of its line, which is given to `write`; `left_out` has titles with reasons. Raises `UnreadableChats`."""
    found, left_out, seen = list[Json](), list[Json](), set[tuple[str, str]]()
    offset = strange = number = 0
    first: Any = None
    for item in items:
        number += 1
        chat = chat_in(item)
        if chat is None:
            strange += 1
            first = item if strange == 1 else first
            continue
        exchanges = exchanges_of(chat)
        kept = shortened(exchanges)
        key = (chat.source, chat.origin_id)
        if not kept:
            reason = "its last question is too long" if exchanges else "there is no question in it"
            left_out.append({"title": chat.title, "reason": reason})
        elif key not in seen:
            seen.add(key)
            if len(found) == MOST_CONVERSATIONS:
                raise UnreadableChats(f"the file has more than {MOST_CONVERSATIONS} conversations; split it")
            head = {"source": chat.source, "origin_id": chat.origin_id, "title": chat.title}
            line = json.dumps(kept, ensure_ascii=False).encode() + b"\n"
            write(line)
            cut = len(exchanges) - len(kept)
            found.append({**head, "turns": len(kept), "cut": cut, "offset": offset, "size": len(line)})
            offset += len(line)
    if not number:
        raise UnreadableChats("the file is an empty list: there is no conversation in it")
    if strange == number:
        raise UnreadableChats(f"no conversation was found: the first item is {described(first)}; {EXPECTED}")
    if strange:
        reason = f"{strange} of {number} items: not a conversation, but {described(first)}"
        left_out.append({"title": "", "reason": reason})
    return {"found": found, "left_out": left_out}


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def main() -> None:
    """Read the file that the arguments name."""
    source, target = sys.argv[1:]
    sys.setrecursionlimit(DEEPEST)
    for kind, value in ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_DATA, MEMORY_BYTES)):
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (value, value))
    with suppress(OSError):
        os.nice(10)
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        with open(source, "rb") as file, open(target, "wb") as lines:  # noqa: PTH123 - pathlib takes longer to import
            told = read_chats(items_of(file), lines.write)
    except UnreadableChats as error:
        told = {"error": str(error)}
    except MemoryError:
        told = {"error": "a conversation in the file takes too much memory"}
    sys.stdout.buffer.write(json.dumps(told).encode())


if __name__ == "__main__":
    main()
