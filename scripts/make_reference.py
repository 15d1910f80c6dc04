"""Write `docs/reference` from the code: `.venv/bin/python scripts/make_reference.py`, or `--check` to compare only.

Commands come from the command line, configuration keys from `config/*.yaml` and the `Config` classes, HTTP routes from
the OpenAPI document, messages and tools from their classes. Run it after a change of one of them; a test compares.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
import typer.main
import yaml
from pydantic.json_schema import models_json_schema
from starlette.routing import Route

from local.api.app import ApiConfig, ApiParticipant, routed
from local.api.http import STATUS
from local.api.security import Access, access_of
from local.bus.message import Message, message_classes
from local.cli.command_table import COMMANDS
from local.cli.main import new_app
from local.core.capability import OnlyInTerminal, OnPage, capabilities, participants
from local.core.settings_texts import comments, paragraphs
from local.generator.steps import TABLE
from local.journal.server import Journal
from local.run.settings_files import OF_ALL
from local.runtime.participant import EVERYBODY, declaration_of
from local.tools.group import ToolGroup
from local.tools.tool import Tool

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
MADE = "\n\n<!-- Made by scripts/make_reference.py from the code; do not edit. -->\n"  # below the title
COMMON_FROM = 12  # an option that so many commands have is described once
LONGEST_DEFAULT = 60  # characters; a longer default is only in the file

Schema = dict[str, Any]


def pages() -> dict[str, str]:
    """Every generated page by its file name."""
    made = {
        "commands.md": commands(),
        "configuration.md": configuration(),
        "http.md": http(),
        "messages.md": messages(),
        "on-the-page.md": on_the_page(),
        "tools.md": tools(),
        "turn.md": turn(),
    }
    titled = {name: text.replace("\n", MADE, 1) for name, text in made.items()}
    return {name: re.sub(r"\n{3,}", "\n\n", text).strip() + "\n" for name, text in titled.items()}


# Commands.


def commands() -> str:
    """Every command with its arguments and options, under the headings of `local2 --help`."""
    found = list(_commands())
    seen = Counter(_option_key(option) for _, _, command in found for option in _options(command))
    common = {key for key, count in seen.items() if count >= COMMON_FROM}
    parts = [
        "# Commands",
        "Every command prints its help with `--help`. [In a terminal](../how-to/terminal.md) shows how they are used.",
        "## Options of many commands",
        _table(("option", "meaning"), sorted(common)),
    ]
    for section in dict.fromkeys(section for section, _, _ in found):
        parts += [f"## {section}"] if section else []
        for path, command in ((path, command) for each, path, command in found if each == section):
            parts += [f"### `{path}`", f"    {_usage(path, command)}", _plain(command.help)]
            arguments = [(f"`{each.metavar or each.name.upper()}`", _plain(each.help)) for each in _arguments(command)]
            own = [key for key in map(_option_key, _options(command)) if key not in common]
            parts.append(_table(("argument or option", "meaning"), [*(row for row in arguments if row[1]), *own]))
    return "\n\n".join(parts)


def _commands() -> Iterator[tuple[str, str, Any]]:
    """Section, words and command of every command that the help shows."""
    for name, entry in COMMANDS.items():
        module, _, attribute = str(getattr(entry, "target", entry)).partition(":")
        found, app = getattr(importlib.import_module(module), attribute), new_app()
        app.callback()(lambda: None)
        app.add_typer(found, name=name) if isinstance(found, typer.Typer) else app.command(name)(found)
        command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
        if not any(name in getattr(each, "hidden", ()) for each in capabilities().values()):
            yield from ((str(getattr(entry, "section", "")), *each) for each in _within(f"local2 {name}", command))


def _within(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None or command.invoke_without_command:
        yield path, command
    for name, each in (inner or {}).items():
        if not each.hidden:
            yield from _within(f"{path} {name}", each)


def _arguments(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "argument"]


def _options(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "option" and not each.hidden]


def _usage(path: str, command: Any) -> str:
    words = [path, *(["[OPTIONS]"] if _options(command) else [])]
    for each in _arguments(command):
        name = (each.metavar or each.name.upper()).strip("[]")
        words.append(name if each.required else f"[{name}]")
    return " ".join(words)


def _option_key(option: Any) -> tuple[str, str]:
    value = f" {option.metavar or option.type.name.upper()}" if not option.is_flag else ""
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    default = option.default
    shown = (
        f" Default: `{default}`." if isinstance(default, (int, float, str)) and default and default is not True else ""
    )
    return names + (f" `{value.strip()}`" if value else ""), _plain(option.help) + shown


# Where the page does what commands do.


def on_the_page() -> str:
    """Every command with the screen and the control of the page that do the same, or the reason why there is none."""
    found = [(section, path, place_of(path)) for section, path, _ in _commands()]
    parts = [
        "# Commands on the page",
        "Where [the page](../how-to/use-the-page.md) does what [a command](commands.md) does in a terminal. The address"
        " follows that of the page, as in `http://127.0.0.1:8765/#/memory/soul`. Words *like these* are on the page.",
    ]
    for section in dict.fromkeys(section for section, _, _ in found):
        rows = [
            (f"`{path}`", f"`#/{'' if place.address == 'chat' else place.address}`", place.control)
            for each, path, place in found
            if each == section and isinstance(place, OnPage)
        ]
        parts += [f"## {section}", _table(("command", "address", "what does it there"), rows)] if rows else []
    rest = [(f"`{path}`", place.reason) for _, path, place in found if isinstance(place, OnlyInTerminal)]
    parts += ["## Only in a terminal", _table(("command", "why"), rest)]
    return "\n\n".join(parts)


def place_of(path: str) -> OnPage | OnlyInTerminal:
    """Where the page does what `local2 memory pin` does. Raises `LookupError` where its registration does not say."""
    _, name, *words = path.split()
    place = COMMANDS[name].places().get(" ".join(words))
    if place is None:
        raise LookupError(f"`{path}` does not say where the page does the same: add it to `on_page` of its `Command`")
    return place


# Configuration.


def configuration() -> str:
    """Every key of every file of settings, with its default, its type and its comment."""
    parts = [
        "# Configuration",
        "Settings are YAML files in your settings folder: `~/.config/local2` on Linux, or the folder that"
        " `--config-dir` or `LOCAL2_CONFIG_DIR` names. Write only the keys that you change: LoCAL2's own `config/` has"
        " the defaults, and your file is merged over them, mapping by mapping. A wrong key or value is reported in one"
        " line with file, line, key and what would be right. Settings are read when a participant starts: run"
        " `local2 restart NAME` after a change; after one of `system.yaml` or `models.yaml` start LoCAL2 again.",
    ]
    for file in sorted((ROOT / "config").glob("*.yaml")):
        head, keys = comments(file.read_text("utf-8"))
        values, types = yaml.safe_load(file.read_text("utf-8")), _types(file.stem)
        parts += [f"## {file.name}", *_prose(head)]
        for names, comment in keys:
            defaults = [f"{_default(values[name])}, {types[name]}" for name in names]
            parts.append("### " + ", ".join(f"`{name}`" for name in names))
            parts.append("Default: " + ("; ".join(dict.fromkeys(defaults))) + ".")
            parts += _prose(comment)
    parts += ["## Environment variables", _table(("variable", "meaning"), list(VARIABLES.items()))]
    return "\n\n".join(parts)


VARIABLES = {
    "`LOCAL2_CONFIG_DIR`": "The settings folder, where no `--config-dir` is given.",
    "`LOCAL2_DATA_DIR`": "The data directory, where no `--data-dir` is given.",
    "`LOCAL2_API_TOKEN`": "The owner's token for HTTP, in place of the file `api_token` in the data directory.",
    "`OLLAMA_HOST`": "Where Ollama listens, where `ollama_url` in `system.yaml` is not set.",
    "`BRAVE_API_KEY`, `TAVILY_API_KEY`": "Keys of search engines; they override those in `web_search.yaml`.",
    "`GEMINI_API_KEY`, `GOOGLE_API_KEY`": "The key for `backend: google_genai`.",
    "`HF_TOKEN`": "Your token for models on the Hugging Face Hub that are not public.",
    "`NO_COLOR`, `ACCESSIBLE`": "No colours; no colours and no moving lines, for a screen reader.",
}


def _types(name: str) -> dict[str, str]:
    """The types of the keys of a file, by key."""
    others: Mapping[str, Any] = {**OF_ALL, "api": ApiConfig}
    model = Journal.Config if name == "journal" else others.get(name)
    schema = (model or _class(participants()[name]).Config).model_json_schema()
    return {key: _type(each, schema.get("$defs", {})) for key, each in schema["properties"].items()}


def _default(value: Any) -> str:
    shown = yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix("\n...\n").strip()
    return f"`{shown}`" if len(shown) <= LONGEST_DEFAULT else "see the file"


def _prose(lines: Sequence[str]) -> Iterator[str]:
    for each in paragraphs(lines):
        yield re.sub(r"^(?! )(.*)", _linked, each)


def _linked(found: re.Match[str]) -> str:
    return re.sub(r"See docs/(\S+)\.md", r"See [this page](../\1.md)", found[0])


# HTTP.

WHO = {
    Access.ANYBODY: "anybody",
    Access.USERS: "users, each for what is theirs",
    Access.OWNER: "the owner",
    Access.TOKEN: "the owner, with the token",
}


def http() -> str:
    """Every route with its parameters and its body, and the kinds of errors."""
    app = routed()
    access = {
        (method, route.path): access_of(route)
        for route in app.routes
        if isinstance(route, Route)
        for method in route.methods or ()
    }
    document = app.openapi()
    defs = document.get("components", {}).get("schemas", {})
    routes: dict[str, list[str]] = {}
    index: list[tuple[str, str]] = []
    for path, methods in document["paths"].items():
        for method, each in methods.items():
            name = f"{method.upper()} {path}"
            about = _plain(each.get("description"))
            index.append((f"`{name}`", _first_sentence(about)))
            who = WHO[access.get((method.upper(), path), Access.USERS)]
            body = each.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            group = routes.setdefault(path.split("/")[1] or "page", [])
            group += [f"### `{name}`", about, f"For {who}.", _parameters(each, defs), *_body(body, defs)]
    errors: dict[int, list[str]] = {}
    for kind, status in STATUS.items():
        errors.setdefault(status, []).append(f"`{kind}`")
    parts = [
        "# HTTP routes",
        "[HTTP: conventions, events and examples](http-guide.md) says who may ask, what a stream carries and what"
        " answers look like. `GET /openapi.json` is the document that this page is made of.",
        "## All routes",
        _table(("route", "what it does"), [*index, ("`GET /openapi.json`", "The OpenAPI document")]),
        "## Errors",
        'Every error is `{"error": {"kind": "…", "message": "…"}}`. Under `/v1/` it has the form of OpenAI\'s errors,'
        " with `kind` as `code`, and 400 in place of 422. A kind that is not listed is 502 if a query ended with it,"
        " else 500.",
        _table(("status", "kinds"), [(str(status), ", ".join(sorted(errors[status]))) for status in sorted(errors)]),
    ]
    for name, lines in routes.items():
        parts += [f"## {name}", *lines]
    return "\n\n".join(filter(None, parts))


def _parameters(route: Schema, defs: Schema) -> str:
    rows = []
    for each in route.get("parameters", []):
        schema = each["schema"]
        default = f", default `{json.dumps(schema['default'])}`" if schema.get("default") is not None else ""
        rows.append((f"`{each['name']}`", each["in"], _type(schema, defs) + default))
    return _table(("parameter", "in", "type"), rows)


def _body(schema: Schema, defs: Schema) -> Iterator[str]:
    own = schema.get("$defs", {})
    yield _plain(schema.get("description"))
    yield _fields(schema, {**defs, **own})
    yield from _objects(own)


# Messages.


def messages() -> str:
    """Every message by the capability that it belongs to, the objects in their fields, and who publishes what."""
    parts = [
        "# Messages",
        "Everything that is said on the bus. [The protocol](protocol.md) has the frame and the header, and says what"
        " `confirmed`, `recorded` and `ephemeral` mean. A description begins with who publishes"
        " the message, and when. A subject that ends in `<…>` is a family: one subject for each value of"
        " that field. A field with a default may be left out.",
        "## All messages",
    ]
    rows = [
        (f"[`{_subject(kind)}`](#{_anchor(kind)})", kind.__name__, str(kind.delivery)) for kind in message_classes()
    ]
    parts.append(_table(("subject", "class", "delivery"), rows))
    _, schema = models_json_schema([(kind, "validation") for kind in message_classes()], by_alias=True)
    objects = schema["$defs"]
    for name, capability in capabilities().items():
        kinds = [kind for kind in message_classes() if kind.__module__ in capability.messages]
        parts += [f"## {name}"] if kinds else []
        for kind in sorted(kinds, key=lambda kind: kind.subject):
            parts += [f"### `{_subject(kind)}`", f"{kind.__name__}, {kind.delivery}. {_plain(inspect.getdoc(kind))}"]
            parts.append(_fields(objects.pop(kind.__name__), schema["$defs"]))
    parts += ["## Objects in the fields", *_objects(objects)]
    said = [(f"`{name}`", ", ".join(f"`{each}`" for each in _publishes(kind))) for name, kind in _publishers()]
    parts += [
        "## Publishers",
        "A message whose sender has not declared its subject is refused ([protocol](protocol.md#publishers))."
        " Every participant may also publish `participant.status`, `bus.gap`, `bus.dead` and `bus.probe.*`; one with"
        " durable handlers also `journal.attach`, `journal.detach`, `journal.ack`, `journal.failed`, `journal.hurry`"
        " and `journal.working`.",
        _table(("participant", "publishes"), said),
    ]
    return "\n\n".join(parts)


CONSUMING = {f"journal.{word}" for word in ("attach", "detach", "ack", "failed", "hurry", "working")}


def _publishers() -> Iterator[tuple[str, Any]]:
    ours = {name: _class(target) for name, target in participants().items()}
    yield from sorted({**ours, "journal": Journal, "api": ApiParticipant}.items())


def _publishes(kind: Any) -> Iterator[str]:
    said = declaration_of(kind).says - {message.subject for message in EVERYBODY} - CONSUMING
    yield from (re.sub(r"\.$", ".*", subject) for subject in sorted(said))


def _subject(kind: type[Message]) -> str:
    return f"{kind.subject}<{kind.family_key}>" if kind.family_key else kind.subject


def _anchor(kind: type[Message]) -> str:
    return re.sub(r"[^\w-]", "", _subject(kind))


# Tools and the turn.


def tools() -> str:
    """Every tool that LoCAL2 brings, by the participant that serves it."""
    rows: dict[str, tuple[str, ...]] = {}
    for name, kind in _publishers():
        for each in kind.tools if issubclass(kind, ToolGroup) else (kind,) if issubclass(kind, Tool) else ():
            about = _first_sentence(inspect.getdoc(each))
            rows.setdefault(each.name, (f"`{each.name}`", each.safety, each.category, about, f"`{name}`"))
    return "\n\n".join(
        [
            "# Tools",
            "Which of these a model is offered depends on its size and on what there is to work on"
            " ([tools of a turn](../explanation/turn.md#tools)). The level says what a call may do and whether a person"
            " is asked ([permissions](../explanation/permissions.md#levels)).",
            _table(("tool", "level", "category", "what the model is told", "participant"), list(rows.values())),
        ]
    )


def turn() -> str:
    """The states of a turn."""
    rows = [
        (f"`{before}`", f"`{action}`", f"`{after}`") for before, row in TABLE.items() for action, after in row.items()
    ]
    return "\n\n".join(
        [
            "# States of a turn",
            "Whatever is not in this table raises and changes nothing. Each change is published as `agent.transition`."
            " [The turn](../explanation/turn.md) says what the states mean.",
            _table(("state", "action", "next state"), rows),
        ]
    )


# What the pages share.


def _class(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _objects(defs: Schema) -> Iterator[str]:
    """What objects within fields hold."""
    for name, each in sorted(defs.items()):
        if "properties" in each:
            yield f"**{name}**: {_plain(each.get('description'))}"
            yield _fields(each, defs)


def _fields(schema: Schema, defs: Schema) -> str:
    rows, required = [], schema.get("required", [])
    for name, each in schema.get("properties", {}).items():
        default = (
            "required" if name in required else f"`{json.dumps(each.get('default'))}`" if "default" in each else ""
        )
        rows.append((f"`{name}`", _type(each, defs), default))
    return _table(("field", "type", "default"), rows)


_PLAIN = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "null"}


def _type(schema: Schema, defs: Schema) -> str:
    """A JSON schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _type(defs[name], defs) if "enum" in defs.get(name, {}) else name
    if "const" in schema or "enum" in schema:
        return _or(f"`{json.dumps(each)}`" for each in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema or "allOf" in schema:
        return _or(dict.fromkeys(_type(each, defs) for each in schema.get("anyOf") or schema["allOf"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}), defs)}"
    if schema.get("type") == "object":
        inside = schema.get("additionalProperties")
        return f"mapping to {_type(inside, defs)}" if isinstance(inside, dict) else "object"
    bounds = [f"{word} {schema[key]}" for key, word in _BOUNDS.items() if key in schema]
    return _PLAIN.get(schema.get("type", ""), "anything") + (f" ({', '.join(bounds)})" if bounds else "")


_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


def _or(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _plain(text: str | None) -> str:
    return " ".join((text or "").split())


def _first_sentence(text: str | None) -> str:
    return _plain(text).split(". ")[0].removesuffix(".")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows] if rows else []
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines)


def main() -> int:
    """Write the pages, or say which are not as they would be written."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="Write nothing; fail if a page is not current.")
    check = options.parse_args().check
    stale = [name for name, text in pages().items() if not _is(FOLDER / name, text)]
    for name in stale:
        if check:
            print(
                f"docs/reference/{name} is not current: run .venv/bin/python scripts/make_reference.py", file=sys.stderr
            )
        else:
            (FOLDER / name).write_text(pages()[name], encoding="utf-8")
            print(f"wrote docs/reference/{name}")
    return 1 if check and stale else 0


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text("utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
