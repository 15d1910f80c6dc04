"""What a contained command may use up."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """`memory_bytes` and `processes` are those of all processes of a command together, `file_bytes` of each file that
    it writes, `scratch_bytes` of its /tmp, which lies in memory; `free_bytes` of the workspace's disk stay free."""

    seconds: float = 120.0
    memory_bytes: int = 2048 * MB
    processes: int = 256
    open_files: int = 1024
    file_bytes: int = 512 * MB
    scratch_bytes: int = 256 * MB
    output_bytes: int = 32 * MB
    free_bytes: int = 512 * MB
