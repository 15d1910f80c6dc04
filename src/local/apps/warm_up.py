"""The names of the modules that children share; a module of its own so that naming them costs no import."""

from __future__ import annotations

from typing import Final

PRELOAD: Final = ("local.apps.lean_httpx", "local.apps.lean_fastapi", "local.apps.preload")
