"""Attached files: their kinds, their extracted text, their storage."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from local.core.attachments import (
    AttachmentImporter,
    AttachmentLimits,
    AttachmentStore,
    Extract,
    clean_name,
    kind_of,
)
from local.core.errors import AttachmentMissing, AttachmentRefused, StoreFailed
from local.core.pdf import pdf_pages

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def pdf(*pages: str) -> bytes:
    """A minimal PDF with these lines on its pages."""
    count = len(pages)
    kids = " ".join(f"{3 + 2 * index} 0 R" for index in range(count))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {count} >>"]
    font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    for index, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        media = "/MediaBox [0 0 612 792]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {media} /Contents {4 + 2 * index} 0 R /Resources {font} >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    out, offsets = b"%PDF-1.4\n", list[int]()
    for number, text in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return out + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()


@pytest.fixture
def store(tmp_path: Path) -> AttachmentStore:
    return AttachmentStore(tmp_path / "attachments")


async def refused(
    store: AttachmentStore, name: str, data: bytes, limits: AttachmentLimits | None = None
) -> AttachmentRefused:
    with pytest.raises(AttachmentRefused) as caught:
        await AttachmentImporter(store, limits or AttachmentLimits()).add(name, data)
    return caught.value


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.png", PNG, "image/png"),
        ("not-a-picture.txt", PNG, "image/png"),
        ("a.webp", b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        ("a.pdf", b"junk\n%PDF-1.7\n", "application/pdf"),
        ("a.html", b"<p>hello", "text/html"),
        ("page", b"\n<!DOCTYPE HTML><p>x", "text/html"),
        ("a.md", b"# Title", "text/markdown"),
        ("a.py", b"import os\n\x0c", "text/plain"),
        ("a.txt", "größer".encode("latin-1"), "text/plain"),
        ("a.txt", "größer".encode("utf-16"), "text/plain"),
    ],
)
def test_what_a_file_is_is_seen_in_its_bytes_and_then_its_name(name: str, data: bytes, kind: str) -> None:
    assert kind_of(name, data) == kind


@pytest.mark.parametrize("data", [b"PK\x03\x04\0\0", b"\x7fELF\x02\x01", bytes(range(1, 9)) * 20])
async def test_what_nobody_can_read_is_refused_with_what_can(store: AttachmentStore, data: bytes) -> None:
    error = await refused(store, "report.docx", data)
    assert error.kind == "unsupported_media_type"
    assert "report.docx" in str(error) and "PDF" in str(error)


async def test_a_text_is_read_in_its_own_charset_and_kept(store: AttachmentStore) -> None:
    data = "Die Straße ist größer.\r\n".encode("latin-1")
    kept = await AttachmentImporter(store, AttachmentLimits()).add("notes.txt", data)
    assert kept.text == "Die Straße ist größer."
    assert store.read(kept.id) == (kept, data)
    assert (kept.size, kept.note) == (len(data), "")


async def test_of_a_web_page_the_readable_text_is_read(store: AttachmentStore) -> None:
    page = b"<html><title>Cats</title><script>evil()</script><p>" + b"Cats sleep a lot. " * 20 + b"</p></html>"
    kept = await AttachmentImporter(store, AttachmentLimits()).add("cats.html", page)
    assert kept.text.startswith("Cats")
    assert "sleep" in kept.text and "evil" not in kept.text and "<p>" not in kept.text


async def test_a_pdf_is_read_page_by_page(store: AttachmentStore) -> None:
    kept = await AttachmentImporter(store, AttachmentLimits()).add("two.pdf", pdf("The first page", "The second page"))
    assert kept.text == "The first page\n\nThe second page"


async def test_of_a_long_pdf_the_first_pages_are_read_and_that_is_said(store: AttachmentStore) -> None:
    kept = await AttachmentImporter(store, AttachmentLimits(max_pages=1)).add(
        "two.pdf", pdf("The first page", "The second page")
    )
    assert (kept.text, kept.note) == ("The first page", "its first 1 of 2 pages")


async def test_a_damaged_pdf_is_refused_without_a_traceback(store: AttachmentStore) -> None:
    error = await refused(store, "bad.pdf", b"%PDF-1.4\n" + b"\x00garbage" * 50)
    assert error.kind == "invalid" and "bad.pdf" in str(error)


async def test_a_pdf_without_text_says_what_to_do(store: AttachmentStore) -> None:
    assert "pictures" in str(await refused(store, "scan.pdf", pdf(" ")))


async def test_without_the_pdf_package_a_pdf_is_unsupported(
    store: AttachmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    error = await refused(store, "a.pdf", pdf("x"))
    assert error.kind == "unsupported_media_type" and "pypdf" in str(error)


async def test_a_long_text_is_cut_after_a_sentence_and_that_is_said(store: AttachmentStore) -> None:
    kept = await AttachmentImporter(store, AttachmentLimits(max_characters=60)).add(
        "long.txt", b"A sentence of some words. " * 10
    )
    assert kept.text.endswith("words.") and 25 < len(kept.text) <= 60
    assert kept.note == f"its first {len(kept.text)} characters"


async def test_a_file_that_is_too_large_or_empty_is_refused(store: AttachmentStore) -> None:
    assert (await refused(store, "a.txt", b"12345", AttachmentLimits(max_bytes=4))).kind == "too_large"
    assert (await refused(store, "a.txt", b"")).kind == "invalid"
    assert (await refused(store, "a.txt", b" \n ")).kind == "invalid"


async def test_what_takes_too_long_to_read_is_refused(store: AttachmentStore, monkeypatch: pytest.MonkeyPatch) -> None:
    is_over = threading.Event()

    def slow(name: str, media_type: str, data: bytes, limits: AttachmentLimits) -> Extract:
        is_over.wait(90)
        return Extract("")

    monkeypatch.setattr("local.core.attachments.extract", slow)
    assert "could not be read within" in str(await refused(store, "a.txt", b"x", AttachmentLimits(max_seconds=0.01)))
    is_over.set()


def test_the_process_that_reads_a_pdf_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of a few kilobytes can be one of millions of commands: nothing within the parser could be waited for."""
    lines = b"q 1 0 0 1 0 0 cm Q\n" * 1_000_000
    processes = list[subprocess.Popen[bytes]]()

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    with pytest.raises(AttachmentRefused, match=r"could not be read within 0\.5 s"):
        pdf_pages("bomb.pdf", pdf(f"x) Tj {lines.decode()} (y"), 500, 1000, 0.5)
    assert [each.returncode for each in processes] == [-signal.SIGKILL]


def jpeg(width: int, height: int) -> bytes:
    """The head of one, behind the kind of part that cameras put first."""
    size = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return b"\xff\xd8\xff\xe1\x00\x06Exif" + b"\xff\xc2\x00\x11\x08" + size + bytes(20)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (60_000).to_bytes(4, "big") * 2),
        ("a.gif", b"GIF89a" + b"\xff\xff" * 2),
        ("a.jpg", jpeg(65_535, 65_535)),
        ("a.webp", b"RIFF\0\0\0\0WEBPVP8X\n\0\0\0\0\0\0\0" + b"\xff\xff\x00" * 2),
        ("a.webp", b"RIFF\0\0\0\0WEBPVP8L\n\0\0\0\x2f\xff\xff\xff\xff"),
        ("a.webp", b"RIFF\0\0\0\0WEBPVP8 \n\0\0\0\0\0\0\x9d\x01\x2a\xff\xff\xff\xff"),
    ],
    ids=["png", "gif", "jpeg", "webp", "webp-lossless", "webp-lossy"],
)
async def test_a_picture_that_would_fill_the_memory_is_refused(store: AttachmentStore, name: str, data: bytes) -> None:
    error = await refused(store, name, data)
    assert error.kind == "too_large" and "pixels, at most 100,000,000 are accepted" in str(error)
    photo = await AttachmentImporter(store, AttachmentLimits()).add("b.jpg", jpeg(9_000, 6_000))
    assert photo.media_type == "image/jpeg"


async def test_the_same_file_twice_is_one(store: AttachmentStore) -> None:
    add = AttachmentImporter(store, AttachmentLimits()).add
    assert await add("a.png", PNG) == await add("folder/a.png", PNG)
    assert await add("b.png", PNG) != await add("a.png", PNG)


@pytest.mark.parametrize("key", ["", "0" * 64, "../../etc/passwd", "A" * 64])
def test_what_is_not_there_is_named(store: AttachmentStore, key: str) -> None:
    for look in (store.get, store.delete):
        with pytest.raises(AttachmentMissing, match="POST /attachments"):
            look(key)


def test_a_damaged_file_counts_as_missing(store: AttachmentStore, tmp_path: Path) -> None:
    kept = store.put("a.png", "image/png", PNG)
    path = tmp_path / "attachments" / kept.id
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(AttachmentMissing):
        store.get(kept.id)


def test_a_deleted_file_is_gone(store: AttachmentStore, tmp_path: Path) -> None:
    store.delete(store.put("a.png", "image/png", PNG).id)
    assert list((tmp_path / "attachments").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreFailed, match=r"a\.png"):
        AttachmentStore(tmp_path / "file").put("a.png", "image/png", PNG)


def test_of_a_name_the_last_part_counts_on_one_line() -> None:
    assert clean_name("C:\\x\\my\n\x00 file.txt") == "my file.txt"
    assert clean_name("../") == "file"
    assert clean_name("photo\u202egpj.exe") == "photo gpj.exe"


def test_a_file_is_of_everybody_who_has_sent_it_until_the_last_has_no_use_for_it(store: AttachmentStore) -> None:
    def sent_by(*names: str) -> str:
        return [store.put("a.txt", "text/plain", b"x", "x", user_id=name).id for name in names][-1]

    kept = sent_by("ann", "bob")
    assert store.owners(kept) == {"ann", "bob"}
    store.release(kept, "ann")
    assert store.owners(kept) == {"bob"} and store.get(kept)
    store.release(kept, "bob")
    with pytest.raises(AttachmentMissing):
        store.get(kept)
    kept = sent_by("owner", "ann")  # the owner's has no mark until somebody else sends it
    store.release(kept, "ann")
    assert store.get(kept) and store.owners(kept) == {"owner"}
    kept = sent_by("ann", "owner")
    store.delete(kept)
    assert sent_by("bob") == kept and store.owners(kept) == {"bob"}


def test_files_of_a_deleted_session_are_released_by_whoever_named_them(store: AttachmentStore) -> None:
    files = {
        name: store.put(name, "text/plain", b"x", name, user_id=name.split()[0]).id for name in ("ann 1", "owner 1")
    }
    shared = store.put("both", "text/plain", b"x", user_id="ann").id
    store.put("both", "text/plain", b"x", user_id="bob")
    store.discard([(files["owner 1"], "ann", False)])  # lent by the owner, and named by somebody else
    assert store.get(files["owner 1"])
    store.discard([(files["ann 1"], "ann", True), (shared, "ann", True), (files["owner 1"], "ann", True)])
    assert store.owners(shared) == {"bob"}
    for gone in files.values():
        with pytest.raises(AttachmentMissing):
            store.get(gone)
    store.discard([(shared, "bob", True), (shared, "bob", True)])
