"""What is asked of the one who knows which models there are, and how a pull goes on. All of it is ephemeral: what is
here the disk and the model servers know, and what is said of a pull is said again.
"""

from __future__ import annotations

from typing import Literal

from local.bus.message import Data, Delivery, ErrorInfo, Message

ModelVerb = Literal["list", "find", "pull", "stop", "use"]


class ModelRecord(Data):
    """A model that is here. `id` is the name to choose it by, `provider` its server's name in the settings, `server`
    the kind of that server, `size` in bytes where it is known, `path` that of its GGUF file. `capabilities` are empty
    and `loaded` is None where the server does not say. `chat` says that a query can choose it; if not, `unfit` is a
    sentence that says why. The `default` one answers where a query chooses none, the `current` one does so from the
    next start on."""

    name: str
    server: Literal["ollama", "llama_server", "openai"]
    size: int | None = None
    path: str | None = None
    current: bool = False
    id: str = ""
    provider: str = ""
    capabilities: tuple[str, ...] = ()
    loaded: bool | None = None
    chat: bool = True
    unfit: str = ""
    default: bool = False


class ModelRequest(Message):
    """A door that wants to know which models there are (list), or the one of a name that a query has chosen (find), to
    have one pulled (pull), no longer (stop), or to have it answer by default (use). `model` is its name, for use also
    the path of a GGUF file, for pull where to get it."""

    subject = "model.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "model_keeper"
    verb: ModelVerb
    model: str = ""


class ModelProgress(Message):
    """The model keeper, while a model is pulled: at each new `status`, at most twice a second between, and at its end.
    `completed` and `total` are bytes of the file that is on its way. `state` is running, done, stopped or failed."""

    subject = "model.progress"
    delivery = Delivery.EPHEMERAL
    model: str
    state: Literal["running", "done", "stopped", "failed"] = "running"
    status: str = ""
    completed: int | None = None
    total: int | None = None
    error: ErrorInfo | None = None


class ModelResult(Message):
    """The model keeper's answer to a request. To list: what is here, pulls under way and those that ended since the
    start, and in `note` why a server could not be asked. To pull and stop: how that pull stands. To find and use: the
    model, as `models`. `chosen` is the model that answers from the next start on, as provider/model; `at_once` says
    that it does so already."""

    subject = "model.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    models: tuple[ModelRecord, ...] = ()
    pulls: tuple[ModelProgress, ...] = ()
    chosen: str = ""
    at_once: bool = False
    note: str = ""
    error: ErrorInfo | None = None
