"""What keeps a tool from a result; the texts are for the model."""

from __future__ import annotations

from local.errors.base import LocalError, without_passwords


class ToolError(LocalError):
    """A tool could not do what it was asked; the text is for the model, `kind` for programs. `tainted` says that words
    of strangers are in it."""

    kind = "tool_error"

    def __init__(self, message: str, *, kind: str = "tool_error", tainted: bool = False) -> None:
        super().__init__(message)
        self.kind, self.tainted = kind, tainted


class ToolGone(ToolError):
    """Nobody answers for a tool now. What one with effects has `begun` may have happened or not."""

    def __init__(self, why: str, *, begun: bool = False) -> None:
        doubt = "; whether the call had its effect is not known" if begun else ""
        super().__init__(f"{why}{doubt}", kind="outcome_unknown" if begun else "unavailable")


class FetchRefused(ToolError):
    """An address that may not be fetched: no public web address, or one in disguise."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{without_passwords(url)[:200]!a} may not be fetched: {reason}", kind="refused")
        self.url, self.reason = url, reason


class SearchUnavailable(ToolError):
    """A search provider could not look, which is not the same as finding nothing. `retry_after` is in seconds."""

    def __init__(self, provider: str, reason: str, retry_after: float | None = None) -> None:
        super().__init__(f"{provider} could not search: {reason}", kind="unavailable")
        self.provider, self.reason, self.retry_after = provider, reason, retry_after


class SandboxMissing(ToolError):
    """Nothing is here that could contain a command. `fix` says how to get it."""

    def __init__(self, why: str, fix: str) -> None:
        super().__init__(f"{why}: {fix}", kind="unavailable")
        self.why, self.fix = why, fix


class SandboxRefused(ToolError):
    """A workspace or a folder that no command may be given."""

    def __init__(self, why: str) -> None:
        super().__init__(why, kind="refused")
