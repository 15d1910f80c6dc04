"""How one query is to be answered, where its asker does not leave that to the settings."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from local.protocol.message import Data
from local.protocol.safety import Mode
from local.protocol.turn_tools import CLARIFICATION, PLAN_STEP, PROPOSE_PLAN, TODO_LIST

Json = dict[str, Any]
DEFAULT_MODEL = "default"  # as a model's name: whichever answers where nobody chooses
OWN = (CLARIFICATION, TODO_LIST, PROPOSE_PLAN, PLAN_STEP)  # what a turn does by itself, whatever it is for


class ClientCall(Data):
    """A call of one of the asker's own functions, which the asker is to make."""

    call_id: str
    function: str
    arguments: Json


class AnswerProfile(Data):
    """What an assistant of one kind is told beside the rest, and the tools that it is offered at most; None: all.
    `model` answers in place of the usual one."""

    name: str
    origin: str = ""
    tools: tuple[str, ...] | None = None
    model: str | None = None
    instructions: str = ""


class AnswerOptions(Data):
    """What an asker wants of one answer; None or empty leaves it to the settings. `functions` are those that the asker
    runs itself, as the model is told of them: an answer that calls any ends with its `client_calls`. `must_call` is the
    name of one of them, or "any". `allow` and `deny` narrow the tools of the system that the model is offered, and so
    does a `profile`, as it was when the query was asked. `mode` says what becomes of calls that need leave. With
    `remember` an exchange whose history the asker keeps is remembered all the same. `model` is the model that answers,
    now and in what follows in its conversation, whatever the profile says; "default" is the one of the settings."""

    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    max_tokens: int | None = None
    think: bool | None = None
    format: Json | None = None  # a JSON Schema that the answer follows
    functions: tuple[Json, ...] = ()
    must_call: str | None = None
    one_call: bool = False  # at most, in each message
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    remember: bool = False
    mode: Mode | None = None
    profile: AnswerProfile | None = None
    model: str | None = None

    @property
    def function_names(self) -> frozenset[str]:
        """The names of the asker's own functions."""
        return frozenset(function["function"]["name"] for function in self.functions)

    def offers(self, tool: str) -> bool:
        """Whether the model may be told of a tool of the system. A message in a given form could hold no call, so
        none is offered with a `format`."""
        if self.format is not None or tool in self.deny or tool in self.function_names:
            return False
        if self.profile is not None and self.profile.tools is not None and tool not in {*self.profile.tools, *OWN}:
            return False
        return self.allow is None or tool in self.allow

    def unknown(self, tools: Set[str]) -> list[str]:
        """The names in `allow` and `deny` that none of these tools has: perhaps they are misspelt."""
        return sorted({*(self.allow or ()), *self.deny} - tools)

    @property
    def sampling(self) -> Json:
        """The options of a model that are given, by Ollama's names."""
        names = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "seed", "stop")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return given | ({"stop": list(self.stop)} if self.stop is not None else {})

    @property
    def form(self) -> Json | None:
        """The JSON Schema of a whole message of the model: the answer's, a call's that must be made, or either."""
        if self.must_call is not None:
            return _either([_call(one["function"]) for one in self.functions if self._is_wanted(one)])
        if self.format is not None and self.functions:
            return _either([self.format, *(_call(one["function"]) for one in self.functions)])
        return self.format

    def _is_wanted(self, function: Json) -> bool:
        return self.must_call in ("any", function["function"]["name"])


def with_mode(options: AnswerOptions | None, mode: Mode | None) -> AnswerOptions | None:
    """An asker's options with the mode that counts for the query."""
    if mode is None:
        return options
    return AnswerOptions(mode=mode) if options is None else options.model_copy(update={"mode": mode})


def with_model(options: AnswerOptions | None, model: str | None) -> AnswerOptions | None:
    """An asker's options with the model that was chosen for the query, if there is one."""
    if model is None:
        return options
    return AnswerOptions(model=model) if options is None else options.model_copy(update={"model": model})


def _either(schemas: list[Json]) -> Json:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _call(function: Json) -> Json:
    return {
        "type": "object",
        "properties": {
            "name": {"const": function["name"], "type": "string"},
            "arguments": function.get("parameters") or {"type": "object"},
        },
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
