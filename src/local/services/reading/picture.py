"""What a picture is, from its first bytes."""

from __future__ import annotations

import struct


def picture_facts(content: bytes) -> str:
    """A picture's format and its size in pixels; nothing for what is no picture that is known here."""
    if content.startswith(b"\x89PNG\r\n\x1a\n") and len(content) >= 24:
        return _told("PNG", *struct.unpack(">II", content[16:24]))
    if content[:6] in (b"GIF87a", b"GIF89a") and len(content) >= 10:
        return _told("GIF", *struct.unpack("<HH", content[6:10]))
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "a WebP picture"
    if content.startswith(b"\xff\xd8\xff"):
        return _of_jpeg(content)
    return ""


def _of_jpeg(content: bytes) -> str:
    """The size stands in the frame's header (ITU T.81, B.2.2)."""
    at = 2
    while at + 9 < len(content) and content[at] == 0xFF:
        marker, length = content[at + 1], struct.unpack(">H", content[at + 2 : at + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return _told("JPEG", width, height)
        at += 2 + length
    return "a JPEG picture"


def _told(name: str, width: int, height: int) -> str:
    return f"a {name} picture of {width} × {height} pixels"
