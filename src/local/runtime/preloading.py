"""Imported first by the template process, and only there: nothing disturbs it while it imports.

A collection of garbage would take a tenth of the time, and leave holes all over the pages that children share, to be
written to by them. Signals that go to everybody, as Ctrl-C does, are the supervisor's business; the template ends with
it. Forked children inherit that, so none is hit that has not yet begun to look after itself.
"""

from __future__ import annotations

import gc
import signal

from setproctitle import setproctitle

setproctitle("local2 template")  # it may have been forked from a program with a name of its own
gc.disable()

_GROUP_SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
for number in _GROUP_SIGNALS:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_UNBLOCK, _GROUP_SIGNALS)  # they were blocked until here
