"""Imported before httpx by the template process: without its command line, which would bring rich and pygments along.

They are a fifteenth of what the template weighs and takes to import, and nobody here uses them.
"""

from __future__ import annotations

import sys

sys.modules["httpx._main"] = None  # type: ignore[assignment]  # it cannot be imported; httpx is prepared for that
