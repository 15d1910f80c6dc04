"""The settings of the tools that run commands."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from local.config import Settings
from local.services.sandbox.sandbox_limits import MB, SandboxLimits


class ShellConfig(Settings):
    """`shell.yaml`; the comments there say what each key means."""

    timeout_seconds: float = Field(120, gt=0, le=3600)
    job_seconds: float = Field(3600, gt=0)
    jobs_at_once: int = Field(4, ge=0)
    memory_mb: int = Field(2048, ge=16)
    processes: int = Field(256, ge=4)
    file_mb: int = Field(512, ge=1)
    scratch_mb: int = Field(256, ge=1)
    output_mb: int = Field(32, ge=1, le=256)
    free_mb: int = Field(512, ge=0)
    max_result_chars: int = Field(30_000, ge=1000)
    readable: tuple[Path, ...] = ()

    def limits(self) -> SandboxLimits:
        """The limits of a command that is waited for."""
        return SandboxLimits(
            seconds=self.timeout_seconds, memory_bytes=self.memory_mb * MB, processes=self.processes,
            file_bytes=self.file_mb * MB, scratch_bytes=self.scratch_mb * MB, output_bytes=self.output_mb * MB,
            free_bytes=self.free_mb * MB,
        )  # fmt: skip
