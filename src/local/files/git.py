"""Git in the workspace: reads its repository and makes commits, running nothing that the repository names."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from local.core.errors import SandboxMissing, SandboxRefused, ToolError
from local.core.workspace import Workspace, WorkspacePath
from local.sandbox.process import MB, PATH, ContainedCommand, Launch, LaunchGate, SandboxLimits
from local.sandbox.sandbox import Bubblewrap, SandboxView

# A git folder with the objects, branches and index of a repository, and without its settings.

MOST_BYTES = 1_000_000  # of the settings or of HEAD
# The files of a repository that git needs besides its index: none of them are settings or name a program.
LINKED = (
    "objects", "refs", "packed-refs", "shallow", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "info/exclude",
)  # fmt: skip
# The settings of a repository that are needed to read its files and objects correctly; all others are withheld from
# git.
KEPT = (
    "core.repositoryformatversion", "core.filemode", "core.ignorecase", "core.symlinks", "core.precomposeunicode",
    "core.autocrlf", "core.eol", "extensions.objectformat",
)  # fmt: skip
_VALUE = re.compile(r"[A-Za-z0-9]{0,20}")
# All other settings are defaults: this repeats those that could run a program, or write to or read from elsewhere.
OURS = """\
[core]
	bare = false
	hooksPath = /dev/null
	fsmonitor = false
	attributesFile = /dev/null
	excludesFile = /dev/null
	logAllRefUpdates = false
	bigFileThreshold = 20m
	quotePath = false
	pager = cat
	editor = false
	sshCommand = false
[diff]
	ignoreSubmodules = all
	submodule = short
[submodule]
	recurse = false
[protocol]
	allow = never
[gc]
	auto = 0
[maintenance]
	auto = false
[commit]
	gpgSign = false
[log]
	showSignature = false
"""
_ELSEWHERE = {
    "objects/info/alternates": "takes objects from elsewhere (objects/info/alternates)",
    "objects/info/http-alternates": "takes objects from elsewhere (objects/info/http-alternates)",
    "commondir": "is a part of another one (commondir)",
    "reftable": "keeps its branches in a reftable",
}


@dataclass(frozen=True, slots=True)
class GitFolder:
    """A temporary git folder with our own settings for one repository. `path` is the folder given to git, `index` the
    repository's own one; `head` is the content of HEAD.
    """

    path: Path
    index: Path
    head: str

    @property
    def environment(self) -> Mapping[str, str]:
        """Return git's environment variables besides its folder."""
        return {"GIT_INDEX_FILE": str(self.index)}

    @property
    def branch(self) -> str:
        """Return the checked-out branch, with refs/heads/; empty if there is none."""
        return self.head.removeprefix("ref:").strip() if self.head.startswith("ref:") else ""

    def keep(self, settings: Mapping[str, str]) -> None:
        """Add those of the repository's settings that say how it is to be read."""
        kept = {key: value for key, value in settings.items() if key in KEPT and _VALUE.fullmatch(value)}
        lines = ["[{}]\n\t{} = {}".format(*key.split("."), value) for key, value in kept.items()]
        (self.path / "config").write_text("\n".join([OURS.rstrip(), *lines, ""]))

    @property
    def their_settings(self) -> Path:
        """A copy of the repository's settings, for nothing but reading what stands there."""
        return self.path / "settings-of-the-repository"


@contextmanager
def git_folder(workspace: Workspace) -> Iterator[GitFolder]:
    """The folder for the repository of the workspace. Raises `ToolError`: no_repository, elsewhere."""
    _require_repository(workspace)
    real = workspace.root / ".git"
    head = _read(workspace, "HEAD").decode("utf-8", "replace").strip()
    with tempfile.TemporaryDirectory(prefix="local2-git-") as made:
        path = Path(made)
        (path / "info").mkdir()
        for name in LINKED:
            (path / name).symlink_to(real / name)
        (path / "HEAD").write_text(f"{head}\n")
        folder = GitFolder(path, real / "index", head)
        folder.their_settings.write_bytes(_read(workspace, "config"))
        folder.keep({})
        yield folder


def is_repository(workspace: Workspace) -> bool:
    """Whether the workspace is a repository, wherever that lies."""
    return _kind(workspace, "") is not None


def _require_repository(workspace: Workspace) -> None:
    kind = _kind(workspace, "")
    if kind is None:
        raise ToolError("the workspace is no git repository (it has no .git)", kind="no_repository")
    if kind != "folder":
        text = "the workspace's .git is no folder: its repository lies elsewhere, which is not followed"
        raise ToolError(text, kind="elsewhere")
    for name in ("objects", "refs"):
        if _kind(workspace, name) != "folder":
            raise ToolError(f".git/{name} is no folder: this is no whole repository", kind="elsewhere")
    for name, what in _ELSEWHERE.items():
        if _kind(workspace, name) is not None:
            raise ToolError(f"this repository {what}, which is not read here", kind="elsewhere")


def _kind(workspace: Workspace, name: str) -> str | None:
    """Return the kind of that entry of .git; None if there is none."""
    try:
        return workspace.facts(_path(name)).kind
    except ToolError as error:
        if error.kind in ("not_found", "gone"):
            return None
        raise


def _read(workspace: Workspace, name: str) -> bytes:
    try:
        return workspace.read(_path(name), MOST_BYTES)
    except ToolError as error:
        if error.kind == "not_found" and name == "config":
            return b""
        raise


def _path(name: str) -> WorkspacePath:
    return WorkspacePath((".git", *(part for part in name.split("/") if part)))


# Runs git: contained where bubblewrap is there, with no settings but those that are written for it.

GET_IT = "git is not installed; install it (Debian, Ubuntu: apt install git; macOS: xcode-select --install)"
SECONDS = 20.0
MOST_OUTPUT_BYTES = 4 * MB  # of output; git is ended when it writes more
READ_BYTES = 64 * 1024
LIMITS = SandboxLimits(seconds=SECONDS, memory_bytes=1024 * MB, processes=16, output_bytes=MOST_OUTPUT_BYTES)
# Whatever is not named here does not exist for git: no home, no settings of the system, no helper of any sort.
ENVIRONMENT: Mapping[str, str] = {
    "PATH": PATH, "HOME": "/nonexistent", "LANG": "C.UTF-8", "TERM": "dumb",
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat",
    "GIT_EDITOR": "false", "GIT_ASKPASS": "false", "GIT_SSH_COMMAND": "false", "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_LITERAL_PATHSPECS": "1",
}  # fmt: skip


class GitProgram:
    """The installed git, run in a sandbox. `closed` are folders that its processes cannot see."""

    def __init__(self, workspace: Path, closed: tuple[Path, ...] = ()) -> None:
        self._workspace, self._closed = workspace, closed

    @staticmethod
    def installed() -> str | None:
        """Return the path of git; None if it is not installed."""
        return shutil.which("git")

    async def run(
        self,
        calls: Sequence[Sequence[str]],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        said: bytes = b"",
        *,
        writes: bool = False,
    ) -> bytes:
        """Return git's standard output, given `said` as its input and `folder` as its own folder, called with each of
        these arguments in turn until a call fails: all in one sandbox, because each costs more than git itself. The
        workspace is writable only with `writes`. Raises `ToolError`: git_missing, git_failed, too_slow.
        """
        if (program := self.installed()) is None:
            raise ToolError(GET_IT, kind="git_missing")
        where = {"GIT_DIR": str(folder), "GIT_WORK_TREE": str(self._workspace)}
        variables = {**ENVIRONMENT, **where, **(environment or {})}
        command = ContainedCommand(_in_turn(program, calls), environment=variables)
        launch = await asyncio.to_thread(self._launch, command, folder, writes)
        with launch:
            code, output, troubles = await _ran(launch, dict(command.environment), said, self._workspace)
        if code and len(output) < MOST_OUTPUT_BYTES:
            words = troubles.decode("utf-8", "replace").strip() or f"it ended with {code}"
            raise ToolError(f"git {', '.join(each[0] for each in calls)}: {words[:1000]}", kind="git_failed")
        return output

    async def of_owner(self) -> dict[str, str]:
        """Return user.name and user.email from the settings of the machine account's owner."""
        arguments = (self.installed() or "git", "config", "--global", "-z", "--get-regexp", r"^user\.(name|email)$")
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments, cwd="/", stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            said, _ = await process.communicate()
        except OSError:
            return {}
        return settings_of(said)

    @cached_property
    def _sandbox(self) -> Bubblewrap | None:
        with suppress(SandboxMissing):
            return Bubblewrap.found() if sys.platform.startswith("linux") else None
        return None

    def _launch(self, command: ContainedCommand, folder: Path, writes: bool) -> Launch:
        if self._sandbox is None:
            return Launch(*command.argv)
        try:
            view = SandboxView(self._workspace, (folder,), self._closed, writable=writes)
        except SandboxRefused as refused:
            raise ToolError(str(refused), kind="refused") from None
        return self._sandbox.launch(command, view, LIMITS)


def _in_turn(program: str, calls: Sequence[Sequence[str]]) -> list[str]:
    first, *others = ([program, *arguments] for arguments in calls)
    return ["/bin/sh", "-c", " && ".join(map(shlex.join, (first, *others)))] if others else first


def settings_of(listed: bytes) -> dict[str, str]:
    """Settings as `git config -z` lists them, the last of each key."""
    pairs = (entry.partition("\n") for entry in listed.decode("utf-8", "replace").split("\0") if entry)
    return {key: value if mark else "true" for key, mark, value in pairs}


async def _ran(launch: Launch, environment: dict[str, str], said: bytes, folder: Path) -> tuple[int, bytes, bytes]:
    """Return the exit code, and the output on both streams."""
    gate = LaunchGate() if launch.reports else None
    process: asyncio.subprocess.Process | None = None
    try:
        process = await asyncio.create_subprocess_exec(
            launch.argv[0], *(gate.options if gate else ()), *launch.argv[1:], cwd=folder, env=environment,
            pass_fds=(*launch.descriptors, *(gate.descriptors if gate else ())), start_new_session=True,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        if gate is not None:
            gate.started()
            await asyncio.to_thread(gate.open, LIMITS)
        async with asyncio.timeout(SECONDS):
            return await _communicated(process, said)
    except TimeoutError:
        raise ToolError(f"git did not finish within {SECONDS:g} s and was ended", kind="too_slow") from None
    except (OSError, ValueError) as error:
        raise ToolError(f"git could not be started: {error}", kind="git_failed") from None
    finally:
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
        if gate is not None:
            gate.close()


async def _communicated(process: asyncio.subprocess.Process, said: bytes) -> tuple[int, bytes, bytes]:
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    troubles = asyncio.create_task(_git_program_read(process.stderr, READ_BYTES))
    output = asyncio.create_task(_git_program_read(process.stdout, MOST_OUTPUT_BYTES))
    try:
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(said)
            await process.stdin.drain()
        process.stdin.close()
        told = await output
        if len(told) >= MOST_OUTPUT_BYTES:
            with suppress(ProcessLookupError):
                process.kill()
        return await process.wait(), told, await troubles
    finally:
        troubles.cancel()
        output.cancel()


async def _git_program_read(stream: asyncio.StreamReader, most: int) -> bytes:
    """Return the first bytes of a stream; the caller ends the writer."""
    read = bytearray()
    while len(read) < most and (data := await stream.read(READ_BYTES)):
        read += data
    return bytes(read[:most])


# Neither a program nor another repository is asked how files differ.
PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "--submodule=short")
LOG_FORMAT = "%h %ad %an: %s%d%w(0,4,4)%+b"
NOBODY = "LoCAL2"
NO_MAIL = "local2@localhost"
HEAD = ("rev-parse", "--revs-only", "HEAD^{commit}", "HEAD^{tree}")  # none in a new repository
STATUS = (
    "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all", "--",
)  # fmt: skip
ADD = ("update-index", "--add", "--remove", "-z", "--stdin")
UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
CONFLICTS = ("DD", "AU", "UD", "UA", "DU", "AA", "UU")
_MOST_HEAD = 10_000  # bytes of git's description of an object
_IDS = re.compile(rb"([0-9a-f]{40,})\n([0-9a-f]{40,})\n")  # no line of a status begins like that


@dataclass(frozen=True, slots=True)
class GitEntry:
    """A file that is not as in the last commit: both letters of `git status --short`, and its path."""

    letters: str
    path: str


@dataclass(frozen=True, slots=True)
class NewCommit:
    """A commit that no branch has yet: `branch` is to have it, which held `before` in its file, None for no file."""

    commit: str
    branch: str
    before: bytes | None
    files: tuple[GitEntry, ...]


class GitRepository:
    """The repository of the workspace. Each call checks again what is there. Raises `ToolError`: no_repository,
    elsewhere, git_failed, too_slow.
    """

    def __init__(self, workspace: Workspace, program: GitProgram) -> None:
        self.workspace = workspace
        self._program = program
        self._read: tuple[bytes, dict[str, str]] | None = None  # the settings' text and their values

    async def branch(self) -> str:
        """Return the checked-out branch or commit, for a person."""
        async with self._opened() as folder:
            return folder.branch.removeprefix("refs/heads/") or f"no branch, at {folder.head[:12]}"

    async def status(self, paths: Sequence[str] = ()) -> list[GitEntry]:
        """The files that are not as in the last commit, ignored ones left out; of those paths, or all."""
        async with self._opened() as folder:
            return await self._status(folder, paths)

    async def diff(self, paths: Sequence[str], *, staged: bool = False, revision: str = "") -> str:
        """Return how files differ from the last commit, or the staged part of that; or the changes of a commit, or of
        one against another, as in `a..b`.
        """
        async with self._opened() as folder:
            if ".." in revision:
                arguments = ["diff", *PLAIN, "--end-of-options", _sane(revision)]
            elif revision:
                arguments = ["show", *PLAIN, "-m", "--first-parent", "--format=%h %ad %an: %s", "--date=short",
                             "--end-of-options", _sane(revision)]  # fmt: skip
            else:
                return await self._diff_of_files(folder, paths, staged=staged)
            return _text(await self._git(folder, [*arguments, "--", *paths]))

    async def earlier_digests(self, paths: Sequence[str], *, staged: bool) -> set[str] | None:
        """Return the SHA-256 of those files' content in the last commit, and in the `staged` state; None if unknown."""
        places = ("HEAD", "") if staged else ("HEAD",)
        if any("\n" in path for path in paths):
            return None
        names = [f"{where}:{path}" for path in paths for where in places]
        said = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
        async with self._opened() as folder:
            try:
                told = await self._git(folder, ["cat-file", "--batch"], said=said)
            except ToolError:
                return None
        return _digests_of(told)

    async def log(self, paths: Sequence[str], *, revision: str = "", most: int = 20, words: str = "") -> str:
        """Return the latest commits with their messages."""
        async with self._opened() as folder:
            found = [f"--grep={words}", "--fixed-strings", "--regexp-ignore-case"] if words else []
            arguments = ["log", f"--max-count={most}", f"--format={LOG_FORMAT}", "--date=short", "--no-color",
                         "--no-show-signature", "--no-mailmap", "--ignore-submodules=all", *found,
                         "--end-of-options", _sane(revision or "HEAD")]  # fmt: skip
            try:
                lines = _text(await self._git(folder, [*arguments, "--", *paths])).splitlines()
            except ToolError as error:
                if revision or not await self._is_without_commits(folder, error):
                    raise
                return "there are no commits yet"
            return "\n".join(line.rstrip() for line in lines if line.strip())

    async def make_commit(self, message: str, paths: Sequence[str]) -> NewCommit:
        """A commit of those files as they are now, of all that differ if none is named; what else is staged stays
        staged. Raises `ToolError`: nothing_changed, conflict, under_way, no_branch, and as the others."""
        async with self._opened() as folder:
            self._require_ready(folder)
            before = self._of_branch(folder)
            parent, its_tree, told = await self._head_and_status(folder, paths)
            entries = [each for each in told if not each.path.endswith("/")]
            if not entries:
                raise ToolError("there is nothing to commit: no file differs from the last one", kind="nothing_changed")
            if conflicts := [each.path for each in entries if each.letters in CONFLICTS]:
                raise ToolError(f"conflicts are not solved yet in {', '.join(conflicts[:10])}", kind="conflict")
            listed = b"".join(entry.path.encode("utf-8", "surrogateescape") + b"\0" for entry in entries)
            tree = await self._tree(folder, parent, listed)
            if tree == its_tree:
                text = "there is nothing to commit: the files are as in the last commit"
                raise ToolError(text, kind="nothing_changed")
            commit = await self._committed(folder, tree, parent, message, listed)
            return NewCommit(commit, folder.branch, before, tuple(entries))

    async def _diff_of_files(self, folder: GitFolder, paths: Sequence[str], *, staged: bool) -> str:
        arguments = ["diff", *PLAIN, *(["--cached"] if staged else []), "--end-of-options"]
        try:
            return _text(await self._git(folder, [*arguments, "HEAD", "--", *paths]))
        except ToolError as error:
            if not await self._is_without_commits(folder, error):
                raise
        return _text(await self._git(folder, [*arguments, await self._empty_tree(folder), "--", *paths]))

    async def _is_without_commits(self, folder: GitFolder, error: ToolError) -> bool:
        """Whether git has failed because there is no HEAD: checked afterwards, because each question takes a
        sandbox.
        """
        return error.kind == "git_failed" and not await self._git(folder, HEAD)

    async def _committed(self, folder: GitFolder, tree: str, parent: str, message: str, listed: bytes) -> str:
        """The commit; the repository's own index has its files as they are now, too."""
        said = folder.path / "message"
        said.write_bytes(message.strip().encode("utf-8", "replace") + b"\n")
        commit = ["commit-tree", tree, *(["-p", parent] if parent else []), "-F", str(said)]
        name, mail = await self._identity(folder)
        named = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail,
                 "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": mail}  # fmt: skip
        return (await self._git(folder, ADD, commit, said=listed, environment=named, writes=True)).decode().strip()

    async def _tree(self, folder: GitFolder, parent: str, listed: bytes) -> str:
        """The last commit's files with those as they are now, made in an index that is thrown away."""
        part = f"local2-{uuid.uuid4().hex[:12]}.index"
        own = replace(folder, index=folder.index.with_name(part))
        calls = ["read-tree", parent or "--empty"], ADD, ["write-tree"]
        try:
            return (await self._git(own, *calls, said=listed, writes=True)).decode().strip()
        finally:
            self._drop(part)

    def _drop(self, part: str) -> None:
        with suppress(ToolError, FileNotFoundError), self.workspace.folder(self.workspace.path(".git")) as opened:
            os.unlink(part, dir_fd=opened)

    def _require_ready(self, folder: GitFolder) -> None:
        if not folder.branch.startswith("refs/heads/"):
            raise ToolError("no branch is checked out, so that a commit would belong to none", kind="no_branch")
        for name in (*UNDER_WAY, f"{folder.branch}.lock"):
            with suppress(ToolError):
                self.workspace.facts(self.workspace.path(f".git/{name}"))
                text = f"something is under way in this repository (.git/{name}): its user has to end that first"
                break
        else:
            return
        raise ToolError(text, kind="under_way")

    def _of_branch(self, folder: GitFolder) -> bytes | None:
        """Return the content of the branch's own file; None if it has none: a packed branch, or a new one."""
        try:
            return self.workspace.read(self.workspace.path(f".git/{folder.branch}"), 1000)
        except ToolError as error:
            if error.kind in ("not_found", "not_a_folder"):
                return None
            raise

    async def _status(self, folder: GitFolder, paths: Sequence[str]) -> list[GitEntry]:
        return _entries(await self._git(folder, [*STATUS, *paths]))

    async def _head_and_status(self, folder: GitFolder, paths: Sequence[str]) -> tuple[str, str, list[GitEntry]]:
        """Return the last commit and its tree, both empty if there is none; and the files that differ from it."""
        told = await self._git(folder, HEAD, [*STATUS, *paths])
        if (found := _IDS.match(told)) is None:
            return "", "", _entries(told)
        return found[1].decode(), found[2].decode(), _entries(told[found.end() :])

    async def _empty_tree(self, folder: GitFolder) -> str:
        return (await self._git(folder, ["hash-object", "-t", "tree", "/dev/null"])).decode().strip()

    async def _identity(self, folder: GitFolder) -> tuple[str, str]:
        """Return the committer: from the repository's settings, which are read but not obeyed, else from its
        owner's.
        """
        settings = {**await self._program.of_owner(), **await self._settings(folder)}
        return settings.get("user.name") or NOBODY, settings.get("user.email") or NO_MAIL

    async def _settings(self, folder: GitFolder) -> dict[str, str]:
        """Return the repository's settings, the last of each key, without included files. Git is asked once for the
        same text, because each time takes a sandbox.
        """
        text = folder.their_settings.read_bytes()
        if self._read is None or self._read[0] != text:
            arguments = ["config", "--file", str(folder.their_settings), "--no-includes", "--list", "-z"]
            self._read = text, settings_of(await self._git(folder, arguments))
        return self._read[1]

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[GitFolder]:
        with git_folder(self.workspace) as folder:
            folder.keep(await self._settings(folder))
            yield folder

    async def _git(
        self,
        folder: GitFolder,
        *calls: Sequence[str],
        said: bytes = b"",
        environment: Mapping[str, str] | None = None,
        writes: bool = False,
    ) -> bytes:
        told = {**folder.environment, **(environment or {})}
        return await self._program.run(calls, folder.path, told, said, writes=writes)


def _entries(told: bytes) -> list[GitEntry]:
    lines = told.decode("utf-8", "surrogateescape").split("\0")
    return [GitEntry(line[:2], line[3:]) for line in lines if line]


def _digests_of(told: bytes) -> set[str] | None:
    """Return the SHA-256 of each object in the output of `git cat-file --batch`; None if that was cut off."""
    found, at = set[str](), 0
    while at < len(told):
        head, _, _ = told[at : at + _MOST_HEAD].partition(b"\n")
        at += len(head) + 1
        if head.endswith((b" missing", b" ambiguous")):
            continue
        size = head.rpartition(b" ")[2]
        if not size.isdigit() or at + int(size) >= len(told):
            return None
        found.add(hashlib.sha256(told[at : at + int(size)]).hexdigest())
        at += int(size) + 1
    return found


def _sane(revision: str) -> str:
    """A revision as git takes it. Raises `ToolError` (bad_argument)."""
    if revision.startswith("-") or any(ord(each) < 32 for each in revision):
        raise ToolError(
            f"{revision!a} is no revision; expected such as HEAD~2, a branch or a commit", kind="bad_argument"
        )
    return revision


def _text(output: bytes) -> str:
    return output.decode("utf-8", "backslashreplace")
