"""A temporary system that is ready in a fifth of the time, for the tests that are not about how one starts."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from functools import cache

from local.cli.temporary_system import TemporarySystem
from tests.warm.warm_process import WarmProcess
from tests.warm.warm_template import WarmTemplate


class WarmSystem(TemporarySystem):
    """A `TemporarySystem` whose program finds imported what it would import. All else is as with one that is started
    anew: its arguments, environment, folder, session and files, and the processes that it starts itself."""

    def begin(self, arguments: Sequence[str], starter: int) -> WarmProcess:
        return _template().start(arguments, starter)


@cache
def _template() -> WarmTemplate:
    """The one of this process, to its end."""
    template = WarmTemplate()
    atexit.register(template.close)
    return template
