"""Ways out of a sandbox, tried from inside: a program of its own, which says as JSON what came of each.

It is given a JSON object of what there is outside to be reached. A way returns what it has got, as evidence, and
raises where it is closed. `HARMLESS` are those that also run outside, where each has to succeed.
"""

# It stands alone, close to the system's own calls, and says what it has to say on its output.
# ruff: noqa: PTH109, PTH116, PTH123, PTH208, PTH211, T201

import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

WAYS: dict[str, Callable[[dict], object]] = {}
HARMLESS: set[str] = set()
CLOSED = (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT)
libc = ctypes.CDLL(None, use_errno=True)


def way(harmless: bool = False) -> Callable:
    def enter(function: Callable[[dict], object]) -> Callable[[dict], object]:
        WAYS[function.__name__] = function
        if harmless:
            HARMLESS.add(function.__name__)
        return function

    return enter


def named(name: str, function: Callable[[dict], object], harmless: bool = False) -> None:
    function.__name__ = name
    way(harmless)(function)


def read(path: str) -> bytes:
    return Path(path).read_bytes()[:200] or b"(empty)"


def write(path: str) -> str:
    with open(path, "r+b") as file:
        data = file.read(1000)
        file.seek(0)
        file.write(data or b"x")
    return f"{path} was written"


def called(number: int, *arguments: object) -> int:
    """The result of a system call. Raises `OSError` for a failure that says it is closed; any other is a way in."""
    result = libc.syscall(ctypes.c_long(number), *arguments)
    code = ctypes.get_errno()
    if result < 0 and code in CLOSED:
        raise OSError(code, os.strerror(code))
    return result


def not_given(folder: str, at: dict) -> str:
    """What a folder holds beside that to which the command was given leave. Raises `PermissionError` if nothing."""
    names = [
        name for name in os.listdir(folder) if not any(f"{p}/".startswith(f"{folder}/{name}/") for p in at["given"])
    ]
    if not names:
        raise PermissionError("nothing else")
    return str(names)


# --- files that are not the command's

for name, key in {
    "a_file_in_the_home": "secret", "the_data_directory": "token", "the_settings": "settings", "an_ssh_key": "ssh_key",
    "a_link_in_the_workspace": "link", "a_path_upwards": "upwards", "a_file_in_the_hosts_tmp": "host_tmp",
    "a_file_in_the_hosts_shared_memory": "host_shm",
}.items():  # fmt: skip
    named(f"read_{name}", lambda at, key=key: read(at[key]), harmless=True)
    named(f"write_{name}", lambda at, key=key: write(at[key]))

for path in ("/etc/shadow", "/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port", "/proc/1/environ", "/proc/kmsg"):
    named("read_" + path.strip("/").replace("/", "_"), lambda at, path=path: read(path))
for folder in ("/root", "/home", "/var", "/sys", "/run", "/boot", "/mnt", "/media", "/srv", "/opt"):
    named(f"list_{folder[1:]}", lambda at, folder=folder: not_given(folder, at))
for path in ("/usr/bin/env", "/etc/passwd", "/etc/hosts", "/etc/ld.so.cache"):
    named("write_" + path.strip("/").replace("/", "_"), lambda at, path=path: write(path))
for path in (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger",
    "/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/randomize_va_space", "/proc/mtrr", "/proc/1/mem",
    "/proc/1/oom_score_adj",
):  # fmt: skip
    named("open_for_writing_" + path.strip("/").replace("/", "_"), lambda at, path=path: os.open(path, os.O_WRONLY))


@way()
def through_the_root_of_any_process(at: dict) -> object:
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            return read(f"/proc/{pid}/root{at['secret']}")
        except OSError:
            continue
    raise PermissionError("no root leads there")


@way()
def through_the_folder_of_any_process(at: dict) -> object:
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            return read(f"/proc/{pid}/cwd/../../../../../../../../..{at['secret']}")
        except OSError:
            continue
    raise PermissionError("no folder leads there")


@way()
def make_a_hard_link_to_it(at: dict) -> object:
    os.link(at["secret"], "hard")
    return read("hard")


@way()
def make_a_link_and_write_through_it(at: dict) -> object:
    os.symlink(at["secret"], "soft")
    return write("soft")


@way()
def make_a_file_beside_the_workspace(at: dict) -> object:
    path = Path(os.getcwd()).parent / "beside"
    path.write_text("x")
    return "made" if Path(at["beside"]).parent == path.parent and os.stat(path.parent).st_dev == at["device"] else 1 / 0


@way()
def make_a_disk(at: dict) -> object:
    os.mknod("disk", 0o600 | 0o060000, os.makedev(254, 0))
    return read("disk")


@way()
def make_the_memory(at: dict) -> object:
    os.mknod("memory", 0o600 | 0o020000, os.makedev(1, 1))
    return read("memory")


# --- what was inherited


@way(harmless=True)
def find_it_in_the_environment(at: dict) -> object:
    return next(value for value in os.environ.values() if at["canary"] in value)


@way(harmless=True)
def find_it_in_the_environment_of_any_process(at: dict) -> object:
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if at["canary"].encode() in Path(f"/proc/{pid}/environ").read_bytes():
                return pid
        except OSError:
            continue
    raise PermissionError("in none")


@way(harmless=True)
def find_it_in_an_open_file(at: dict) -> object:
    for name in os.listdir("/proc/self/fd"):
        try:
            if at["canary"].encode() in os.pread(int(name), 1000, 0):
                return name
        except OSError:
            continue
    raise PermissionError("in none")


@way(harmless=True)
def open_the_directory_of_an_inherited_descriptor(at: dict) -> object:
    for name in os.listdir("/proc/self/fd"):
        try:
            return os.open(Path(at["secret"]).name, os.O_RDONLY, dir_fd=int(name))
        except OSError:
            continue
    raise PermissionError("there is none")


# --- other processes


@way(harmless=True)
def signal_a_process_outside(at: dict) -> object:
    os.kill(at["victim"], 0)
    if at["marker"] not in Path(f"/proc/{at['victim']}/cmdline").read_text():
        raise ProcessLookupError("another one of that number")
    return "it could be ended"


@way(harmless=True)
def see_a_process_outside(at: dict) -> object:
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except OSError:
            continue
        if at["marker"] in words and "victim" in words:
            return pid
    raise ProcessLookupError("not seen")


@way()
def open_a_process_outside(at: dict) -> object:
    return os.pidfd_open(at["outside"])


@way()
def limit_a_process_outside(at: dict) -> object:
    return resource.prlimit(at["outside"], resource.RLIMIT_NOFILE)


@way()
def slow_down_a_process_outside(at: dict) -> object:
    return os.setpriority(os.PRIO_PROCESS, at["outside"], 19)


@way()
def become_root(at: dict) -> object:
    os.setuid(0)
    return os.getuid()


@way()
def have_a_capability(at: dict) -> object:
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    held = [status[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh") if int(status[name], 16)]
    return held[0]


@way()
def be_allowed_new_privileges(at: dict) -> object:
    if libc.prctl(39, 0, 0, 0, 0) == 0:  # PR_GET_NO_NEW_PRIVS
        return "setuid programs give rights"
    raise PermissionError("none gives any")


@way()
def raise_a_limit(at: dict) -> object:
    return resource.setrlimit(resource.RLIMIT_NPROC, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)) or "raised"


# --- the network


@way(harmless=True)
def connect_to_a_port_of_this_machine(at: dict) -> object:
    return socket.create_connection(("127.0.0.1", at["port"]), 2)


@way(harmless=True)
def connect_to_a_port_of_this_machine_by_ipv6(at: dict) -> object:
    return socket.create_connection(("::ffff:127.0.0.1", at["port"]), 2)


@way()
def connect_to_the_internet(at: dict) -> object:
    return socket.create_connection(("1.1.1.1", 443), 2)


@way()
def send_a_datagram(at: dict) -> object:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("1.1.1.1", 53))


@way()
def look_up_a_name(at: dict) -> object:
    return socket.getaddrinfo("example.org", 80)


@way(harmless=True)
def connect_to_the_bus(at: dict) -> object:
    return socket.socket(socket.AF_UNIX).connect(at["bus"]) or "connected"


@way(harmless=True)
def connect_to_an_abstract_socket(at: dict) -> object:
    return socket.socket(socket.AF_UNIX).connect("\0" + at["abstract"]) or "connected"


@way()
def connect_to_the_session_bus(at: dict) -> object:
    return socket.socket(socket.AF_UNIX).connect(f"/run/user/{os.getuid()}/bus") or "connected"


@way()
def connect_to_the_system_bus(at: dict) -> object:
    return socket.socket(socket.AF_UNIX).connect("/run/dbus/system_bus_socket") or "connected"


@way()
def connect_to_the_ssh_agent(at: dict) -> object:
    return socket.socket(socket.AF_UNIX).connect(os.environ["SSH_AUTH_SOCK"]) or "connected"


@way()
def see_another_interface(at: dict) -> object:
    return next(name for _, name in socket.if_nameindex() if name != "lo")


for name, family in {"vsock": 40, "packet": 17, "alg": 38, "bluetooth": 31, "can": 29, "tipc": 30, "xdp": 44}.items():
    named(f"open_a_socket_of_{name}", lambda at, family=family: socket.socket(family, socket.SOCK_DGRAM))


@way()
def open_a_raw_socket(at: dict) -> object:
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


# --- namespaces, the kernel, the terminal


@way()
def make_a_user_namespace_by_clone(at: dict) -> object:
    pid = called(at["clone"], 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return pid


@way()
def unshare_by_a_program(at: dict) -> object:
    return subprocess.run(["unshare", "-Ur", "true"], check=True, capture_output=True)


@way()
def enter_the_namespace_of_the_first_process(at: dict) -> object:
    return os.open("/proc/1/ns/mnt", os.O_RDONLY)


@way()
def push_a_character_into_a_terminal(at: dict) -> object:
    master, slave = os.openpty()
    try:
        return fcntl.ioctl(slave, termios.TIOCSTI, b"x")
    finally:
        os.close(master)


@way()
def open_the_terminal(at: dict) -> object:
    return os.open("/dev/tty", os.O_RDWR)


@way()
def call_by_the_other_set_of_numbers(at: dict) -> object:
    if os.uname().machine != "x86_64":
        raise PermissionError("there is none")
    return called(0x40000000 + 39)  # getpid of x32


@way()
def run_what_was_written_as_a_setuid_program(at: dict) -> object:
    Path("suid").write_bytes(Path("/usr/bin/id").read_bytes())
    Path("suid").chmod(0o6755)
    out = subprocess.run(["./suid", "-u"], check=True, capture_output=True, text=True).stdout
    if int(out) == os.getuid():
        raise PermissionError("it ran as everybody else")
    return out


@way()
def map_memory_at_zero(at: dict) -> object:
    libc.mmap.restype = ctypes.c_void_p
    got = libc.mmap(ctypes.c_void_p(0), 4096, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10, -1, 0)
    if got is None:
        return "the first page"
    raise PermissionError("refused")


def main() -> None:
    at = json.loads(sys.argv[1])
    ways = dict(WAYS)
    for name, number in at["refused"].items():
        ways[f"call_{name}"] = lambda at, number=number: called(number, 0, 0, 0, 0, 0, 0)
    for number, key in enumerate(("key", "queue")):
        ways[f"find_a_{key}_of_system_v"] = lambda at, number=number: (libc.shmget, libc.msgget)[number](at["sysv"], 0)
    found = {}
    for name, function in ways.items():
        if at["harmless_only"] and name not in HARMLESS:
            continue
        try:
            found[name] = f"ESCAPED: {function(at)!r:.200}"
        except BaseException as error:  # noqa: BLE001 - a way that is closed may raise anything
            found[name] = f"closed: {error!r:.200}"
    if not at["harmless_only"]:
        for name in ("find_a_key_of_system_v", "find_a_queue_of_system_v"):
            found[name] = found[name].replace("ESCAPED: -1", "closed: -1")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
