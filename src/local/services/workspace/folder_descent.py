"""Opens a folder beneath another one by descriptors, following no link: with `openat2` where Linux has it, else name by
name."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Sequence
from functools import cache

Descent = Callable[[int, Sequence[str]], int]
"""Given a folder's descriptor and names, a new descriptor of the folder that they lead to. Raises `OSError`: ELOOP for
a link, ENOTDIR for what is no folder, ENOENT, EXDEV for what lies outside."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_SYS_OPENAT2 = 437  # the same on every architecture of Linux
_RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x04, 0x08  # linux/openat2.h
_UNKNOWN = (errno.ENOSYS, errno.EPERM, errno.E2BIG, errno.EINVAL)  # an old kernel, or a filter on system calls


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def descend_by_name(folder: int, names: Sequence[str]) -> int:
    """Open one folder after the other, each without following a link."""
    current = os.open(".", FOLDER, dir_fd=folder)
    try:
        for name in names:
            following = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = following
    except BaseException as error:
        os.close(current)
        if isinstance(error, OSError) and error.errno == errno.ENOTDIR and _is_link(folder, names):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None  # Linux calls a link no folder
        raise
    return current


def descend_at_once(folder: int, names: Sequence[str]) -> int:
    """Have the kernel do all of it, in one call that refuses links and whatever leads out."""
    path = os.fsencode("/".join(names)) or b"."
    how = _OpenHow(FOLDER, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS)
    while True:
        found = _libc().syscall(_SYS_OPENAT2, folder, path, ctypes.byref(how), ctypes.sizeof(how))
        number = ctypes.get_errno()
        if found >= 0:
            return int(found)
        if number not in (errno.EAGAIN, errno.EINTR):  # something was renamed at that moment
            raise OSError(number, os.strerror(number))


def best_descent() -> Descent:
    """The one that this machine can do."""
    if not sys.platform.startswith("linux"):
        return descend_by_name
    here = os.open("/", FOLDER)
    try:
        os.close(descend_at_once(here, ()))
    except OSError as error:
        if error.errno not in _UNKNOWN:
            raise
        return descend_by_name
    finally:
        os.close(here)
    return descend_at_once


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _is_link(folder: int, names: Sequence[str]) -> bool:
    """Whether one of the names is a link; only for the words of an error."""
    current = os.open(".", FOLDER, dir_fd=folder)
    try:
        for name in names:
            if stat.S_ISLNK(os.stat(name, dir_fd=current, follow_symlinks=False).st_mode):
                return True
            following = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=current)
            os.close(current)
            current = following
    except OSError:
        return False
    finally:
        os.close(current)
    return False
