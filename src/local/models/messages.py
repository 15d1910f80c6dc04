"""The messages of the model manager. All are ephemeral: which models there are is known to the disk and the servers,
and the progress of a pull is repeated."""

from __future__ import annotations

from typing import Literal

from local.bus.message import Data, Delivery, ErrorInfo, Message

ModelVerb = Literal["list", "find", "pull", "stop", "use", "load", "unload"]


class ModelRecord(Data):
    """An available model. `id` is the name to choose it by, `provider` its server's name in the settings, `server` the
    kind of that server, `size` in bytes if known, `path` that of its GGUF file. `capabilities` are empty and `loaded`
    is None if the server does not report them; `memory` is that of a loaded one, in bytes. `chat` says that a query can
    choose it; if not, `unfit` is a sentence with the reason. The `default` one answers if a query chooses none, the
    `current` one does so from the next start on.
    """

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
    memory: int | None = None


class ModelRequest(Message):
    """A frontend's request: which models there are (list), the model of a name that a query has chosen (find), to pull
    one (pull), to stop a pull (stop), to make one the default (use), or to have it in the memory of its server (load)
    or no longer (unload). `model` is its name; for use also the path of a GGUF file, for pull where to get it."""

    subject = "model.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "model_keeper"
    verb: ModelVerb
    model: str = ""


class ModelProgress(Message):
    """Published by the model manager while it pulls a model: at each new `status`, at most twice a second between, and
    at the end. `completed` and `total` are bytes of the current file. `state` is running, done, stopped or failed."""

    subject = "model.progress"
    delivery = Delivery.EPHEMERAL
    model: str
    state: Literal["running", "done", "stopped", "failed"] = "running"
    status: str = ""
    completed: int | None = None
    total: int | None = None
    error: ErrorInfo | None = None


class ModelResult(Message):
    """The answer of the model manager. For list: the models, the pulls under way and those that ended since the start,
    and in `note` why a server could not be asked. For pull and stop: that pull. For the others: the model, as `models`.
    `chosen` is the model that answers from the next start on, as provider/model; `at_once` means that it answers
    already.
    """

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
