"""What `local2 run` does first: import what all its processes share, and fork the template from itself."""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import Final

PRELOAD: Final = ("local.run.preload",)


def warm_up() -> None:
    """For a program that has only just begun. That it goes on only once the template is there costs less than two
    processes that import side by side."""
    gc.disable()  # a collection of garbage would take a tenth of the time
    from local.core.open_files import raise_open_files
    from local.runtime.template import fork_template, import_all

    import_all(PRELOAD)
    raise_open_files()  # the template and all children inherit it
    with suppress(OSError):  # the start itself says what is wrong
        fork_template()
    gc.enable()
