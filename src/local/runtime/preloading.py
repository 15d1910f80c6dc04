"""Imported first by the template process, and only there: nobody collects garbage while it imports.

It would take a tenth of the time, and leave holes all over the pages that children share, to be written to by them.
"""

from __future__ import annotations

import gc

gc.disable()
