"""One YAML file of settings: its values, and for each key the line on which it stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from local.errors import ConfigError
from local.shipped import shipped_dir

KeyPath = tuple[str | int, ...]

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20
MAX_VALUES = 10_000
_MERGE_KEY, _MERGE_TAG = "<<", "tag:yaml.org,2002:merge"


@dataclass(frozen=True)
class ConfigFile:
    """Settings as one file gives them. `lines` are counted from 1; an empty or absent file holds no values."""

    path: Path
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)


def read(path: Path) -> ConfigFile:
    """Read one file; one that does not exist is empty. Raises ConfigError, which names file, line and fault.

    A text that was read before is not parsed again, and its values are the same objects: change none of them.
    """
    return _parsed(path, _text(path))


def parse(path: Path, text: str) -> ConfigFile:
    """As `read`, of a text that was read already; `path` is for what errors say."""
    return _parsed(path, text)


@lru_cache(maxsize=64)  # so that what the template has read is parsed in no child
def _parsed(path: Path, text: str) -> ConfigFile:
    try:
        loader, node = _composed(path, text)
        if node is None:
            return ConfigFile(path)
        if not isinstance(node, MappingNode):
            raise fault(path, _line(node), "expected settings, each as 'key: value'")
        lines = dict(_Index(path).walk(node))
        return ConfigFile(path, loader.construct_document(node), lines)
    except yaml.MarkedYAMLError as error:
        raise _invalid(path, error) from None
    except yaml.reader.ReaderError as error:
        raise fault(path, text.count("\n", 0, error.position) + 1, f"not valid YAML: {_first_line(error)}") from None
    except yaml.YAMLError as error:
        raise fault(path, None, f"not valid YAML: {_first_line(error)}") from None
    except RecursionError:
        raise fault(path, None, f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise fault(path, None, f"a value cannot be read: {str(error).partition(';')[0]}") from None


def _composed(path: Path, text: str) -> tuple[yaml.SafeLoader, Node | None]:
    """What ships is read by libyaml, where there is one, in a tenth of the time. Not what others have written: brackets
    in brackets by the thousand end its process."""
    if path.parent == shipped_dir() / "config":
        with suppress(yaml.YAMLError):  # which PyYAML says in other words
            fast = _FastLoader(text)
            return fast, fast.get_single_node()
    loader = _Loader(text)
    return loader, loader.get_single_node()


def fault(path: Path, line: int | None, what: str) -> ConfigError:
    """The error that says `what` is wrong, and where: the file as seen from the current folder, and the line. What
    cannot be seen of it, as in a key, stands as its code."""
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    told = what if what.isprintable() else "".join(map(_visible, what))
    return ConfigError(f"{shown}:{line}: {told}" if line else f"{shown}: {told}")


def _visible(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


class _Loader(yaml.SafeLoader):
    """SafeLoader in which a date stays text: no setting is a date, and an impossible one would raise."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - how PyYAML has its dialects declared
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


class _FastLoader(getattr(yaml, "CSafeLoader", _Loader)):  # type: ignore[misc]  # PyYAML may come without libyaml
    yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers


class _Index:
    """Walks a document as it will be once its aliases are expanded, so that it also notices an alias bomb."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values = 0

    def walk(self, node: Node, at: KeyPath = ()) -> Iterator[tuple[KeyPath, int]]:
        """Give path and line of every value. Raises ConfigError for duplicate keys, and for too many or too deep."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise fault(self._path, _line(node), f"more than {MAX_VALUES} values, counting what aliases repeat")
        if len(at) > MAX_DEPTH:
            raise fault(self._path, _line(node), f"nested deeper than {MAX_DEPTH} levels")
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
                raise fault(self._path, line, "expected a name as the key; put it in quotes if it is meant as text")
            key = str(key_node.value)
            if key in found:
                raise fault(self._path, line, f"{key}: given twice, first on line {found[key][0]}; keep one of them")
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
            raise fault(other, None, f"not read under this name; call it {path.name}") from None
        return ""
    except OSError as error:
        raise fault(path, None, f"cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise fault(path, None, f"larger than {MAX_BYTES // 1024} kB; settings are smaller")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise fault(path, line, "not UTF-8 text; save the file in that encoding") from None


def _invalid(path: Path, error: yaml.MarkedYAMLError) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "not valid YAML"
    if "'\\t'" in problem:
        problem = "a tab; indent with spaces"
    if mark is None:
        return fault(path, None, problem)
    return fault(path, mark.line + 1, f"column {mark.column + 1}: {problem}")
