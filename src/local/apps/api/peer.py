"""The other end of one connection over loopback: which Unix user holds it, as the kernel tells it."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from local.containment import contained_processes, is_held_by

Address = tuple[str, int]

PROC_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
PROC_READS = 3  # of a table that changes while it is read a row may be missed
ESTABLISHED = 1
_IP = ipaddress.ip_address
# From linux/netlink.h, sock_diag.h and inet_diag.h.
_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ERROR, _NO_COOKIE = 4, 20, 1, 2, b"\xff" * 8
_HEAD, _ASKED, _TOLD = struct.Struct("=IHHII"), struct.Struct("=BBBBI"), struct.Struct("=BB2x48x12xII")


class NotTold(Exception):
    """The kernel does not say in this way who holds a socket."""


class Peer:
    """A client and the address at which it has reached us. `is_own_user` says whether it is the Unix user that runs
    this process, None until `look_up` has found out."""

    def __init__(self, client: tuple[str, int | None] | None, server: tuple[str, int | None] | None) -> None:
        """Without addresses, and for any that is not loopback, it is not."""
        ends = [_plain((host, port)) for host, port in filter(None, (client, server)) if port and _is_loopback(host)]
        self.is_own_user: bool | None = None if len(ends) == 2 else False
        self._ends = ends

    async def look_up(self) -> None:
        """Ask the kernel, once. Who is in a sandbox of ours is nobody of ours, though it is the same Unix user."""
        if self.is_own_user is not None:
            return
        contained = contained_processes()  # before: who ends meanwhile holds nothing then
        try:
            held = socket_by_netlink(*self._ends)
        except NotTold:
            self.is_own_user = await asyncio.to_thread(_is_own_otherwise, contained, *self._ends)
        else:
            self.is_own_user = await asyncio.to_thread(_is_outside, contained, held) if contained else _is_own(held)


class HeldSocket(NamedTuple):
    """A socket that some process holds: whose it is, and its number."""

    uid: int
    inode: int


def socket_by_netlink(client: Address, server: Address) -> HeldSocket | None:
    """The client's own socket, in 25 µs; None if there is none that is established and held by a process. Raises
    `NotTold` where there is no netlink."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.sendto(_question(client, server), (0, 0))
            reply, (sender, _) = kernel.recvfrom(4096, socket.MSG_DONTWAIT)
    except (OSError, AttributeError):
        raise NotTold from None
    _, kind, *_ = _HEAD.unpack_from(reply)
    if sender != 0 or (kind == _ERROR and not _is_missing(reply)):
        raise NotTold
    if kind == _ERROR:
        return None
    _, state, uid, inode = _TOLD.unpack_from(reply, _HEAD.size)
    return HeldSocket(uid, inode) if state == ESTABLISHED and inode else None


def socket_by_proc(client: Address, server: Address) -> HeldSocket | None:
    """The socket that a client holds, from the tables in /proc, which takes milliseconds. Raises `NotTold` where there
    are none."""
    try:
        for _ in range(PROC_READS):
            for table, needle in zip(PROC_TABLES, _needles(client, server), strict=True):
                if needle and (found := _row(table.read_bytes(), needle)):
                    uid, inode = int(found[7]), int(found[9])
                    return HeldSocket(uid, inode) if inode else None
    except (OSError, ValueError, LookupError):
        raise NotTold from None
    return None


def is_held_by_own_process(client: Address, server: Address) -> bool:
    """Without a table of all sockets, as on macOS: whether a process of our own user holds the client's."""
    import psutil

    own = os.geteuid()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.uids().effective == own and (client, server) in _connections(process):
                return True
    return False


def _is_own_otherwise(contained: set[int], client: Address, server: Address) -> bool:
    try:
        return _is_outside(contained, socket_by_proc(client, server))
    except NotTold:
        return is_held_by_own_process(client, server)


def _is_own(held: HeldSocket | None) -> bool:
    return held is not None and held.uid == os.geteuid()


def _is_outside(contained: set[int], held: HeldSocket | None) -> bool:
    """Whether it is our own user's, and where there are sandboxes, held by a process in none of them."""
    return held is not None and _is_own(held) and (not contained or is_held_by(held.inode, but=contained))


def _is_loopback(host: str) -> bool:
    try:
        ip = _IP(host)
    except ValueError:
        return False
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


def _plain(address: Address) -> Address:
    """An IPv4 address within an IPv6 one as itself."""
    ip = _IP(address[0])
    return str(getattr(ip, "ipv4_mapped", None) or ip), address[1]


def _question(client: Address, server: Address) -> bytes:
    ends = [_IP(host).packed for host, _ in (client, server)]
    family = socket.AF_INET if len(ends[0]) == 4 else socket.AF_INET6
    ports, hosts = struct.pack("!HH", client[1], server[1]), b"".join(end.ljust(16, b"\0") for end in ends)
    asked = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ports + hosts + bytes(4) + _NO_COOKIE
    return _HEAD.pack(_HEAD.size + len(asked), _BY_FAMILY, _REQUEST, 1, 0) + asked


def _is_missing(reply: bytes) -> bool:
    (code,) = struct.unpack_from("=i", reply, _HEAD.size)
    return bool(-code == errno.ENOENT)


def _needles(client: Address, server: Address) -> Iterator[bytes | None]:
    """How the client's row begins in each table: its own end, then ours, then the state."""
    ends = [(_IP(host).packed, port) for host, port in (client, server)]
    is_v4 = len(ends[0][0]) == 4
    yield _needle(ends) if is_v4 else None
    yield _needle([(bytes(10) + b"\xff\xff" + host, port) for host, port in ends] if is_v4 else ends)


def _needle(ends: list[tuple[bytes, int]]) -> bytes:
    written = [f"{''.join(_words(host))}:{port:04X}" for host, port in ends]
    return f" {' '.join(written)} {ESTABLISHED:02X} ".encode()


def _words(host: bytes) -> Iterator[str]:
    for start in range(0, len(host), 4):
        yield f"{int.from_bytes(host[start : start + 4], sys.byteorder):08X}"


def _row(table: bytes, needle: bytes) -> list[bytes] | None:
    at = table.find(needle)
    return None if at < 0 else table[table.rfind(b"\n", 0, at) + 1 :].split(maxsplit=10)


def _connections(process: object) -> set[tuple[Address, Address]]:
    import psutil

    assert isinstance(process, psutil.Process)
    return {
        (_plain((each.laddr.ip, each.laddr.port)), _plain((each.raddr.ip, each.raddr.port)))
        for each in process.net_connections(kind="tcp")
        if each.status == psutil.CONN_ESTABLISHED and each.raddr
    }
