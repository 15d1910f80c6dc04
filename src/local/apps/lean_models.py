"""Imported by the template process before anybody else imports FastAPI and ollama: their models are built when somebody
needs them.

Those that describe an HTTP API refer to each other in circles: all of them built take a megabyte, and time at every
start. Of those of ollama a process needs the few that it gets as answers, and none the client that the package makes
for whoever has none: it would read all certificates.
"""

from __future__ import annotations

import httpx
import pydantic

_client = httpx.Client
httpx.Client = lambda **_: None  # type: ignore[assignment, misc]  # until ollama has made what nobody uses
pydantic.BaseModel.model_config = {"defer_build": True}  # of every model that is defined while it is so
try:
    import fastapi.openapi.models  # noqa: F401 - for the sake of that
    import ollama  # noqa: F401 - likewise
finally:
    pydantic.BaseModel.model_config = {}
    httpx.Client = _client  # type: ignore[misc]
