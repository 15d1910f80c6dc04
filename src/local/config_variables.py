"""`${VARIABLE}` and `${VARIABLE:-otherwise}` in a setting, as programs that share its format have it; and secrets."""

from __future__ import annotations

import re
from collections.abc import Callable

from local.config_secret import MARK, name_in
from local.errors import ConfigError

_NAMED = re.compile(r"\$\{(?:secret:([^}]*)|([A-Za-z_]\w*)(?::-([^}]*))?)\}")

Values = Callable[[str], str | None]


def expanded(text: str, variable: Values, secret_of: Callable[[str], str] | None = None) -> str:
    """The text with the values in it. `secret_of` gives those of `secret:NAME`, which is all of a text, and of
    `${secret:NAME}` in one; without it there may be none. Raises `ConfigError` for what is not there."""
    if (name := name_in(text)) is not None and secret_of is not None:
        return secret_of(name)

    def value(found: re.Match[str]) -> str:
        secret, name, otherwise = found.groups()
        if secret is not None:
            if secret_of is None:
                raise ConfigError(f"{found[0]} may stand in env and headers alone: what stands here is seen by others")
            return secret_of(secret)
        given = variable(name)
        if given is None and otherwise is None:
            raise ConfigError(f"the variable {name} is not set; set it, write ${{{name}:-…}}, or keep it as a {MARK}")
        return otherwise or "" if given is None else given

    return _NAMED.sub(value, text)
