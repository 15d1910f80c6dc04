"""Imported before FastAPI by the template process: what describes an HTTP API is built when somebody asks for that.

Its classes refer to each other in circles: all of them built take a megabyte, and time at every start.
"""

from __future__ import annotations

import pydantic

pydantic.BaseModel.model_config = {"defer_build": True}  # of every model that is defined while it is so
try:
    import fastapi.openapi.models  # noqa: F401 - for the sake of that
finally:
    pydantic.BaseModel.model_config = {}
