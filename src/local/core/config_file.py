"""One YAML file of settings: its values, and the line of each key."""

from __future__ import annotations

import difflib
import io
import ipaddress
import os
import re
import shutil
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from pydantic_core import ErrorDetails
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from local.core.errors import ConfigError, refused_by_disk
from local.core.shipped import shipped_dir

# Whether an address is in the user's own network, or outside.

# Written out, because the flags of Python's ipaddress differ between its versions.
_OWN_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16",
        "100.64.0.0/10",  # not reachable from outside; where overlay networks such as Tailscale have their addresses
        "::1/128", "fc00::/7", "fe80::/10",
    )
)  # fmt: skip
_UNSPECIFIED = ("0.0.0.0", "::")
_NUMBER = re.compile(r"\d+|0[xX][0-9a-fA-F]*")
_NOT_HOME = "255.255.255.255"
_OWN_SUFFIXES = ("localhost", "local", "lan", "home.arpa", "internal")


def is_cloud(address: str) -> bool:
    """Whether content sent to this address leaves the user's own machines, judged by the address alone; no name is
    resolved.

    `address` is a URL or host[:port]; a name without a dot, or under `.local`, `.lan` and the like, is local.
    """
    host = _host(address)
    if not host.isascii():
        return True  # a resolver may read other digits and other dots there than are to be seen
    try:
        ip = ipaddress.ip_address(_plain_number(host) or host)
    except ValueError:
        return "." in host and not any(host.endswith(f".{suffix}") for suffix in _OWN_SUFFIXES)
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped:
        ip = ip.ipv4_mapped
    return str(ip) not in _UNSPECIFIED and not any(ip in network for network in _OWN_NETWORKS)


def _plain_number(host: str) -> str | None:
    """Return an IPv4 address in another notation, as 134744072 or 0x8.010.8, as four decimal numbers; None for a name.
    The last part decides, as in resolvers: that of a name is not a number.
    """
    if not _NUMBER.fullmatch(host.rpartition(".")[2]):
        return None
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return _NOT_HOME  # no address at all, and certainly none in this house


def _host(address: str) -> str:
    rest = address.strip().rpartition("://")[2]
    try:
        return str(ipaddress.ip_address(rest))
    except ValueError:
        pass
    try:
        return (urlsplit(f"//{rest}").hostname or "").rstrip(".")
    except ValueError:
        return ""  # the connection reports the fault


KeyPath = tuple[str | int, ...]

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20
MAX_VALUES = 10_000
_MERGE_KEY, _MERGE_TAG = "<<", "tag:yaml.org,2002:merge"


@dataclass(frozen=True)
class ConfigFile:
    """The settings in one file. `lines` are counted from 1; an empty or missing file has no values."""

    path: Path
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)


def read(path: Path) -> ConfigFile:
    """Read one file; one that does not exist is empty. Raises `ConfigError`, which names file, line and fault.

    A known text is not parsed again, and its values are the same objects: do not change them.
    """
    return _parsed(path, _text(path))


def parse(path: Path, text: str) -> ConfigFile:
    """Parse the text of a settings file; `path` is for error messages."""
    return _parsed(path, text)


@lru_cache(maxsize=64)  # so that children need not parse what the template has read
def _parsed(path: Path, text: str) -> ConfigFile:
    try:
        loader, node = _composed(path, text)
        if node is None:
            return ConfigFile(path)
        if not isinstance(node, MappingNode):
            raise settings_fault(path, _line(node), "expected settings, each as 'key: value'")
        lines = dict(_Index(path).walk(node))
        return ConfigFile(path, loader.construct_document(node), lines)
    except yaml.MarkedYAMLError as error:
        raise _invalid(path, error) from None
    except yaml.reader.ReaderError as error:
        raise settings_fault(
            path, text.count("\n", 0, error.position) + 1, f"not valid YAML: {_first_line(error)}"
        ) from None
    except yaml.YAMLError as error:
        raise settings_fault(path, None, f"not valid YAML: {_first_line(error)}") from None
    except RecursionError:
        raise settings_fault(path, None, f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise settings_fault(path, None, f"a value is invalid: {str(error).partition(';')[0]}") from None


def _composed(path: Path, text: str) -> tuple[yaml.SafeLoader, Node | None]:
    """Parse shipped files with libyaml, if available, in a tenth of the time. Users' files are not: thousands of
    nested brackets would crash the process.
    """
    if path.parent == shipped_dir() / "config":
        with suppress(yaml.YAMLError):  # PyYAML words the same error differently
            fast = _FastLoader(text)
            return fast, fast.get_single_node()
    loader = _Loader(text)
    return loader, loader.get_single_node()


def settings_fault(path: Path, line: int | None, what: str) -> ConfigError:
    """Return the error that names the fault `what`, the file relative to the current folder, and the line. Invisible
    characters are shown as their codes.
    """
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    told = what if what.isprintable() else "".join(map(_visible, what))
    return ConfigError(f"{shown}:{line}: {told}" if line else f"{shown}: {told}")


def _visible(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


class _Loader(yaml.SafeLoader):
    """A SafeLoader that reads dates as text: no setting is a date, and an impossible date would raise."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - how PyYAML has its dialects declared
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node as SafeLoader does, which takes seconds to exhaust the stack with thousands of brackets.
        Raises `RecursionError`.
        """
        if self._depth > 2 * MAX_DEPTH:  # merged settings are nested without a key of their own
            raise RecursionError
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _FastLoader(getattr(yaml, "CSafeLoader", _Loader)):  # type: ignore[misc]  # PyYAML may come without libyaml
    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


class _Index:
    """A walk through a document as it will be after its aliases are expanded, so that it also notices an alias bomb."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values = 0

    def walk(self, node: Node, at: KeyPath = ()) -> Iterator[tuple[KeyPath, int]]:
        """Yield path and line of every value. Raises `ConfigError` for duplicate keys, and for too many or too deep."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise settings_fault(
                self._path, _line(node), f"more than {MAX_VALUES} values, counting what aliases repeat"
            )
        if len(at) > MAX_DEPTH:
            raise settings_fault(self._path, _line(node), f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, SequenceNode):
            for index, item in enumerate(node.value):
                yield (*at, index), _line(item)
                yield from self.walk(item, (*at, index))
        elif isinstance(node, MappingNode):
            for key, (line, value) in self._keys(node).items():
                yield (*at, key), line
                yield from self.walk(value, at if key == _MERGE_KEY else (*at, key))

    def _keys(self, node: MappingNode) -> dict[str, tuple[int, Node]]:
        found: dict[str, tuple[int, Node]] = {}
        for key_node, value in node.value:
            line = _line(key_node)
            if not isinstance(key_node, ScalarNode) or key_node.tag not in ("tag:yaml.org,2002:str", _MERGE_TAG):
                raise settings_fault(
                    self._path, line, "expected a name as the key; put it in quotes if it is meant as text"
                )
            key = str(key_node.value)
            if key in found:
                raise settings_fault(
                    self._path, line, f"{key}: given twice, first on line {found[key][0]}; keep one of them"
                )
            found[key] = (line, value)
        return found


def _first_line(error: yaml.YAMLError) -> str:
    return str(error).splitlines()[0]


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        if (other := path.with_suffix(".yml")).exists():
            raise settings_fault(other, None, f"ignored under this name; rename it to {path.name}") from None
        return ""
    except OSError as error:
        raise settings_fault(path, None, f"cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise settings_fault(path, None, f"larger than {MAX_BYTES // 1024} kB; settings are smaller")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise settings_fault(path, line, "not UTF-8 text; save the file in that encoding") from None


def _invalid(path: Path, error: yaml.MarkedYAMLError) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "not valid YAML"
    if "'\\t'" in problem:
        problem = "a tab; indent with spaces"
    if mark is None:
        return settings_fault(path, None, problem)
    return settings_fault(path, mark.line + 1, f"column {mark.column + 1}: {problem}")


# Changes settings in a user's file, and leaves everything else unchanged: comments, order, quotes.

_WIDTH = 120


def change(path: Path, values: Mapping[str, Any], without: Collection[str] = ()) -> None:
    """Take the keys `without` out of a YAML file, and set the `values`, mappings key by key; a file that is not there
    is made. It is the old one or the new one, whatever happens. Raises `ConfigError` for a file that cannot be read or
    written, and `StoreUnwritable` where the disk takes nothing at present."""
    path = path.resolve()  # a link stays a link
    read(path)  # raises the error in it
    text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    for key in without:
        text = _without_key(path, text, key)
    text = _changed(text, values) if values else text
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, part)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        fault = settings_fault(path, None, f"cannot be written: {error.strerror}")
        raise refused_by_disk(path, error.errno) or fault from None


def _without_key(path: Path, text: str, key: str) -> str:
    """Return the text without one key; comments stay, unless they are in its value."""
    found = parse(path, text)
    if key not in found.values:
        return text
    lines, first = text.splitlines(keepends=True), found.lines[key,] - 1
    last = first + 1
    while last < len(lines) and re.match(r"[ \t\r\n]|- |-$", lines[last]):
        last += 1
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    rest = "".join(lines[:first] + lines[last:])
    wanted = {name: value for name, value in found.values.items() if name != key}
    with suppress(ConfigError):
        if parse(path, rest).values == wanted:
            return rest
    from ruamel.yaml import YAML  # for content on one line, or with lines that begin at the margin

    yaml, written = YAML(), io.StringIO()
    document = yaml.load(text)
    del document[key]
    yaml.dump(document, written)
    return written.getvalue()


def _changed(text: str, values: Mapping[str, Any]) -> str:
    from ruamel.yaml import YAML  # PyYAML forgets comments; imported here, because it takes a tenth of a second

    yaml = YAML()
    yaml.preserve_quotes, yaml.width = True, _WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    document, written = yaml.load(text), io.StringIO()
    if document is None:  # nothing but comments, if anything
        document = {}
        written.write(f"{text.rstrip()}\n" if text.strip() else "")
    _merge(document, values)
    yaml.dump(document, written)
    return written.getvalue()


def _merge(below: MutableMapping[str, Any], above: Mapping[str, Any]) -> None:
    for key, value in above.items():
        beneath = below.get(key)
        if isinstance(value, Mapping) and isinstance(beneath, MutableMapping):
            _merge(beneath, value)
        else:
            below[key] = value


# Describes pydantic's error in a setting in one line for a person, with the invalid value.

_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "settings, each as 'key: value'",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_type": "settings, each as 'key: value'",
    "path_type": "a path",
    "string_too_short": "text",
    "string_type": "text (in quotes if it looks like something else)",
    "tuple_type": "a list",
}


SHOWN = 60  # characters of a key or value


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault in settings. `place` is the position of the wrong value, or of the settings that lack one; empty for
    the whole file. `text` is `key: expected this, found that`, without the key for the whole file.
    """

    place: KeyPath
    text: str


def faults(errors: Iterable[ErrorDetails], values: Mapping[str, Any], known_keys: Collection[str]) -> list[Fault]:
    """Return the faults of these values, each once: pydantic reports one for each possible type of a value, and one
    for each missing entry of a list.
    """
    together: dict[tuple[KeyPath, object], list[ErrorDetails]] = {}
    for error in errors:
        lacking = error["loc"][-1] if error["type"] == "missing" and isinstance(error["loc"][-1], str) else None
        together.setdefault((_place(values, error["loc"]), lacking), []).append(error)
    return [
        Fault(place, ": ".join(filter(None, (_label(place, lacking), _what(alike, known_keys)))))
        for (place, lacking), alike in together.items()
    ]


def suggestion(word: str, known: Iterable[str], ending: str = "") -> str:
    """`did you mean …?` for the known word that is nearest, else the list of them all; each is shown with `ending`."""
    words = sorted(known)
    near = difflib.get_close_matches(word, words, n=1)
    return f"did you mean {near[0]}{ending}?" if near else f"known are {', '.join(word + ending for word in words)}"


def _place(values: Any, location: KeyPath) -> KeyPath:
    """Return the part of a location that exists: pydantic also includes types and missing keys."""
    place: list[str | int] = []
    for part in location:
        if part in (values if isinstance(values, dict) else range(len(values)) if isinstance(values, list) else ()):
            place.append(part)
            values = values[part]
    return tuple(place)


def _label(place: KeyPath, lacking: object) -> str:
    return ".".join(_short(part) for part in (*place, lacking) if isinstance(part, str))


def _what(alike: Sequence[ErrorDetails], known_keys: Collection[str]) -> str:
    error, context = alike[0], alike[0].get("ctx", {})
    match error["type"]:
        case "extra_forbidden" if len(error["loc"]) == 1:
            return f"unknown key; {suggestion(str(error['loc'][0]), known_keys)}"
        case "extra_forbidden":
            return "unknown key"
        case "missing" if isinstance(error["loc"][-1], int):
            return f"expected {len(error['input']) + len(alike)}, found {len(error['input'])}"
        case "missing":
            return "missing, and there is no default"
        case "too_long":
            return f"expected at most {context['max_length']}, found {context['actual_length']}"
        case "too_short":
            return f"expected at least {context['min_length']}, found {context['actual_length']}"
        case "value_error":
            return str(context["error"])
        case kind if kind in _EXPECTED:
            return f"expected {_alternatives(alike)}, found {_found(error['input'])}"
        case _:
            return f"{error['msg']}, found {_found(error['input'])}"


def _alternatives(alike: Iterable[ErrorDetails]) -> str:
    wanted = [_EXPECTED[one["type"]].format(**one.get("ctx", {})) for one in alike if one["type"] in _EXPECTED]
    text = " or ".join(dict.fromkeys(wanted))
    return text.replace("' or '", "', '", text.count("' or '") - 1)


def _found(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case list():
            return "a list"
        case dict():
            return "settings"
        case _:
            return _short(repr(value))


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}…"


# A setting's reference to a secret: `secret:NAME`, whose value is in the store of secrets and in no settings file.

MARK = "secret:"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
NAMES = "1 to 64 letters, digits and _.-, with a letter or digit first"


def name_in(text: str) -> str | None:
    """Return the name in `secret:NAME`, even an invalid one; None for a value."""
    return text.removeprefix(MARK) if text.startswith(MARK) else None


# `${VARIABLE}` and `${VARIABLE:-otherwise}` in a setting, as programs that share its format have it; and secrets.

_NAMED = re.compile(r"\$\{(?:secret:([^}]*)|([A-Za-z_]\w*)(?::-([^}]*))?)\}")

Values = Callable[[str], str | None]


def expanded(text: str, variable: Values, secret_of: Callable[[str], str] | None = None) -> str:
    """Return the text with its variables and secrets expanded. `secret_of` returns the value of `secret:NAME`, which
    is the whole text, and of `${secret:NAME}` within a text; without it secrets are not allowed. Raises `ConfigError`
    for a missing variable or secret.
    """
    if (name := name_in(text)) is not None and secret_of is not None:
        return secret_of(name)

    def value(found: re.Match[str]) -> str:
        secret, name, otherwise = found.groups()
        if secret is not None:
            if secret_of is None:
                raise ConfigError(f"{found[0]} is allowed only in env and headers, because others can see this setting")
            return secret_of(secret)
        given = variable(name)
        if given is None and otherwise is None:
            raise ConfigError(f"the variable {name} is not set; set it, write ${{{name}:-…}}, or keep it as a {MARK}")
        return otherwise or "" if given is None else given

    return _NAMED.sub(value, text)
