"""The first template of a program, forked from it instead of started anew: it has what the program has imported.

So one interpreter starts less, nothing is imported twice, and the program shares that memory with its children. The
template that takes the place of one which has ended is started anew by multiprocessing, and imports all for itself.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from multiprocessing import forkserver, resource_tracker, util
from typing import Any

from local.runtime.template import prepare_template, settle


def fork_template(preload: Sequence[str]) -> None:
    """`prepare_template`, forked from here where there is fork. For a program that has no second thread yet and holds
    nothing open that the template is not to have. Raises `OSError`."""
    settle()
    starts_anew = util.spawnv_passfds
    util.spawnv_passfds = _fork  # type: ignore[assignment]  # its arguments have other names
    try:
        prepare_template(preload)
    finally:
        util.spawnv_passfds = starts_anew


def _fork(path: bytes, arguments: Sequence[Any], passed: Sequence[int]) -> int:
    """As `util.spawnv_passfds`, for the command at the end of the arguments; gives the process."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        _leave_program(passed)
        exec(arguments[-1], {})  # what multiprocessing would have an interpreter run
    except SystemExit:
        status = 0
    except BaseException:  # noqa: BLE001 - the last place where it can be said
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _leave_program(passed: Sequence[int]) -> None:
    """Let go of the program's files, as a program that is started anew does, and of what multiprocessing knows of it:
    its lock is held at this moment, for good."""
    low = 3
    for handle in sorted(passed):
        os.closerange(low, handle)
        low = handle + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))
    server: Any = vars(forkserver)["_forkserver"]
    server.__init__()
    tracker: Any = resource_tracker._resource_tracker
    tracker._fd = None
