"""What a program needs besides the system to start in a sandbox: its interpreter, wherever that was installed.

Problem: a program of a virtual environment, of pyenv, uv or nvm is in the user's home, which no sandbox shows. It is a
link or a script that names another program, which needs the libraries beside it.

Idea: follow the program as the kernel does, link by link and interpreter by interpreter, and name for each file the
folder that it was installed in, if it has the marks of one; else the file alone. The list is what the owner is asked
about: nothing is shown to a program because it asks for it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.core.environment import variable
from local.sandbox.process import PATH
from local.sandbox.sandbox import SYSTEM

MOST_STEPS = 40  # links and interpreters, as for the kernel
HEAD = 512  # bytes of a script that are looked at
_HOME_LINE = re.compile(r"^home\s*=\s*(.+?)\s*$", re.MULTILINE)
_PYTHON_HERE, _NODE_HERE, _MARK = "lib/python3*", "lib/node_modules", "pyvenv.cfg"


@dataclass(frozen=True, slots=True)
class Program:
    """A program that can be started: where it is, what it belongs to, for people ("" if nothing is known of that), and
    the folders and files that it needs besides the system. `optional` are the folders of packages that are being worked
    on, of which it may need some.
    """

    path: Path
    kind: str = ""
    needs: tuple[Path, ...] = ()
    optional: tuple[Path, ...] = ()

    def missing(self, readable: Sequence[Path], *, optional: bool = False) -> list[Path]:
        """Those that a sandbox with these folders does not show; with `optional` also those that it may need."""
        wanted = (*self.needs, *(self.optional if optional else ()))
        return [each for each in wanted if not any(_is_in(each, folder) for folder in readable)]


def program_of(command: str, arguments: Sequence[str] = (), search: str | None = None) -> Program | None:
    """Return the program that a command starts; None if there is none. `search` is the path to look in, by default the
    sandbox's and then that of this process. Arguments that are absolute paths of files are needed, too, with their
    folders.
    """
    search = search or f"{PATH}{os.pathsep}{variable('PATH') or ''}"
    found = shutil.which(Path(command).expanduser() if "/" in command else command, path=search)
    if found is None:
        return None
    path = _behind_shim(Path(found).absolute())
    needs = list(_needs(path))
    for argument in arguments:
        given = Path(argument)
        if given.is_absolute() and given.is_file():
            needs += [each for each in (_shown(given.parent, given),) if each is not None]
    return Program(path, _kind_of(path), tuple(_outermost(needs)), tuple(_outermost(list(_developed(path)))))


def _needs(path: Path, steps: int = MOST_STEPS) -> Iterator[Path]:
    """What the program at this path needs, its own place first."""
    while steps > 0:
        steps -= 1
        for place in dict.fromkeys((path, path.parent.resolve() / path.name)):
            yield from _place_of(place)
        if path.is_symlink():
            path = Path(os.path.normpath(path.parent / path.readlink()))
            continue
        if (interpreter := _interpreter_of(path)) is None:
            return
        path = interpreter


def _place_of(path: Path) -> Iterator[Path]:
    """The installation that a program is in, and that it is based on; else the program alone."""
    prefix = path.parent.parent
    if path.parent.name != "bin" or not _is_installation(prefix):
        if (shown := _shown(path)) is not None:
            yield shown
        return
    if (shown := _shown(prefix)) is not None:
        yield shown
    mark = prefix / _MARK
    if not mark.is_file():
        return
    if home := _HOME_LINE.search(_text(mark)):
        base = Path(home[1]).parent
        yield from filter(None, (_shown(base), _shown(base.resolve())))


def _developed(path: Path) -> Iterator[Path]:
    """The folders of packages that are being worked on in a program's virtual environment."""
    prefix = path.parent.parent
    if (prefix / _MARK).is_file():
        for listed in sorted(prefix.glob(f"{_PYTHON_HERE}/site-packages/*.pth")):
            yield from filter(None, (_shown(Path(line)) for line in _text(listed).splitlines() if line.startswith("/")))


def _is_installation(prefix: Path) -> bool:
    if prefix in (Path.home(), Path.home() / ".local"):
        return False
    return (prefix / _MARK).is_file() or (prefix / _NODE_HERE).is_dir() or any(prefix.glob(_PYTHON_HERE))


def _shown(*choices: Path) -> Path | None:
    """The first of these that exists and does not hold the home directory, which no sandbox shows; None for a part of
    the system, which every sandbox shows.
    """
    if any(_is_in(choices[0], Path(part)) for part in SYSTEM):
        return None
    home = Path.home().resolve()
    return next((each for each in choices if each.exists() and not _is_in(home, each.resolve())), None)


def _interpreter_of(path: Path) -> Path | None:
    """Return the interpreter that a script names on its first line; None for other files."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError:
        return None
    words = head.partition(b"\n")[0].decode("utf-8", "replace").removeprefix("#!").split() if head[:2] == b"#!" else []
    if not words:
        return None
    if Path(words[0]).name != "env":
        return Path(words[0])
    named = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
    beside = shutil.which(named, path=f"{path.parent}{os.pathsep}{variable('PATH') or ''}") if named else None
    return Path(beside) if beside else None


def _behind_shim(path: Path) -> Path:
    """Return the program that a shim of pyenv starts; any other program as it is."""
    root = path.parent.parent
    if path.parent.name != "shims" or not (root / "versions").is_dir():
        return path
    chosen = (variable("PYENV_VERSION") or "").split(":") + _text(root / "version").split()
    behind = (root / "versions" / version / "bin" / path.name for version in chosen if version)
    return next((each for each in behind if each.is_file()), path)


def _kind_of(path: Path) -> str:
    prefix, real = path.parent.parent, str(path.resolve())
    if (prefix / _MARK).is_file():
        return f"a virtual environment of Python in {prefix}"
    kinds = {"/.pyenv/": "a Python of pyenv", "/uv/python/": "a Python of uv", "nvm/": "a Node.js of nvm"}
    return next((kind for part, kind in kinds.items() if part in real), "")


def _outermost(paths: Sequence[Path]) -> Iterator[Path]:
    """Each path once, without those that are in another one."""
    once = list(dict.fromkeys(paths))
    for path in once:
        if not any(path != other and _is_in(path, other) for other in once):
            yield path


def _is_in(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
