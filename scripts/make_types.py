"""Make `src/local/page/types/local2.d.ts` anew: `python3 scripts/make_types.py`, or `--check` to compare only.

The types of what the page reads and sends are those of the code: every message, every body of a route, the names of
events, the kinds of errors. Run it with the project's Python after a change of one of them; a test compares.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from local.api.http import STATUS
from local.api.stream import FRAGMENTS
from local.bus.envelope import Envelope
from local.bus.message import message_classes
from local.queries.view import EVENT_KINDS

SOURCE = Path(__file__).resolve().parent.parent / "src" / "local"
FILE = SOURCE / "page" / "types" / "local2.d.ts"
HEAD = "// Made by scripts/make_types.py from the code; do not edit.\n"

SENT, TAKEN = "serialization", "validation"  # what is sent has every field, what is taken may leave some out

Schema = dict[str, Any]
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_OF_PYTHON = {str: "string", int: "number", float: "number", bool: "boolean"}
_NAME = re.compile(r"^[A-Za-z_$][\w$]*$")


def types() -> str:
    """The whole file."""
    messages, bodies = sorted(message_classes(), key=_name), list(_bodies())
    parts = [
        HEAD,
        *_interfaces(messages, SENT),
        *_interfaces(bodies, TAKEN),
        _interface("EnvelopeHeader", "An envelope without its payload.", _header()),
        _interface("QueryEvents", "What a query's events carry, by their names.", _events()),
        _interface("Messages", "The messages by their subjects.", {_subject(kind): kind.__name__ for kind in messages}),
        _union("ErrorKind", "What kinds of errors there are.", sorted(STATUS)),
    ]
    return "\n".join(parts)


def type_of(schema: Schema) -> str:
    """A JSON schema as a type."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "const" in schema or "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(each) for each in schema["anyOf"]))
    if schema.get("type") == "array":
        item = type_of(schema.get("items", {}))
        return f"({item})[]" if "|" in item else f"{item}[]"
    if schema.get("type") == "object":
        inside = schema.get("additionalProperties")
        return f"Record<string, {type_of(inside) if isinstance(inside, dict) else 'unknown'}>"
    return _PLAIN.get(schema.get("type", ""), "unknown")


def _interfaces(models: Sequence[type[BaseModel]], mode: Any) -> Iterator[str]:
    """Of models, and of what they are made of."""
    _, schema = models_json_schema([(model, mode) for model in models], by_alias=True)
    for name, found in sorted(schema["$defs"].items()):
        if "properties" not in found:
            yield f"/** {_first_line(found)} */\nexport type {name} = {type_of(found)};\n"
            continue
        fields = found["properties"]
        required = fields if mode == SENT else found.get("required", ())
        yield _interface(
            name, _first_line(found), {key if key in required else f"{key}?": type_of(fields[key]) for key in fields}
        )


def _bodies() -> Iterator[type[BaseModel]]:
    """What routes read."""
    for path in sorted([*(SOURCE / "api").glob("*.py"), *SOURCE.glob("*/routes.py")]):
        module = importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
        for name, value in sorted(vars(module).items()):
            is_own = inspect.isclass(value) and value.__module__ == module.__name__
            if is_own and issubclass(value, BaseModel) and name.endswith("Body"):
                yield value


def _header() -> dict[str, str]:
    hints = get_type_hints(Envelope)
    fields = {}
    for name in (name for name in Envelope._fields if name != "payload"):
        parts = getattr(hints[name], "__args__", (hints[name],))
        optional = "?" if type(None) in parts else ""  # what is null is left out
        fields[name + optional] = " | ".join(_OF_PYTHON[part] for part in parts if part is not type(None))
    return {**fields, "size?": "number", "payload?": "unknown"}


def _events() -> dict[str, str]:
    events = {name: kind.__name__ for kind, name in EVENT_KINDS.items()} | {
        "snapshot": "unknown",
        "response": "unknown",
    }
    events["accepted"] += " & { session_id: string }"
    for fragment in FRAGMENTS:
        events[fragment] += " & { count?: number }"
    return events


def _subject(kind: Any) -> str:
    return f"[subject: `{kind.subject}${{string}}`]" if kind.family_key else json.dumps(kind.subject)


def _interface(name: str, about: str, fields: dict[str, str]) -> str:
    lines = [f"  {_key(key)}: {kind};\n" for key, kind in fields.items()]
    return f"/** {about} */\nexport interface {name} {{\n{''.join(lines)}}}\n"


def _union(name: str, about: str, values: list[str]) -> str:
    lines = [f"\n  | {json.dumps(value)}" for value in values]
    return f"/** {about} */\nexport type {name} ={''.join(lines)};\n"


def _key(key: str) -> str:
    plain = key.removesuffix("?")
    return key if _NAME.match(plain) or not plain[0].isalpha() else key.replace(plain, json.dumps(plain))


def _first_line(schema: Schema) -> str:
    about = str(schema.get("description") or schema.get("title", ""))
    text = " ".join(about.split("\n\n")[0].split())
    return text.replace("*/", "* /")


def _name(kind: type) -> str:
    return kind.__name__


def main() -> int:
    """Write the file, or say whether it is as it would be written."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="Write nothing; fail if the file is not as it should be.")
    made = types()
    if options.parse_args().check:
        return 0 if FILE.exists() and FILE.read_text("utf-8") == made else 1
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
