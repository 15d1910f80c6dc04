import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import IPv4Network
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext

import pytest

from local.core import web_url as address_guard
from local.core.errors import FetchRefused, ToolError
from local.core.web_text import Document
from local.core.web_url import AddressGuard
from local.web.fetch import Fetcher, PictureFetcher, read_body

Answer = Callable[[str, asyncio.StreamWriter], Awaitable[None]]
_CERTIFICATE = Path(__file__).parents[1] / "data" / "site_test.pem"  # self-signed, for site.test


class Site:
    """A local web server that answers with whatever bytes a test writes."""

    def __init__(self, port: int) -> None:
        self.port, self.requests = port, list[str]()
        self.asked, self.hung_up = asyncio.Event(), asyncio.Event()
        self.host = f"127.0.0.1:{port}"

    def url(self, path: str = "/") -> str:
        return f"http://{self.host}{path}"


@asynccontextmanager
async def serving(answer: Answer, tls: SSLContext | None = None) -> AsyncIterator[Site]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            site.requests.append(request)
            site.asked.set()
            await answer(request.split()[1], writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            site.hung_up.set()  # the client had enough, which is what several tests are about
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    site = Site(server.sockets[0].getsockname()[1])
    async with server:
        yield site


def replying(body: bytes = b"hello", *headers: str, status: str = "200 OK") -> Answer:
    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
        writer.write("\r\n".join(lines).encode() + body)

    return answer


def redirecting(routes: dict[str, str]) -> Answer:
    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        if path in routes:
            headers = f"Location: {routes[path]}", "Set-Cookie: a=b; Path=/"
            await replying(b"", *headers, status="302 Found")(path, writer)
        else:
            await replying()(path, writer)

    return answer


async def dripping(path: str, writer: asyncio.StreamWriter) -> None:
    """One byte at a time, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)  # the slowness of the server, no wait for something


async def fetch(site: Site, path: str = "/", **limits: float) -> Document:
    return await Fetcher(AddressGuard([site.host]), **limits).fetch(site.url(path))  # type: ignore[arg-type]


async def failure(site: Site, path: str = "/", **limits: float) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await fetch(site, path, **limits)
    assert str(caught.value)
    return caught.value


@pytest.fixture
def loopback_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1 counts as public, 127.0.0.2 stays private, and every port is one of the web."""
    blocks = {IPv4Network("127.0.0.2/32"): "a private network"}
    monkeypatch.setattr(address_guard, "_V4_BLOCKS", blocks)
    monkeypatch.setattr(address_guard, "WEB_PORTS", range(1, 65536))


async def test_a_document_comes_with_its_final_address_type_and_bytes():
    async with serving(replying(b"caf\xe9", "Content-Type: Text/HTML; Charset=latin-1")) as site:
        document = await fetch(site, "/a?b#c")
    assert document.url == site.url("/a?b")
    assert (document.media_type.name, document.media_type.charset) == ("text/html", "latin-1")
    assert document.body == b"caf\xe9"
    assert "user-agent: " in site.requests[0].lower() and "LoCAL2" in site.requests[0]


async def test_redirects_relative_and_to_another_host_are_followed_without_cookies():
    async with (
        serving(replying()) as other,
        serving(redirecting({"/": "/b c", "/b%20c": f"//{other.host}/d"})) as site,
    ):
        document = await Fetcher(AddressGuard([site.host, other.host])).fetch(site.url())
    assert document.url == other.url("/d")
    requests = site.requests + other.requests
    assert len(requests) == 3
    assert not any("cookie" in request.lower() for request in requests)


async def test_a_redirect_to_a_forbidden_address_or_to_none_is_refused():
    """httpx itself fails of some of these, whether it is to follow them or not."""
    forbidden = ["http://169.254.169.254/latest", "file:///etc/passwd", "http://[", "http://a@b/"]
    no_address = ["http:\\\\evil.example\\x", "http:\\evil", "\\\\evil", "https:/\\evil", "//a\\@evil", "http://[::"]
    targets = {f"/{number}": target for number, target in enumerate([*forbidden, *no_address])}
    async with serving(redirecting(targets)) as site:
        for path, target in targets.items():
            error = await failure(site, path)
            assert isinstance(error, FetchRefused) and error.kind == "refused"
            assert f"{site.url(path)} redirects there" in str(error)
            assert target not in no_address or (error.url == target and "no address" in str(error))


async def test_redirects_in_a_circle_and_without_end_are_noticed():
    async with serving(redirecting({"/": "/a", "/a": "/", **{f"/{n}": f"/{n + 1}" for n in range(9)}})) as site:
        circle, endless = await failure(site), await failure(site, "/0")
        assert (await fetch(site, "/4")).url == site.url("/9")
    assert circle.kind == endless.kind == "redirect"
    assert "circle" in str(circle) and "more than 5" in str(endless)
    assert len(site.requests) == 2 + 6 + 6


async def test_an_error_status_is_an_error_that_names_it():
    for status in ("404 Not Found", "999 Odd", "304 Not Modified"):
        async with serving(replying(b"nothing here", "Content-Type: text/html", status=status)) as site:
            error = await failure(site)
        assert error.kind == "http_status" and status[:3] in str(error)


async def test_what_is_no_text_is_an_error_that_names_its_type():
    for header, body, named in (
        ("Content-Type: application/pdf", b"%PDF-1.7", "application/pdf"),
        ("Content-Type: image/png", b"\x89PNG\r\n", "image/png"),
        ("Content-Type: text/html", b"%PDF-1.7 in disguise", "application/pdf"),
        ("Content-Type: text/plain", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("X-No-Type: 1", b"\0\1\2\3", "binary data"),
        ("Content-Encoding: br", b"\x0b\x02\x80", "br"),
        ("Content-Encoding: gzip", b"this is no gzip", "gzip"),
    ):
        async with serving(replying(body, header)) as site:
            error = await failure(site)
        assert error.kind == "unsupported_type" and named in str(error)


async def test_text_of_every_usual_type_is_fetched_and_decompressed():
    for name in ("text/markdown", "application/ld+json", "application/rss+xml", "application/xhtml+xml"):
        answer = replying(gzip.compress(b"hello"), f"Content-Type: {name}", "Content-Encoding: gzip")
        async with serving(answer) as site:
            document = await fetch(site)
        assert (document.media_type.name, document.body) == (name, b"hello")


async def test_an_endless_body_stops_at_the_cap():
    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"more and more " * 1000)
            await writer.drain()

    async with serving(answer) as site:
        assert (await failure(site, max_bytes=100_000)).kind == "too_large"


async def test_a_body_that_is_announced_as_too_large_is_not_read():
    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n")

    async with serving(answer) as site:
        assert (await failure(site, max_bytes=100_000)).kind == "too_large"


async def test_endless_headers_are_an_error():
    async with serving(replying(b"", *(f"X-{n}: {'x' * 1000}" for n in range(300)))) as site:
        assert (await failure(site)).kind == "connect"


async def test_a_body_of_one_byte_at_a_time_ends_with_the_time():
    async with serving(dripping) as site:
        error = await failure(site, timeout_seconds=1.5)
        await asyncio.wait_for(site.hung_up.wait(), 90)
    assert error.kind == "timeout" and "1.5 s" in str(error)


async def test_a_connection_that_breaks_is_an_error():
    async def answer(path: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")

    async with serving(answer) as site:
        assert (await failure(site)).kind == "connect"
    closed = await failure(site)
    assert closed.kind == "connect" and site.host in str(closed)


async def test_a_name_that_does_not_resolve_is_a_dns_error():
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    with pytest.raises(ToolError, match=r"nowhere\.example could not be resolved") as caught:
        await Fetcher(AddressGuard(), resolve=resolve).fetch("http://nowhere.example/")
    assert caught.value.kind == "dns"


async def test_a_name_that_has_one_private_address_among_public_ones_is_refused():
    async def resolve(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "2606:2800:220:1::1", "10.0.0.1"]

    with pytest.raises(FetchRefused, match=r"10\.0\.0\.1"):
        await Fetcher(AddressGuard(), resolve=resolve).fetch("http://example.com/")


@pytest.mark.usefixtures("loopback_is_public")
async def test_a_name_that_turns_private_after_the_check_is_connected_at_the_address_that_was_checked():
    answers = [["127.0.0.1"], ["127.0.0.2"]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    async with serving(replying()) as site:
        fetcher = Fetcher(AddressGuard(), resolve=resolve)
        url = f"http://rebinding.example:{site.port}/"
        assert (await fetcher.fetch(url)).url == url
        assert len(answers) == 1
        with pytest.raises(FetchRefused, match=r"127\.0\.0\.2"):
            await fetcher.fetch(url)
    assert len(site.requests) == 1
    assert f"\r\nHost: rebinding.example:{site.port}\r\n" in site.requests[0]


async def test_where_one_host_alone_may_be_read_no_redirect_leads_to_another():
    async with serving(redirecting({"/": "/here", "/away": "//elsewhere.test/"})) as site:
        fetcher = Fetcher(AddressGuard([site.host, "elsewhere.test"]))
        assert (await fetcher.fetch(site.url(), same_host=True)).url == site.url("/here")
        with pytest.raises(FetchRefused, match="always_readable"):
            await fetcher.fetch(site.url("/away"), same_host=True)


@pytest.mark.usefixtures("loopback_is_public")
async def test_the_next_address_is_tried_when_one_does_not_answer():
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.3", "127.0.0.1"]

    async with serving(replying()) as site:
        document = await Fetcher(AddressGuard(), resolve=resolve).fetch(f"http://two.example:{site.port}/")
    assert document.body == b"hello"


async def test_a_certificate_is_checked_against_the_name_not_the_address(monkeypatch):
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    monkeypatch.setenv("SSL_CERT_FILE", str(_CERTIFICATE))
    tls = SSLContext(PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(_CERTIFICATE)
    async with serving(replying(), tls) as site:
        fetcher = Fetcher(AddressGuard(["site.test", "other.test"]), resolve=resolve)
        assert (await fetcher.fetch(f"https://site.test:{site.port}/")).body == b"hello"
        with pytest.raises(ToolError, match=r"(?i)certificate.*other\.test") as caught:
            await fetcher.fetch(f"https://other.test:{site.port}/")
    assert caught.value.kind == "connect"


async def test_proxies_of_the_environment_are_not_used(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with serving(replying()) as site:
        assert (await fetch(site)).body == b"hello"


async def test_a_cancelled_fetch_is_cancelled_and_hangs_up():
    async with serving(dripping) as site:
        task = asyncio.create_task(fetch(site))
        await asyncio.wait_for(site.asked.wait(), 90)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(site.hung_up.wait(), 90)


async def chunked(body: bytes, size: int) -> AsyncIterator[bytes]:
    for offset in range(0, len(body), size):
        yield body[offset : offset + size]


async def test_a_gzip_body_is_the_same_however_it_arrives_breaks_off_or_goes_on():
    text = b"some text " * 100
    packed = gzip.compress(text)
    for size in (1, 7, 10_000):
        assert await read_body(chunked(packed, size), "gzip", 1000) == text
        assert await read_body(chunked(text, size), "", 1000) == text
    assert text.startswith(await read_body(chunked(packed[:-12], 10), "gzip", 1000))
    assert await read_body(chunked(packed + b"junk" * 9, 10), "gzip", 1000) == text


async def test_a_gzip_bomb_never_takes_more_memory_than_the_cap():
    bomb = gzip.compress(bytes(20_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(ToolError, match="10,000 bytes"):
            await read_body(chunked(bomb, len(bomb)), "gzip", 10_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 500_000


async def test_a_picture_is_what_its_first_bytes_say_and_no_larger_than_its_limit() -> None:
    gif = b"GIF89a" + bytes(40)
    async with serving(replying(gif, "Content-Type: text/html")) as site:
        fetcher = PictureFetcher(AddressGuard([site.host]), max_bytes=60)
        assert (await fetcher.fetch(site.url())).media_type.name == "image/gif"
        with pytest.raises(FetchRefused):
            await PictureFetcher(AddressGuard()).fetch(site.url())
    for body, kind in ((b"<svg xmlns='http://www.w3.org/2000/svg'/>", "unsupported_type"), (gif * 2, "too_large")):
        async with serving(replying(body, "Content-Type: image/gif")) as site:
            with pytest.raises(ToolError) as refused:
                await PictureFetcher(AddressGuard([site.host]), max_bytes=60).fetch(site.url())
            assert refused.value.kind == kind
