"""Every exception that LoCAL2 raises on purpose: one base, children named for the fact."""

from __future__ import annotations


class LocalError(Exception):
    """Base of all our errors. `str()` of it is a sentence for a person; `kind` is the word for a program."""

    kind = "error"


# --- protocol -------------------------------------------------------------------------------------------------------


class MalformedFrame(LocalError):
    """A frame, header or payload that is not what the protocol says."""

    kind = "malformed"


class UnsupportedVersion(MalformedFrame):
    """An envelope of a newer protocol."""

    kind = "unsupported_version"

    def __init__(self, theirs: int, ours: int) -> None:
        super().__init__(f"envelope of protocol version {theirs}; this program speaks version {ours}")
        self.theirs, self.ours = theirs, ours


class FrameTooLarge(LocalError):
    """A message that does not fit into one frame."""

    kind = "too_large"

    def __init__(self, subject: str, size: int, limit: int) -> None:
        super().__init__(f"{subject}: {size} bytes do not fit into one frame of at most {limit}")
        self.subject, self.size, self.limit = subject, size, limit


# --- bus ------------------------------------------------------------------------------------------------------------


class BusNotReady(LocalError):
    """The proxy did not answer the handshake in time."""

    kind = "bus_not_ready"

    def __init__(self, address: str, seconds: float) -> None:
        super().__init__(f"the bus at {address} did not answer within {seconds:g} s")
        self.address, self.seconds = address, seconds


class BusClosed(LocalError):
    """The bus was closed while it was in use."""

    kind = "bus_closed"


class PublishTimeout(LocalError):
    """A message could not be handed to the transport in time."""

    kind = "publish_timeout"

    def __init__(self, subject: str, seconds: float) -> None:
        super().__init__(f"{subject}: the bus did not take the message within {seconds:g} s")
        self.subject, self.seconds = subject, seconds


class RequestTimeout(LocalError):
    """Nobody answered a request in time."""

    kind = "timeout"

    def __init__(self, subject: str, seconds: float) -> None:
        super().__init__(f"{subject}: no answer within {seconds:g} s")
        self.subject, self.seconds = subject, seconds


# --- runtime --------------------------------------------------------------------------------------------------------


class IllegalTransition(LocalError):
    """An action that the table does not allow in this state; nothing was changed."""

    kind = "illegal_transition"

    def __init__(self, state: str, action: str) -> None:
        super().__init__(f"action {action} is not allowed in state {state}")
        self.state, self.action = state, action


class ConfigError(LocalError):
    """A setting that is missing, unknown or of the wrong kind. Says file, line, key and what was expected."""

    kind = "config"


class AlreadyRunning(LocalError):
    """A second instance on the same data."""

    kind = "already_running"


# --- tools ----------------------------------------------------------------------------------------------------------


class ToolError(LocalError):
    """A tool could not do what it was asked; the text is for the model, `kind` for programs."""

    kind = "tool_error"

    def __init__(self, message: str, *, kind: str = "tool_error") -> None:
        super().__init__(message)
        self.kind = kind


# --- models ---------------------------------------------------------------------------------------------------------


class ModelError(LocalError):
    """The model server failed or cannot do what was asked; the text says what to do about it."""

    kind = "model_error"

    def __init__(self, message: str, *, kind: str = "model_error", status: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.status = kind, status
