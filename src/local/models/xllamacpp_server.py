"""llama.cpp's own server from the package `xllamacpp`: `python xllamacpp_server.py --model FILE --port N …`.

A separate program, without our package, for machines without `llama-server`. It accepts that program's most used
options, with the same names and meanings; if a model cannot be loaded it ends with status 1 and prints the reason.
"""

from __future__ import annotations

import os
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

_CANNOT_SERVE = 1


class Pooling(StrEnum):
    """The reduction of a text's token vectors to one."""

    NONE = "none"
    MEAN = "mean"
    CLS = "cls"
    LAST = "last"
    RANK = "rank"


def serve(
    model: Annotated[Path, typer.Option()],
    port: Annotated[int, typer.Option()],
    alias: str = "",
    host: str = "127.0.0.1",
    ctx_size: int = 0,
    parallel: int = 1,
    threads: int = 0,
    batch_size: int = 0,
    ubatch_size: int = 0,
    cache_ram: Annotated[int | None, typer.Option(min=-1, help="MiB for prompts that were read; -1: no limit.")] = None,
    n_gpu_layers: int | None = None,
    mmproj: Path | None = None,
    chat_template: str = "",
    chat_template_file: Path | None = None,
    jinja: Annotated[bool, typer.Option("--jinja", help="It is always so.")] = True,
    embeddings: Annotated[bool, typer.Option("--embeddings")] = False,
    pooling: Pooling | None = None,
) -> None:
    """Serve until a signal ends the process. For other options install llama-server itself."""
    given = dict(locals())
    try:
        import xllamacpp

        server = xllamacpp.Server(_parameters(xllamacpp, given))
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        why = f"is it a whole GGUF model of a kind that this build knows, and is there memory for it? ({error})"
        print(f"xllamacpp cannot load {model}: {why}", file=sys.stderr, flush=True)  # noqa: T201
        os._exit(_CANNOT_SERVE)  # its threads do not end by themselves
    print(f"xllamacpp serves {model} at {server.listening_address}", flush=True)  # noqa: T201
    while True:
        signal.pause()


def _parameters(library: Any, given: dict[str, Any]) -> Any:
    """Return the library's parameters. Its slots do not expose prompts, and no web page can call it."""
    told = library.CommonParams()
    told.model.path, told.hostnames, told.port = str(given["model"]), [given["host"]], given["port"]
    told.n_ctx, told.n_parallel, told.use_jinja = given["ctx_size"], given["parallel"], True
    told.kv_unified = given["parallel"] > 1  # a conversation may use the whole window
    told.endpoint_props, told.endpoint_slots, told.ui = True, False, False
    told.cors_origins = f"http://{given['host']}:{given['port']}"
    told.embedding = given["embeddings"]
    for option, name in (("batch_size", "n_batch"), ("ubatch_size", "n_ubatch")):
        if given[option]:
            setattr(told, name, given[option])
    if given["cache_ram"] is not None:
        told.cache_ram_mib = given["cache_ram"]
    if given["alias"]:
        told.model_alias = {given["alias"]}
    if given["threads"]:
        told.cpuparams.n_threads = given["threads"]
    if given["n_gpu_layers"] is not None:
        told.n_gpu_layers = given["n_gpu_layers"]
    if given["mmproj"]:
        told.mmproj.path = str(given["mmproj"])
    template = given["chat_template_file"]
    told.chat_template = template.read_text("utf-8") if template else given["chat_template"]
    if given["pooling"]:
        told.pooling_type = library.llama_pooling_type[f"LLAMA_POOLING_TYPE_{given['pooling'].upper()}"]
    return told


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(serve)
    app()
