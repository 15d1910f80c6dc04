"""The names of the modules that children share; a module of its own so that naming them costs no import."""

from __future__ import annotations

from typing import Final

PRELOAD: Final = ("local.run.template_modules",)
