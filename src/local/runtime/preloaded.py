"""Imported last by the template process, and only there: makes it ready to be forked."""

from __future__ import annotations

import gc
import signal

from setproctitle import setproctitle

setproctitle("local2 template")
# Forked children inherit this, so Ctrl-C cannot hit one that has not yet begun to look after itself.
signal.signal(signal.SIGINT, signal.SIG_IGN)
# A collection in a child would write to every object's header and so copy the pages it shares with the others.
gc.collect()
gc.freeze()
# Nearly all of our garbage is freed by its last reference; looking for cycles after every 700 objects costs each turn
# more than it finds.
gc.set_threshold(20_000, 20, 20)
