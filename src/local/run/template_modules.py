"""Imports what the supervisor, the template and all children share. What cannot be imported is told, and left to the
children, who fail one by one.

A template that ends by such an error could start nobody, and nobody would learn which module it was.
"""

from __future__ import annotations

import importlib
import logging

from local.runtime.logs import configure_logging
from local.runtime.runner import explained

try:
    importlib.import_module("local.run.preload")
except Exception as error:  # noqa: BLE001 - whatever is wrong with a module
    configure_logging("template", "info")
    logging.getLogger(__name__).error("what all processes share cannot be imported: %s", explained(error))
