"""Imported last by the template process, and only there: makes it ready to be forked."""

from __future__ import annotations

import gc

from local.runtime.logs import configure_logging
from local.runtime.template import settle

# What most children want; those find it done, and leave the loggers' pages alone.
configure_logging("template", "info")
settle()
gc.enable()
# Nearly all of our garbage is freed by its last reference; looking for cycles after every 700 objects costs each turn
# more than it finds.
gc.set_threshold(20_000, 20, 20)
