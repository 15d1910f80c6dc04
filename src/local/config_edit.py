"""Changes settings in a user's file, and leaves everything else in it as it stands: comments, order, quotes."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from local import config_file
from local.errors import refused_by_disk

_WIDTH = 120


def change(path: Path, values: Mapping[str, Any]) -> None:
    """Set these keys in a YAML file, mappings key by key; a file that is not there is made. It is the old one or the
    new one, whatever happens. Raises `ConfigError` for a file that cannot be read or written, and `StoreUnwritable`
    where the disk takes nothing at present."""
    path = path.resolve()  # a link stays a link
    config_file.read(path)  # which says what is wrong with it
    text = _changed(path.read_text(encoding="utf-8-sig") if path.exists() else "", values)
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
        fault = config_file.fault(path, None, f"cannot be written: {error.strerror}")
        raise refused_by_disk(path, error.errno) or fault from None


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
