"""`local2 ask` and `local2 chat`."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any, get_args
from urllib.parse import quote

import typer

from local.bus.vocabulary import NON_INTERACTIVE, Mode
from local.cli.approvals import ApprovalPrompt
from local.cli.client import AnsweringSystem
from local.cli.conversation import ExitStatus, ask, trusted_current_folder
from local.cli.main import ApiOption, ConfigDir, DataDir, complain, write_lines
from local.cli.renderer import JsonRenderer, PlainRenderer, Renderer
from local.core.data_dir import NotRunning
from local.core.environment import environment
from local.core.errors import BadQuestion, NoApi
from local.core.text import STANDARD_INPUT, as_utf8, utf8_text

if TYPE_CHECKING:
    from local.cli.client import SystemClient

Session = Annotated[str | None, typer.Option("--session", "-s", metavar="ID", help="Ask in this conversation.")]
Continue = Annotated[bool, typer.Option("--continue", "-c", help="Ask in the conversation used last.")]
Resume = Annotated[
    str | None, typer.Option(metavar="ID", help="Ask in this existing conversation; the beginning of its id is enough.")
]
Incognito = Annotated[
    bool, typer.Option("--incognito", "--stateless", help="Store and remember nothing of this conversation.")
]
Think = Annotated[str, typer.Option(help="How to show what the model thinks: show, fold or hide.")]
NoStart = Annotated[bool, typer.Option("--no-start", help="Fail if no system runs, instead of starting one.")]
Model = Annotated[
    str | None, typer.Option(metavar="NAME", help="The model that answers in this conversation from now on.")
]
Attach = Annotated[
    list[str] | None, typer.Option(metavar="FILE", help="Attach a file; - is the standard input. Can be repeated.")
]
NoTools = Annotated[bool, typer.Option("--no-tools", help="Answer without any tool.")]
Allow = Annotated[
    list[str] | None, typer.Option(metavar="TOOL", help="Offer the model only this tool. Can be repeated.")
]
Deny = Annotated[
    list[str] | None, typer.Option(metavar="TOOL", help="Do not offer the model this tool. Can be repeated.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show everything: thinking, states, whole results of tools, tokens.")
]
ModeOption = Annotated[
    str | None,
    typer.Option("--mode", metavar="MODE", help="What happens to calls that need approval: default, plan, …"),
]
ProfileOption = Annotated[
    str | None, typer.Option("--profile", metavar="NAME", help="The kind of assistant that answers: code, …")
]
THINKING = ("show", "fold", "hide")
MODES = get_args(Mode)
STDIN = "-"


def ask_once(
    question: Annotated[
        list[str] | None, typer.Argument(metavar="QUESTION", help="The question; by default the standard input.")
    ] = None,
    session: Session = None,
    last: Continue = False,
    resume: Resume = None,
    attach: Attach = None,
    model: Model = None,
    no_tools: NoTools = False,
    allow: Allow = None,
    deny: Deny = None,
    mode: ModeOption = None,
    profile: ProfileOption = None,
    think: Think = "fold",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the answer.")] = False,
    print_only: Annotated[bool, typer.Option("--print", "-p", help="For scripts: plain text, no questions.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every event as a line of JSON.")] = False,
    verbose: Verbose = False,
    incognito: Incognito = False,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop the answer after this time.", min=0.1)
    ] = None,
    query_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Ask this query again: join it, or get its answer.")
    ] = None,
    no_start: NoStart = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Ask one question and print the answer.

    Piped input is a file that the question is about; without a question, it is the question. The answer goes to the
    standard output, all else to the error output. Exit status: 0 answered, 1 failed, 2 bad use, 75 try again later,
    130 interrupted.
    """
    _check_told(think, verbose=verbose, less=quiet or as_json)
    tools = tools_of(allow, deny, none=no_tools)
    text, piped = _question_of(question or [], attach or [])
    with _system(api, data_dir, model, may_start=not no_start) as system:
        client = _found(system)
        approvals = None if print_only or as_json or not _is_somebody_there() else approvals_of(system)
        others = {"attachments": _attachments(client, attach or [], piped), "mode": mode_of(mode, asks=bool(approvals))}
        others |= {"session_id": session_of(client, session, resume, last=last), "profile": profile}
        body = _body(text, query_id or token_hex(16), tools=tools, incognito=incognito, model=model, **others)
        renderer = _renderer(think, quiet=quiet, plain=print_only, as_json=as_json, verbose=verbose)
        raise typer.Exit(ask(system.find_again, body, renderer, complain, timeout, approvals=approvals))


def chat(
    session: Session = None,
    last: Continue = False,
    resume: Resume = None,
    model: Model = None,
    no_tools: NoTools = False,
    allow: Allow = None,
    deny: Deny = None,
    mode: ModeOption = None,
    profile: ProfileOption = None,
    think: Think = "fold",
    verbose: Verbose = False,
    incognito: Incognito = False,
    no_start: NoStart = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Chat in this terminal. Ctrl-C stops an answer, Ctrl-D ends the chat, /help lists the commands."""
    from local.cli.chat import Chat, ChatOptions

    _check_thinking(think)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadQuestion("chat needs a terminal; `local2 ask` takes a question from a pipe")
    tools = tools_of(allow, deny, none=no_tools)
    with _system(api, data_dir, model, may_start=not no_start) as system:
        chosen = session_of(system.find(), session, resume, last=last)
        chosen, mode = chosen or token_hex(16), mode_of(mode, asks=True)
        options = ChatOptions(chosen, think, incognito, tools, verbose, mode, profile, model)  # type: ignore[arg-type]
        raise typer.Exit(Chat(system, options).run())


def trace(
    query_id: Annotated[str, typer.Argument(metavar="QUERY", help="Id of a query, as `local2 journal show` shows it.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every message.")] = False,
    send: Annotated[bool, typer.Option("--send", help="Send it to the OpenTelemetry collector in otel.yaml.")] = False,
    otlp: Annotated[
        str | None, typer.Option(metavar="URL", help="Send it to this collector, such as http://127.0.0.1:4318.")
    ] = None,
    api: ApiOption = None,
    data_dir: DataDir = None,
    config_dir: ConfigDir = None,
) -> None:
    """Show how the time of a query was spent: waiting, model, tools, memory. Or send it to an OpenTelemetry collector.

    Example: local2 trace q2 --otlp http://127.0.0.1:4318
    """
    from local.cli.render import waterfall

    with AnsweringSystem(api, data_dir, may_start=False, flags=()) as system:
        found = system.find().trace(query_id)
        if send or otlp is not None:
            from local.core.config import layers_for
            from local.core.environment import data_dir as find_data_dir
            from local.queries.otlp import load_otel
            from local.queries.otlp import send as send_trace

            config = load_otel(layers_for(config_dir), find_data_dir(data_dir), otlp)
            answer = system.find().answer(query_id) if config.content else None
            lines: Iterable[str] = [f"sent {send_trace(found, config, answer)} spans to {config.url}"]
        else:
            lines = [json.dumps(found, ensure_ascii=False)] if as_json else waterfall(found)
    write_lines(lines)


def _system(api: str | None, data_dir: Path | None, model: str | None, *, may_start: bool) -> AnsweringSystem:
    """Return the system that is asked. If it has to be started, it works in the current folder, provided that the
    folder is trusted.
    """
    here = trusted_current_folder(complain) if api is None else None
    return AnsweringSystem(api, data_dir, may_start=may_start, flags=_flags(model), workspace=here)


def _found(system: AnsweringSystem) -> SystemClient:
    try:
        return system.find()
    except (NotRunning, NoApi) as error:
        complain(str(error))
        raise typer.Exit(ExitStatus.TRY_AGAIN) from None


def tools_of(allow: list[str] | None, deny: list[str] | None, *, none: bool) -> dict[str, list[str] | None]:
    """Return the `tools` field of POST /query; empty if all tools may be used. Raises `BadQuestion`."""
    if none and (allow or deny):
        raise BadQuestion("--no-tools cannot be combined with --allow or --deny")
    if none:
        return {"allow": []}
    return {name: names for name, names in (("allow", allow), ("deny", deny)) if names}


def _is_somebody_there() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def mode_of(wanted: str | None, *, asks: bool) -> str | None:
    """Return the `mode` field of POST /query; the default without a terminal is not to ask. Raises `BadQuestion`."""
    if wanted is not None and wanted not in MODES:
        raise BadQuestion(f"--mode {wanted!r} is not one of {', '.join(MODES)}")
    return wanted or (None if asks else NON_INTERACTIVE)


def approvals_of(system: AnsweringSystem, keep: Callable[[str], object] = lambda text: None) -> ApprovalPrompt:
    """Return the prompt for approvals on this terminal."""

    def decide(call_id: str, body: dict[str, Any]) -> None:
        with system.find_again() as client:
            client.request("POST", f"/approvals/{quote(call_id, safe='')}", body)

    return ApprovalPrompt(decide, _write, keep)


def _body(query: str, query_id: str, **others: Any) -> dict[str, Any]:
    return {"query": query, "query_id": query_id, **{key: value for key, value in others.items() if value}}


def session_of(client: SystemClient, session: str | None, resume: str | None, *, last: bool) -> str | None:
    """The conversation that was chosen; None for a new one. Raises `BadQuestion`, `NoAnswer`."""
    if sum((session is not None, resume is not None, last)) > 1:
        raise BadQuestion("give one of --session, --resume and --continue")
    if resume is not None:
        resume = client.whole_id(resume)
        client.session(resume)
    if not last:
        return session or resume
    sessions = [each for each in client.sessions() if not each["incognito"]]
    if not sessions:
        raise BadQuestion("there is no conversation to continue")
    return str(sessions[0]["session_id"])


def _question_of(words: Sequence[str], attach: Sequence[str]) -> tuple[str, bytes | None]:
    """Return the question with the piped input. Raises `BadQuestion`, `NotUtf8`."""
    text = " ".join(words).strip()
    as_utf8(text)
    reads = STDIN in attach or not sys.stdin.isatty()
    piped = sys.stdin.buffer.read() if reads else b""
    if text:
        return text, piped or None
    if STDIN in attach or not piped.strip():
        raise BadQuestion("the question is missing: pass it as an argument, or pipe it in")
    return utf8_text(piped, STANDARD_INPUT).strip(), None


def _attachments(client: SystemClient, files: Sequence[str], piped: bytes | None) -> list[str]:
    contents = [(Path(name).name, _content(name)) for name in files if name != STDIN]
    contents += [("stdin.txt", piped)] if piped else []
    return [str(client.attach(name, content)["id"]) for name, content in contents]


def _content(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise BadQuestion(f"{name} cannot be read: {error.strerror}") from None


def _renderer(think: str, *, quiet: bool, plain: bool, as_json: bool, verbose: bool) -> Renderer:
    if as_json:
        return JsonRenderer(_write)
    if plain or not sys.stdout.isatty() or is_plain():
        return plain_renderer((lambda text: None) if quiet else _note, verbose=verbose)
    return terminal_renderer(think, quiet=quiet, verbose=verbose)


def is_plain() -> bool:
    """Whether nothing may move on this terminal."""
    variables = environment()
    return variables.wants_plain_text or variables.terminal in (None, "dumb")


def plain_renderer(note: Callable[[str], object], *, verbose: bool = False) -> Renderer:
    """Return the renderer that writes the answer to the standard output, and with `note` the steps before it."""
    renderer = PlainRenderer(_write, note)
    return _verbose(renderer, lambda line: note(f"{line}\n")) if verbose else renderer


def terminal_renderer(think: str, *, quiet: bool = False, verbose: bool = False) -> Renderer:
    """The renderer that writes to the terminal."""
    from local.cli.render import BlockStyle, TerminalRenderer

    style = BlockStyle(colour=not environment().wants_no_colour)
    width = lambda: shutil.get_terminal_size().columns  # noqa: E731 - as short as that
    shown: Any = "hide" if verbose else think
    renderer = TerminalRenderer(_write, width, style, thinking=shown, quiet=quiet)
    return _verbose(renderer, renderer.print_note) if verbose else renderer


def _verbose(renderer: Renderer, tell: Callable[[str], object]) -> Renderer:
    from local.cli.render import VerboseRenderer

    return VerboseRenderer(renderer, tell)


def _check_thinking(think: str) -> None:
    if think not in THINKING:
        raise typer.BadParameter(f"{think!r} is not one of {', '.join(THINKING)}", param_hint="--think")


def _check_told(think: str, *, verbose: bool, less: bool) -> None:
    _check_thinking(think)
    if verbose and less:
        raise BadQuestion("--verbose cannot be combined with --quiet or --json")


def _flags(model: str | None) -> list[str]:
    return ["--model", model] if model else []


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _note(line: str) -> None:
    sys.stderr.write(line)
    sys.stderr.flush()
