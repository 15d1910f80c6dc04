"""Imported last by the template process, and only there: makes it ready to be forked."""

from __future__ import annotations

import gc
import sys

from local.runtime.logs import configure_logging

# What most children want; those find it done, and leave the loggers' pages alone.
configure_logging("template", "info")
# The cache of attributes refers to names all over the memory: a child that replaces one would copy its page.
(getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache)()
# A collection in a child would write to every object's header and so copy the pages it shares with the others.
gc.freeze()
gc.enable()
# Nearly all of our garbage is freed by its last reference; looking for cycles after every 700 objects costs each turn
# more than it finds.
gc.set_threshold(20_000, 20, 20)
