"""A model server without a model: it says what size it has, answers as it is told to, and keeps what it was
asked, as it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


@dataclass
class RecordingModel:
    """`requests` are the bodies of POST /v1/chat/completions, in their order. What it says to each, `reply` decides:
    a text, or the name of a tool with arguments to call it with."""

    name: str
    parameters: int
    reply: Callable[[Json], str | tuple[str, Json]] = lambda request: "All right."
    context: int = 32_768
    url: str = ""
    requests: list[Json] = field(default_factory=list)

    def listing(self) -> Json:
        """GET /v1/models, as llama-server says it."""
        meta = {"n_params": self.parameters, "n_ctx_train": self.context, "size": self.parameters // 2}
        return {"data": [{"id": self.name, "object": "model", "owned_by": "llamacpp", "meta": meta}]}

    def props(self) -> Json:
        """GET /props, as llama-server says it."""
        return {
            "default_generation_settings": {"n_ctx": self.context}, "total_slots": 1, "build_info": "b9000-test",
            "chat_template_caps": {"supports_tools": True}, "modalities": {"vision": False}, "chat_template": "",
        }  # fmt: skip


@contextmanager
def recording_model(model: RecordingModel) -> Iterator[RecordingModel]:
    """The server, for as long as the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(model)) as server:
        model.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield model
        server.shutdown()
        thread.join()


def _said(reply: str | tuple[str, Json]) -> Iterator[Json]:
    if isinstance(reply, str):
        yield from ({"choices": [{"index": 0, "delta": {"content": f"{word} "}}]} for word in reply.split())
    else:
        function = {"name": reply[0], "arguments": json.dumps(reply[1])}
        call = {"index": 0, "id": "call", "type": "function", "function": function}
        yield {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop" if isinstance(reply, str) else "tool_calls"}]}


def _handler(model: RecordingModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told = {"/v1/models": model.listing, "/props": model.props}.get(self.path.partition("?")[0])
            self._say(200 if told else 404, "application/json", json.dumps(told() if told else {}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self.path.endswith("/chat/completions"):
                self._say(404, "application/json", "{}")
                return
            model.requests.append(body)
            chunks = [*_said(model.reply(body)), {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}]
            events = [*(json.dumps({"model": model.name, **chunk}) for chunk in chunks), "[DONE]"]
            self._say(200, "text/event-stream", "".join(f"data: {event}\n\n" for event in events))

        def _say(self, status: int, kind: str, text: str) -> None:
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
