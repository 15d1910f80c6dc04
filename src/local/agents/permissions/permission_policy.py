"""Which calls are made, which are denied, and about which a person is asked: the owner's lists, then the mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from local.agents.permissions.listed_call import ListedCall
from local.protocol.plan_messages import PlanMode
from local.protocol.safety import NOBODY_THERE, Category, Mode, Safety


class Ruling(StrEnum):
    """What becomes of a call."""

    GIVEN = "given"
    ASKED = "asked"
    DENIED = "denied"


TABLE: Final[dict[Mode, dict[Safety, Ruling]]] = {
    "default": {"L0": Ruling.GIVEN, "L1": Ruling.ASKED, "L2": Ruling.ASKED},
    "plan": {"L0": Ruling.GIVEN, "L1": Ruling.DENIED, "L2": Ruling.DENIED},
    "acceptEdits": {"L0": Ruling.GIVEN, "L1": Ruling.GIVEN, "L2": Ruling.ASKED},
    "dontAsk": {"L0": Ruling.GIVEN, "L1": Ruling.DENIED, "L2": Ruling.DENIED},
    "bypassPermissions": {"L0": Ruling.GIVEN, "L1": Ruling.GIVEN, "L2": Ruling.GIVEN},
}
DENIES: Final[dict[Mode, str]] = {
    "plan": "only what reads is done before a plan is approved; propose one",
    "dontAsk": "it needs leave, and nobody is there who could be asked",
}
_CERTAINTY: Final[dict[Safety, str]] = {
    "L0": "It only reads.",
    "L1": "What it changes can be undone.",
    "L2": "What it does may not be undone.",
}


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """A call, with what is known of its tool from the tool itself. `mode` is the query's, None that of the settings;
    `refusal` is why the rule of taint would not make it; `plan` how the turn runs whose plan is approved, None while
    there is none; `must_ask` why a hook wants a person to decide."""

    tool: str
    args: Mapping[str, Any]
    safety: Safety
    category: Category
    mode: Mode | None = None
    tainted: bool = False
    refusal: str = ""
    plan: PlanMode | None = None
    must_ask: str = ""


class Judgement(NamedTuple):
    """What becomes of a call, and a sentence that says why."""

    leave: Ruling
    why: str = ""


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """The owner's. What is on the list of `denied` is, in every mode; then come the `allowed`, then the mode.

    In a tainted conversation a tool that is allowed as a whole asks like any other, and so does what could be undone.
    """

    denied: Sequence[ListedCall] = ()
    allowed: Sequence[ListedCall] = ()
    mode: Mode = "default"
    may_bypass: bool = False

    @property
    def denied_tools(self) -> tuple[str, ...]:
        """The tools that are denied whatever they are called with."""
        return tuple(entry.tool for entry in self.denied if entry.argv is None)

    def judge(self, call: JudgedCall) -> Judgement:
        """What becomes of a call that nobody has decided."""
        if any(entry.may_be_call(call.tool, call.args) for entry in self.denied):
            return Judgement(Ruling.DENIED, "it is on the owner's list of what is denied")
        listed = any(entry.is_call(call.tool, call.args) and _holds(entry, call) for entry in self.allowed)
        if listed and not call.must_ask:
            return Judgement(Ruling.GIVEN)
        mode = self._mode_of(call)
        leave = TABLE[mode][call.safety]
        if mode == "plan" and call.safety != "L0":
            return Judgement(Ruling.DENIED, DENIES["plan"])
        if call.refusal and mode != "bypassPermissions":
            leave = Ruling.DENIED if mode == NOBODY_THERE else Ruling.ASKED
        elif call.tainted and leave is Ruling.GIVEN and mode == "acceptEdits" and call.safety != "L0":
            leave = Ruling.ASKED
        if call.must_ask and leave is Ruling.GIVEN:
            leave = Ruling.DENIED if mode == NOBODY_THERE else Ruling.ASKED
        if leave is Ruling.DENIED:
            return Judgement(leave, call.refusal or call.must_ask or DENIES[mode])
        return Judgement(leave, call.refusal or call.must_ask or _CERTAINTY[call.safety])

    def _mode_of(self, call: JudgedCall) -> Mode:
        mode = call.mode or self.mode
        if mode in ("plan", "default") and call.plan is not None:
            return "acceptEdits" if call.plan == "acceptEdits" else "default"
        return "default" if mode == "bypassPermissions" and not self.may_bypass else mode


def _holds(entry: ListedCall, call: JudgedCall) -> bool:
    return entry.argv is not None or not (call.tainted or call.refusal)
