"""The first step of `local2 run`: import the shared modules, and fork the template."""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import Final

PRELOAD: Final = ("local.run.preload",)


def warm_up() -> None:
    """Start the template of a program that has just started. Waiting for the template costs less than two processes
    that import side by side.
    """
    gc.disable()  # a collection of garbage would take a tenth of the time
    from local.core.open_files import raise_open_files
    from local.runtime.template import fork_template, import_all

    import_all(PRELOAD)
    raise_open_files()  # the template and all children inherit it
    with suppress(OSError):  # the start itself reports the error
        fork_template()
    gc.enable()
