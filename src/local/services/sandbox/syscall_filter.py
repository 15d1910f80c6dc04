"""The system calls that no contained command may make, as a program for the kernel's seccomp filter.

What namespaces do not cover: other address families than those of a network namespace, the kernel's keys, io_uring,
tracing, further namespaces, pushing characters into a terminal, and memory that no count of a process shows. The
format is that of seccomp(2) and bpf: `struct sock_filter { u16 code; u8 jt; u8 jf; u32 k; }`.
"""

from __future__ import annotations

import errno
import platform
import struct

X86_64, AARCH64 = 0xC000003E, 0xC00000B7  # AUDIT_ARCH_* of linux/audit.h
MACHINES = {"x86_64": (X86_64, 0), "aarch64": (AARCH64, 1), "arm64": (AARCH64, 1)}  # with the column of the table
X32_CALLS = 0x40000000  # x86-64's second set of numbers, from here on
NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* of clone(2)
FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: those that a network namespace separates
TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

# The numbers on x86-64 and on arm64; None where there is no such call. What is missing is ENOSYS: callers do without.
REFUSED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "pidfd_getfd": (438, 438), "kcmp": (312, 272), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "chroot": (161, 51),
    "unshare": (272, 97), "setns": (308, 268), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "acct": (163, 89), "swapon": (167, 224), "swapoff": (168, 225),
    "reboot": (169, 142), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "iopl": (172, None), "ioperm": (173, None),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "syslog": (103, 116), "vhangup": (153, 58),
    "fanotify_init": (300, 262),
}  # fmt: skip
MISSING: dict[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435),  # its flags lie in memory, where no filter can read them
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
}  # fmt: skip
CLONE, SOCKET, IOCTL = (56, 220), (41, 198), (16, 29)

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data; low halves of the arguments
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def syscall_filter() -> bytes | None:
    """The program for this kind of machine; None where its numbers are not known."""
    arch, column = MACHINES.get(platform.machine(), (0, 0))
    if not arch:
        return None
    program = [_step(_LOAD, k=_ARCH), _step(_EQUAL, 1, 0, arch), _fail(errno.ENOSYS), _step(_LOAD, k=_NUMBER)]
    program += [_step(_AT_LEAST, 0, 1, X32_CALLS), _fail(errno.ENOSYS)]
    for calls, code in ((REFUSED, errno.EPERM), (MISSING, errno.ENOSYS)):
        for numbers in calls.values():
            if (number := numbers[column]) is not None:
                program += [_step(_EQUAL, 0, 1, number), _fail(code)]
    program += _looked_into(CLONE[column], _FIRST, [_step(_ANY_BIT, 0, 1, NEW_NAMESPACES), _fail(errno.EPERM)])
    program += _looked_into(IOCTL[column], _SECOND, [
        step for request in TERMINAL_INPUT for step in (_step(_EQUAL, 0, 1, request), _fail(errno.EPERM))
    ])  # fmt: skip
    allowed = [step for family in FAMILIES for step in (_step(_EQUAL, 0, 1, family), _step(_RETURN, k=_ALLOW))]
    program += _looked_into(SOCKET[column], _FIRST, [*allowed, _fail(errno.EAFNOSUPPORT)])
    return b"".join([*program, _step(_RETURN, k=_ALLOW)])


def _looked_into(number: int, argument: int, checks: list[bytes]) -> list[bytes]:
    """What is done for one call by the low half of an argument; the call is allowed where no check returns."""
    body = [_step(_LOAD, k=argument), *checks, _step(_RETURN, k=_ALLOW)]
    return [_step(_EQUAL, 0, len(body), number), *body]


def _fail(code: int) -> bytes:
    return _step(_RETURN, k=_ERRNO | code)


def _step(code: int, then: int = 0, otherwise: int = 0, k: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, k)
