"""The model itself: takes a chat request, decides what to say, and says it chunk by chunk."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from local.models.stand_in import brain, judging, structured_reply
from local.models.stand_in.chunked_reply import ChunkedReply, deliver
from local.models.stand_in.conversation import AssistantMessage, Conversation, Task, read, task_of
from local.models.stand_in.faults import FaultInjector, InjectedFault, twist
from local.models.stand_in.library import Library, Model
from local.models.stand_in.obedience import obey
from local.models.stand_in.ollama_request import OllamaRefusal, OllamaRequest
from local.models.stand_in.request_log import RequestLog, RequestRecord
from local.models.stand_in.script import Script, load
from local.models.stand_in.tokens import DEFAULT_CONTEXT, FittedPrompt, fit, logprobs_of


@dataclass(frozen=True, slots=True)
class StandInSettings:
    """`models` are the names present at start (none named: the whole catalogue); `served_at_once` 0 means no limit.

    `latency_seconds` passes before the first token of each answer, `chunk_delay_seconds` between two chunks of
    `chunk_chars` characters. The last `log_size` requests are kept for /stand_in/log.
    """

    models: tuple[str, ...] = ()
    scripts: tuple[Path, ...] = ()
    latency_seconds: float = 0.0
    chunk_delay_seconds: float = 0.0
    chunk_chars: int = 16
    served_at_once: int = 0
    log_size: int = 200


Json = dict[str, Any]

# Between so many chunks the event loop gets a turn, so that a client that left is noticed and others are served.
_CHUNKS_AT_A_TURN = 4


class StandIn:
    """One model server: its models, scripts, faults and log. `ConfigError` if a script of the settings is bad."""

    def __init__(self, settings: StandInSettings) -> None:
        self.settings = settings
        self.library = Library(settings.models)
        self.scripts: dict[str, Script] = {}
        self.is_obedient = False  # to whatever it reads
        self.faults = FaultInjector()
        self.log = RequestLog(settings.log_size)
        self.under_way: set[asyncio.Task[None]] = set()
        self._place = asyncio.Semaphore(settings.served_at_once) if settings.served_at_once else nullcontext()
        for path in settings.scripts:
            self.add_script(load(path))

    def add_script(self, script: Script) -> None:
        """Play this script too; it takes the place of one for the same story."""
        self.scripts[script.story] = script

    def check(self, request: OllamaRequest) -> Model:
        """The model asked for, if it can do what is asked; else the `OllamaRefusal` that Ollama gives."""
        if not request.model:
            raise OllamaRefusal(400, "model is required")
        model = self.library.find(request.model)
        if request.think and "thinking" not in model.capabilities:
            raise OllamaRefusal(400, f'"{request.model}" does not support thinking')
        if "completion" not in model.capabilities:
            raise OllamaRefusal(400, f'"{request.model}" does not support chat')
        if request.tools and "tools" not in model.capabilities:
            raise OllamaRefusal(400, f"registry.ollama.ai/library/{model.name} does not support tools")
        return model

    def prompt(self, request: OllamaRequest, model: Model) -> FittedPrompt:
        """What fits into the context of the request; `OllamaRefusal` 400 if it does not and must not be cut."""
        context = min(request.option("num_ctx", DEFAULT_CONTEXT), model.context_length)
        return fit(request.messages, request.tools, max(context, 1), truncate=request.truncate)

    def decide(
        self,
        request: OllamaRequest,
        model: Model,
        prompt: FittedPrompt,
        faults: Sequence[InjectedFault],
        record: RequestRecord,
    ) -> ChunkedReply:
        """What to say: a script's words, else those of the rules for such a task, changed by the faults."""
        conversation = read(prompt.messages, prompt.tools)
        task = task_of(request.format, conversation.question)
        delivery = self._scripted(conversation, task, request, record)
        if delivery is None:
            ordered = obey(prompt.messages, conversation.tools) if self.is_obedient and task is Task.TALK else None
            delivery = self._deliver(ordered or _reply(task, request, conversation))
        delivery = twist(delivery, faults, conversation)
        if "thinking" not in model.capabilities or request.think is False:
            delivery = delivery.without_thinking()
        return delivery.limited(request.option("num_predict", -1))

    def _scripted(
        self, conversation: Conversation, task: Task, request: OllamaRequest, record: RequestRecord
    ) -> ChunkedReply | None:
        for story, script in self.scripts.items():
            if delivery := script.play(conversation, task, request.options or {}):
                record.script = story
                slowest = max(delivery.chunk_delay, self.settings.chunk_delay_seconds)
                return replace(delivery, chunk_delay=slowest)
        return None

    def _deliver(self, reply: AssistantMessage) -> ChunkedReply:
        return deliver(reply, self.settings.chunk_chars, self.settings.chunk_delay_seconds)

    async def speak(
        self, request: OllamaRequest, prompt: FittedPrompt, delivery: ChunkedReply
    ) -> AsyncGenerator[Json, None]:
        """Ollama's chat chunks: waits for a place in the queue, then for the first token, then streams."""
        asked = time.perf_counter_ns()
        async with self._place:
            placed = time.perf_counter_ns()
            if delay := self.settings.latency_seconds + delivery.first_delay:
                await asyncio.sleep(delay)
            first = time.perf_counter_ns()
            for number, message in enumerate(delivery.messages()):
                yield chunk(request.model, message) | _logprobs(request, message)
                if delivery.chunk_delay or number % _CHUNKS_AT_A_TURN == 0:
                    await asyncio.sleep(delivery.chunk_delay)
            last = time.perf_counter_ns()
            yield chunk(request.model, {"role": "assistant", "content": ""}) | {
                "done": True,
                "done_reason": delivery.reason,
                "total_duration": last - asked,
                "load_duration": placed - asked,
                "prompt_eval_count": prompt.tokens,
                "prompt_eval_duration": first - placed,
                "eval_count": delivery.tokens,
                "eval_duration": last - first,
            }


def chunk(model: str, message: Json) -> Json:
    """One chunk of /api/chat that is not the last."""
    return {"model": model, "created_at": now().isoformat().replace("+00:00", "Z"), "message": message, "done": False}


def now() -> datetime:
    """The time that goes into answers, UTC."""
    return datetime.now(UTC)


def _reply(task: Task, request: OllamaRequest, conversation: Conversation) -> AssistantMessage:
    match task, request.format:
        case Task.CLASSIFICATION, dict() as schema:
            said = json.dumps(structured_reply.classify(conversation.question, schema), ensure_ascii=False)
        case Task.DREAM, _:
            said = json.dumps(structured_reply.dream(conversation.question), ensure_ascii=False)
        case Task.THOUGHT, _:
            said = json.dumps(structured_reply.thought(conversation.question), ensure_ascii=False)
        case Task.CHECK, _:
            said = json.dumps(structured_reply.check(conversation.question), ensure_ascii=False)
        case Task.JUDGEMENT, wanted:
            said = judging.judge(conversation.question, wanted)
        case Task.JSON, dict() as schema:
            said = json.dumps(structured_reply.smallest(schema))
        case Task.JSON, _:
            said = json.dumps({"answer": brain.reply(replace(conversation, tools={})).content})
        case _:
            return brain.reply(conversation)
    return AssistantMessage(f"This is a {task}, no talk; a rule answers it in the form that is asked for.", said)


def _logprobs(request: OllamaRequest, message: Json) -> Json:
    text = message.get("thinking") or message["content"]
    return {"logprobs": logprobs_of(text, request.top_logprobs)} if request.logprobs and text else {}
