"""Settings that name a secret, as `secret:NAME`: which they are, and the settings with the values in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, SecretStr

from local.config import Settings
from local.config_secret import MARK, NAME, NAMES, name_in
from local.errors import ConfigError
from local.secrets.secret_mask import secret_mask

S = TypeVar("S", bound=Settings)


def named_secrets(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """Where settings name a secret, such as `providers.box.api_key`, and its name."""
    match value:
        case SecretStr() if (name := name_in(value.get_secret_value())) is not None:
            yield place, name
        case BaseModel():
            yield from named_secrets({key: each for key, each in value}, place)  # noqa: C416 - one may be called keys
        case dict():
            for key, each in value.items():
                yield from named_secrets(each, f"{place}.{key}" if place else str(key))
        case list() | tuple():
            for index, each in enumerate(value):
                yield from named_secrets(each, f"{place}[{index}]")


def with_secrets(settings: S, file: str, secret_of: Callable[[str], str]) -> S:
    """The settings with the value of each secret that they name, and with values that stand there in hiding, too.

    `secret_of` gives the value by the name. Raises `ConfigError` that says file and key of what is missing.
    """
    opened: S = _opened(settings, file, "", secret_of)
    return opened


def _opened(value: Any, file: str, place: str, secret_of: Callable[[str], str]) -> Any:
    match value:
        case SecretStr():
            return _revealed(value, file, place, secret_of)
        case BaseModel():
            fields = {key: _opened(each, file, f"{place}{key}.", secret_of) for key, each in value}
            changed = {key: each for key, each in fields.items() if each != getattr(value, key)}
            return value.model_copy(update=changed) if changed else value
        case dict():
            return {key: _opened(each, file, f"{place}{key}.", secret_of) for key, each in value.items()}
        case list() | tuple():
            return type(value)(_opened(each, file, place, secret_of) for each in value)
    return value


def _revealed(secret: SecretStr, file: str, place: str, secret_of: Callable[[str], str]) -> SecretStr:
    key, name = place.removesuffix("."), name_in(secret.get_secret_value())
    if name is None:
        secret_mask.hide(key, secret.get_secret_value())
        return secret
    try:
        if not NAME.fullmatch(name):
            raise ConfigError(f"expected {MARK}NAME, where the name is {NAMES}")
        return SecretStr(secret_of(name))
    except ConfigError as error:
        raise ConfigError(f"{file}.yaml: {key}: {error}") from None
