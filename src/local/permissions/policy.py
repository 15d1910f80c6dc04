"""Which calls are made, which are denied, and about which a person is asked: the owner's lists, then the mode."""

from __future__ import annotations

import asyncio
import shlex
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, Final, NamedTuple

from pydantic import Field, field_validator

from local.bus.messages import PlanMode, ToolSchema
from local.bus.vocabulary import NON_INTERACTIVE, UNDECLARED_CATEGORY, UNDECLARED_SAFETY, Category, Mode, Safety
from local.core.config import Settings
from local.permissions.messages import PermissionDecision

# An entry of the owner's lists: a tool by its name, or of one that runs commands an exact vector of arguments.

COMMAND = "command"  # the argument of tools that run commands: a line, or a program and its arguments


class ListedCall(NamedTuple):
    """An entry of the owner's lists: a tool, or one command. Without `argv` it is every call of the tool."""

    tool: str
    argv: tuple[str, ...] | None = None

    @classmethod
    def of(cls, entry: object) -> ListedCall:
        """A call listed as `name` or `{name: [argument, …]}`. Raises `ValueError` for anything else."""
        if isinstance(entry, str) and entry:
            return cls(entry)
        if isinstance(entry, Mapping) and len(entry) == 1:
            [(tool, argv)] = entry.items()
            if isinstance(tool, str) and tool and (vector := _vector(argv)):
                return cls(tool, vector)
        raise ValueError(f"{entry!r}: expected a tool, or one with its arguments, as in shell_exec: [git, status]")

    def is_call(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether that call is exactly this one: with this vector, and no other arguments."""
        if tool != self.tool:
            return False
        return self.argv is None or (args.keys() == {COMMAND} and _vector(args[COMMAND]) == self.argv)

    def may_be_call(self, tool: str, args: Mapping[str, Any]) -> bool:
        """Whether that call could have the same effect, however it is written."""
        if tool != self.tool or self.argv is None:
            return tool == self.tool
        command = args.get(COMMAND)
        return self.argv == _vector(_split(command) if isinstance(command, str) else command)


def _vector(value: object) -> tuple[str, ...] | None:
    is_vector = isinstance(value, list | tuple) and value and all(isinstance(one, str) for one in value)
    return tuple(value) if is_vector else None  # type: ignore[arg-type]  # it is one


def _split(command: str) -> list[str] | None:
    try:
        return shlex.split(command)
    except ValueError:
        return None


# A file that other programs run or obey automatically, by one of its names, or by two consecutive ones.

RUN_BY_OTHERS: Final = (
    # interpreters, and packages installed for them
    "sitecustomize.py", "usercustomize.py", "*.pth", "pyvenv.cfg", ".venv", "venv", "site-packages", "node_modules",
    # run by a push, a commit or a repository
    ".git", ".hg", ".svn", ".husky", ".githooks", ".pre-commit-config.yaml", "lefthook.y*ml", ".lefthook.y*ml",
    ".gitconfig", "git/config", ".github/workflows", ".github/actions", ".gitea/workflows", ".forgejo/workflows",
    ".gitlab-ci.y*ml", ".circleci", ".buildkite", ".woodpecker*", ".drone.y*ml", ".travis.y*ml", "azure-pipelines*",
    "jenkinsfile*", "bitbucket-pipelines.y*ml",
    # package managers and build tools, which take programs from their settings
    ".npmrc", ".yarnrc*", ".yarn", ".pnpmfile.cjs", "bunfig.toml", ".cargo/config*", ".pypirc", "pip.conf", ".gemrc",
    ".mvn", "mvnw", "mvnw.cmd", "gradlew", "gradlew.bat", "gradle-wrapper.*",
    # shells, editors and desktops
    ".envrc", ".direnv", "*mise.toml", ".profile", ".*shrc", ".*shenv", ".*profile", ".bash_*", ".*login", ".*logout",
    ".inputrc", ".gdbinit", ".gdbearlyinit", ".lldbinit", ".netrc", "_netrc", ".curlrc", ".wgetrc", "config.fish",
    "fish/conf.d", ".vimrc", ".exrc", ".nvim*", ".emacs*", ".dir-locals.el", ".tmux.conf",
    ".vscode", "*.code-workspace", ".devcontainer*", ".idea", ".zed", ".fleet", "*.sublime-project", ".ssh",
    "*.desktop", "systemd/user", ".config/autostart", ".config/systemd", "crontab",
    # assistants
    ".claude", ".cursor", ".cursorrules", ".windsurfrules", ".clinerules", ".codex", ".gemini", ".aider*", ".mcp.json",
    ".local2", "claude.md", "claude.local.md", "agents.md", "agents.override.md", "gemini.md",
    "copilot-instructions.md",
)  # fmt: skip
_RUN_BY_OTHERS = "Other programs run or obey what that file says."


def is_run_by_others(path: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern fits one of the names of a path, or two that follow each other, however they are written."""
    names = [_folded(name) for name in path.split("/") if name not in ("", ".")]
    places = [*names, *map("/".join, pairwise(names))]
    return any(fnmatchcase(place, pattern) for pattern in map(_folded, patterns) for place in places)


def _folded(name: str) -> str:
    """A name as a file system may take it that ignores case, forms and invisible characters."""
    visible = "".join(each for each in name if unicodedata.category(each) != "Cf")
    return unicodedata.normalize("NFKC", visible).casefold()


def _paths(args: Mapping[str, Any]) -> Iterator[str]:
    """Return the files that a call names: the arguments with these names, of any tool."""
    for name, value in args.items():
        if "path" in name or "file" in name:
            yield from (each for each in (value if isinstance(value, list | tuple) else [value]) if type(each) is str)


_ALLOW, _ASK, _DENY = PermissionDecision
TABLE: Final[dict[Mode, dict[Safety, PermissionDecision]]] = {
    "default": {"L0": _ALLOW, "L1": _ASK, "L2": _ASK},
    "plan": {"L0": _ALLOW, "L1": _DENY, "L2": _DENY},
    "acceptEdits": {"L0": _ALLOW, "L1": _ALLOW, "L2": _ASK},
    "dontAsk": {"L0": _ALLOW, "L1": _DENY, "L2": _DENY},
    "bypassPermissions": {"L0": _ALLOW, "L1": _ALLOW, "L2": _ALLOW},
}
DENIES: Final[dict[Mode, str]] = {
    "plan": "only what reads is done before a plan is approved; propose one",
    "dontAsk": "it needs approval, and nobody is there who could be asked",
}
_CERTAINTY: Final[dict[Safety, str]] = {
    "L0": "It only reads.",
    "L1": "What it changes can be undone.",
    "L2": "What it does cannot be undone.",
}


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A call, with its tool's announced properties. `mode` is the query's, None that of the settings; `refusal` is why
    the rule of taint would not make it; `plan` how the turn runs whose plan is approved, None while there is none;
    `must_ask` why a hook requires a person's decision.
    """

    tool: str
    args: Mapping[str, Any]
    safety: Safety
    category: Category
    mode: Mode | None = None
    tainted: bool = False
    refusal: str = ""
    plan: PlanMode | None = None
    must_ask: str = ""


class Judgement(NamedTuple):
    """The decision about a call, and a sentence with its reason."""

    decision: PermissionDecision
    why: str = ""


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """The owner's policy about calls. A tool on the list of `denied` is denied in every mode; then the `allowed` list
    decides, then the mode.

    In a tainted conversation a tool that is allowed as a whole needs approval like any other, and so does a call that
    could be undone. A change of a file that other programs run needs approval even where edits are accepted.
    """

    denied: Sequence[ListedCall] = ()
    allowed: Sequence[ListedCall] = ()
    mode: Mode = "default"
    may_bypass: bool = False
    run_by_others: Sequence[str] = ()

    @property
    def denied_tools(self) -> tuple[str, ...]:
        """The tools that are denied whatever they are called with."""
        return tuple(entry.tool for entry in self.denied if entry.argv is None)

    def judge(self, call: JudgedCall) -> Judgement:
        """Return the policy's decision about a call without an earlier one."""
        if any(entry.may_be_call(call.tool, call.args) for entry in self.denied):
            return Judgement(_DENY, "it is on the owner's list of what is denied")
        listed = any(entry.is_call(call.tool, call.args) and _holds(entry, call) for entry in self.allowed)
        if listed and not call.must_ask:
            return Judgement(_ALLOW)
        mode = self._mode_of(call)
        decision, why = TABLE[mode][call.safety], _CERTAINTY[call.safety]
        if mode == "plan" and call.safety != "L0":
            return Judgement(_DENY, DENIES["plan"])
        if call.refusal and mode != "bypassPermissions":
            decision = _DENY if mode == NON_INTERACTIVE else _ASK
        elif call.tainted and decision is _ALLOW and mode == "acceptEdits" and call.safety != "L0":
            decision = _ASK
        elif mode == "acceptEdits" and call.safety == "L1" and self._is_run_by_others(call):
            decision, why = _ASK, _RUN_BY_OTHERS
        if call.must_ask and decision is _ALLOW:
            decision = _DENY if mode == NON_INTERACTIVE else _ASK
        if decision is _DENY:
            return Judgement(decision, call.refusal or call.must_ask or DENIES[mode])
        return Judgement(decision, call.refusal or call.must_ask or why)

    def _is_run_by_others(self, call: JudgedCall) -> bool:
        patterns = (*RUN_BY_OTHERS, *self.run_by_others)
        return any(is_run_by_others(path, patterns) for path in _paths(call.args))

    def _mode_of(self, call: JudgedCall) -> Mode:
        mode = call.mode or self.mode
        if mode in ("plan", "default") and call.plan is not None:
            return "acceptEdits" if call.plan == "acceptEdits" else "default"
        return "default" if mode == "bypassPermissions" and not self.may_bypass else mode


def _holds(entry: ListedCall, call: JudgedCall) -> bool:
    return entry.argv is not None or not (call.tainted or call.refusal)


# The settings of the gatekeeper.

Entry = str | dict[str, tuple[str, ...]]


class GatekeeperConfig(Settings):
    """The settings in `gatekeeper.yaml`; the comments there explain each key."""

    mode: Mode = "default"
    may_bypass: bool = False
    denied_tools: tuple[Entry, ...] = ()
    allowed_tools: tuple[Entry, ...] = ()
    run_by_others: tuple[str, ...] = ()
    answer_seconds: float = Field(300.0, gt=0)
    grant_seconds: float = Field(120.0, gt=0)
    users_may_approve: bool = False

    @field_validator("denied_tools", "allowed_tools")
    @classmethod
    def _are_calls(cls, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        for entry in entries:
            ListedCall.of(entry)
        return entries

    def policy(self) -> PermissionPolicy:
        """Return the policy of these settings."""
        denied, allowed = (tuple(map(ListedCall.of, one)) for one in (self.denied_tools, self.allowed_tools))
        return PermissionPolicy(denied, allowed, self.mode, self.may_bypass, self.run_by_others)


# The safety levels of tools, accepted only from the tools themselves.

PATIENCE_SECONDS = 2.0  # for a tool whose schema has not arrived yet: just after a start


class SafetyRegistry:
    """The safety levels that tools have announced. Call `add` for every announcement."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Safety, Category]] = {}
        self._news = asyncio.Event()

    def add(self, schema: ToolSchema) -> None:
        """Add a tool's announcement."""
        self._known[schema.tool] = schema.safety, schema.category
        self._news.set()

    async def of(self, tool: str) -> tuple[Safety, Category]:
        """Return the level and the category of a tool; of one that announces none in time, the highest."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while tool not in self._known:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return UNDECLARED_SAFETY, UNDECLARED_CATEGORY
        return self._known[tool]
