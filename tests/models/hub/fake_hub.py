"""A hub with files in it, over real HTTP, with a hub's manners and its bad days."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REPO = "owner/tiny-GGUF"


class FakeHub(ThreadingHTTPServer):
    """`files` of one repository by their paths. `cut_after` bytes each connection breaks while `cuts` last."""

    daemon_threads = True

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.status = 200
        self.cut_after, self.cuts = 0, 0
        self.takes_ranges = True
        self.tells_digests = True
        self.lies: dict[str, bytes] = {}  # what is sent instead of a file
        self.asked: list[tuple[str, str, dict[str, str]]] = []  # method, path, headers
        self.sending = threading.Event()  # half a file has been sent
        self.go_on: threading.Event | None = None  # is waited for then

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever has gone needs no answer."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def address(self, path: str) -> str:
        return f"{self.url}/{REPO}/resolve/main/{path}"

    def ranges(self) -> list[str]:
        return [
            headers.get("range", "") for method, path, headers in self.asked if "/resolve/" in path and method == "GET"
        ]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeHub

    def do_HEAD(self) -> None:
        self._serve(with_body=False)

    def do_GET(self) -> None:
        self._serve(with_body=True)

    def _serve(self, *, with_body: bool) -> None:
        hub = self.server
        hub.asked.append((self.command, self.path, {key.lower(): value for key, value in self.headers.items()}))
        if hub.status != 200:
            return self._send(hub.status, b"no")
        if self.path.startswith("/api/models/"):
            if f"/{REPO}/" not in self.path:
                return self._send(404, b'{"error":"Repository not found"}')
            return self._send(200, json.dumps([self._entry(path, data) for path, data in hub.files.items()]).encode())
        path = self.path.partition("/resolve/main/")[2].replace("%20", " ")
        if path not in hub.files:
            return self._send(404, b"Entry not found")
        return self._send_file(hub.lies.get(path, hub.files[path]), with_body=with_body)

    def _entry(self, path: str, data: bytes) -> dict[str, Any]:
        entry: dict[str, Any] = {"type": "file", "path": path, "size": len(data)}
        if self.server.tells_digests:
            entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data)}
        return entry

    def _send_file(self, data: bytes, *, with_body: bool) -> None:
        hub, begin = self.server, 0
        given = self.headers.get("Range")
        if given and hub.takes_ranges:
            begin = int(given.removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(data) - begin))
        self.send_header("ETag", hashlib.sha256(data).hexdigest())
        self.end_headers()
        if not with_body:
            return
        body = data[begin:]
        if hub.cuts and hub.cut_after:
            hub.cuts -= 1
            body = body[: hub.cut_after]
            self.close_connection = True
        half = len(body) // 2
        self.wfile.write(body[:half])
        self.wfile.flush()
        hub.sending.set()
        if hub.go_on is not None:
            hub.go_on.wait(90)
        self.wfile.write(body[half:])

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def hub_with(files: dict[str, bytes]) -> Iterator[FakeHub]:
    """A hub that runs in a thread for as long as the block lasts."""
    hub = FakeHub(files)
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        if hub.go_on is not None:
            hub.go_on.set()
        hub.shutdown()
        hub.server_close()
        thread.join()
