"""What the clients of all kinds of model servers do alike: ask, read the answer while it comes, go without what is
refused."""

from __future__ import annotations

import json
import logging
from abc import abstractmethod
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, NotRequired, TypedDict, TypeVar

import httpx

from local.errors import ModelError
from local.models.answer_stream import AnswerStream
from local.models.chat import CannotThink, Degraded, Delta, Done, Json
from local.models.first_token_limit import FirstTokenLimit
from local.models.model_errors import ServerErrors
from local.models.model_http import M, ModelHttp, StreamedAnswer, Wait, encoded

log = logging.getLogger(__name__)

K = TypeVar("K")

# How many alternatives to each token are asked for: the five scores and as many others.
TOP_LOGPROBS = 10
LOGPROBS: Json = {"logprobs": True, "top_logprobs": TOP_LOGPROBS}

# After the model's last word, how long the usage and the end may take that some servers send and others do not.
_TRAILER_SECONDS = 1.0
_REFUSALS = (400, 403, 422)  # OpenAI's own is 403 for the probabilities of some models
_FORMAT, _LOGPROBS, _PROGRESS = "a form of the reply", "token probabilities", "a wish for progress"
_WORDS = {_LOGPROBS: ("logprob",), _FORMAT: ("format", "schema", "grammar"), _PROGRESS: ("progress",)}


class ConnectionLimits(TypedDict):
    """`first_token_seconds` limits the silence before a chat answer (while the model is loaded, or the prompt is read
    by a server that tells no progress); it grows with what the model needed before, see `FirstTokenLimit`.
    `between_tokens_seconds` limits each later silence (comments that keep the connection alive are silence, too),
    `timeout_seconds` every other request. `limit` names the setting behind them, for the message of an error."""

    first_token_seconds: float
    between_tokens_seconds: float
    timeout_seconds: float
    limit: NotRequired[str]
    transport: NotRequired[httpx.AsyncBaseTransport | None]


class ModelClient(Generic[K]):
    """A `ChatModel` on one server, but for what a subclass says of its API. `K` is what is known of a model."""

    chat_path: ClassVar[str]

    def __init__(
        self,
        errors: ServerErrors,
        headers: Mapping[str, str],
        *,
        first_token_seconds: float,
        between_tokens_seconds: float,
        timeout_seconds: float,
        limit: str = "",
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._errors = errors = replace(errors, limit=limit)
        self._http = ModelHttp(errors, headers=headers, transport=transport)
        self._first_token_seconds = first_token_seconds
        self._between_tokens_seconds = between_tokens_seconds
        self._timeout_seconds = timeout_seconds
        self._known: dict[str, K] = {}
        self._refused: defaultdict[str, set[str]] = defaultdict(set)
        self._cannot_think = set[CannotThink]()  # what has been said
        self._first_limits: defaultdict[str, FirstTokenLimit] = defaultdict(FirstTokenLimit)
        self._unheard: defaultdict[str, set[Wait]] = defaultdict(set)  # calls of a model without a sign of life yet

    async def chat(
        self,
        model: str,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json] = (),
        think: bool = False,
        options: Mapping[str, Any] | None = None,
        format: Json | None = None,
        logprobs: bool = False,
    ) -> AsyncGenerator[Delta, None]:
        """See `ChatModel.chat`. What the model or its server cannot do is left out and told as `Degraded`."""
        known = await self._look(model)
        body, notes = self._request(known, messages, tools=tools, think=think, options=options)
        wishes = {"form": self._form(format), "progress": self._progress(known)}
        optional = OptionalFields(self._refused[model], logprobs=logprobs, **wishes)
        for note in (*notes, *optional.notes):
            if note not in self._cannot_think:
                yield note
        self._cannot_think.update(note for note in notes if isinstance(note, CannotThink))
        stream: AnswerStream | None = None
        while stream is None:
            asked = body | optional.fields
            log.debug("%s is sent: %s", self.chat_path, _AsJson(asked))
            content = encoded(asked)
            wait = Wait(self._errors, self.chat_path, self._first_seconds(model, len(content)))
            self._unheard[model].add(wait)
            try:
                async with self._http.stream(self.chat_path, content, model=model, wait=wait) as answer:
                    optional.accepted()
                    stream = self._answer(model, answer.content_type)
                    while not stream.done:
                        for delta in await self._read(stream, answer):
                            if isinstance(delta, Done):
                                self._first_limits[model].learn(len(content), delta.usage)
                            yield delta
                        if stream.heard:
                            self._hear(model, wait)
                    await answer.drain()
            except ModelError as error:
                if error.kind == "timeout" and wait in self._unheard[model]:
                    self._first_limits[model].in_vain(wait.seconds)
                left_out = optional.refused(error) if stream is None else None
                if left_out is None:
                    # The model may have been removed or replaced by one with other capabilities.
                    self._known.pop(model, None)
                    raise
                yield left_out
            finally:
                self._unheard[model].discard(wait)

    def _first_seconds(self, model: str, size: int) -> float:
        return max(self._first_token_seconds, self._first_limits[model].seconds(size))

    def _hear(self, model: str, wait: Wait) -> None:
        """The model gives a sign of life: whoever waits for it in line, while it works for another, goes on waiting."""
        unheard = self._unheard[model]
        unheard.discard(wait)
        for other in unheard:
            other.allow(max(other.seconds, self._first_token_seconds))

    async def _read(self, stream: AnswerStream, answer: StreamedAnswer) -> Iterator[Delta]:
        """The deltas in what comes next."""
        if stream.heard:
            stream.heard = False
            answer.allow(_TRAILER_SECONDS if stream.finished else self._between_tokens_seconds)
        data = await (answer.rest() if stream.finished else answer.read())
        log.debug("%s has answered: %s", self.chat_path, data)
        return stream.feed(data) if data else stream.end()

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    @abstractmethod
    async def _look(self, model: str) -> K:
        """What is known of a model, asked for once."""

    @abstractmethod
    def _request(
        self,
        known: K,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json],
        think: bool,
        options: Mapping[str, Any] | None,
    ) -> tuple[Json, list[Degraded]]:
        """The body of a chat request for what this model can do, and what had to be left out."""

    @abstractmethod
    def _form(self, schema: Json | None) -> Json:
        """The fields that ask for a reply which follows a JSON Schema; none without a schema."""

    def _progress(self, known: K) -> Json:
        """The fields that ask for the progress of reading the prompt, where the server knows them."""
        return {}

    @abstractmethod
    def _answer(self, model: str, content_type: str) -> AnswerStream:
        """The reader of an answer. Raises `ModelError(kind="bad_stream")` for a type that is none of the server's."""

    async def _call(self, method: str, path: str, answer: type[M], body: Json | None = None) -> M:
        model = str((body or {}).get("model", ""))
        return await self._http.call(method, path, answer, body, model=model, seconds=self._timeout_seconds)


class OptionalFields:
    """What one call may go without: the form of the reply, the probabilities of its tokens, and the progress of reading
    the prompt, which is taken away only by a refusal that names it.

    `fields` are those of the request that are still asked for. Servers differ in which of them they know, and say so
    with a refusal: the call is then made without, and `learned`, which all calls of one model share, remembers it once
    that has helped. Servers that ignore an unknown field are never noticed here.
    """

    def __init__(self, learned: set[str], *, form: Json, logprobs: bool, progress: Json | None = None) -> None:
        wanted = {_LOGPROBS: LOGPROBS if logprobs else {}, _FORMAT: form, _PROGRESS: progress or {}}
        self._wanted: dict[str, Json] = {name: fields for name, fields in wanted.items() if fields}
        self._learned = learned
        self._dropped = self._wanted.keys() & learned
        self.notes = [_note(name) for name in self._wanted if name in learned and name != _PROGRESS]

    @property
    def fields(self) -> Json:
        """The fields of the request."""
        left = [fields for name, fields in self._wanted.items() if name not in self._dropped]
        return {key: value for fields in left for key, value in fields.items()}

    def refused(self, error: ModelError) -> Degraded | None:
        """What is left out from now on, because of that refusal; None if the failure has nothing to do with these
        fields."""
        left = [name for name in self._wanted if name not in self._dropped]
        if not left or error.status not in _REFUSALS:
            return None
        text = str(error).lower()
        named = [name for name in left if any(word in text for word in _WORDS[name])]
        if not named and (error.status == 403 or left == [_PROGRESS]):
            return None
        name = (named or left)[0]
        self._dropped.add(name)
        return _note(name)

    def accepted(self) -> None:
        """The server has taken the request with what is left of the fields."""
        self._learned |= self._dropped


class _AsJson:
    """A request as JSON, made only if a log line really shows it."""

    def __init__(self, body: Json) -> None:
        self._body = body

    def __str__(self) -> str:
        return json.dumps(self._body, ensure_ascii=False)


def _note(name: str) -> Degraded:
    return Degraded(f"the model's server does not take {name}; it answers without")
