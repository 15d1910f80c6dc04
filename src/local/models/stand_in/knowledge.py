"""What the stand-in knows by itself: a few facts, and sums such as "what is 17 * 23"."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownFact:
    """`text` answers a question that matches every one of the patterns `about`."""

    about: tuple[str, ...]
    text: str


# The more special fact stands first: the first that matches is the answer.
FACTS = (
    KnownFact((r"capital", r"\bfrance\b"), "The capital of France is Paris."),
    KnownFact((r"capital", r"\bgermany\b"), "The capital of Germany is Berlin."),
    KnownFact((r"capital", r"\bitaly\b"), "The capital of Italy is Rome."),
    KnownFact((r"capital", r"\bjapan\b"), "The capital of Japan is Tokyo."),
    KnownFact(
        (r"\bgil\b|global interpreter lock", r"\bwhy\b|introduced|reason"),
        "The GIL was introduced because CPython manages memory by reference counting: one lock around the interpreter "
        "keeps those counts right without a lock on every object, and it made C extensions simple to write.",
    ),
    KnownFact(
        (r"\bgil\b|global interpreter lock",),
        "The GIL (Global Interpreter Lock) is a mutex in CPython that lets only one thread execute Python bytecode at "
        "a time. It protects reference counts and limits CPU-bound threads; Python 3.13 has a build without it.",
    ),
    KnownFact((r"boil", r"water"), "Water boils at 100 °C (212 °F) at sea level."),
    KnownFact((r"speed of light",), "Light travels at 299,792,458 metres a second in a vacuum."),
)


def look_up(question: str) -> str | None:
    """The fact that answers the question, or None."""
    lower = question.lower()
    for fact in FACTS:
        if all(re.search(pattern, lower) for pattern in fact.about):
            return fact.text
    return None


Number = int | float

_WORDS = {"times": "*", "multiplied by": "*", "plus": "+", "minus": "-", "divided by": "/", "×": "*", "÷": "/"}
_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
# A sum must be asked for, so that dates and telephone numbers are left alone; its length keeps the work small.
_EXPRESSION = re.compile(
    r"(?:^|what is|what's|calculate|compute|how much is|work out)\s*([\d(-][\d\s().+*/%-]{1,80}[\d)])"
)


def work_out(question: str) -> str | None:
    """`17 * 23 = 391` for the first sum in the question, or None if there is none."""
    text = question.lower()
    for word, sign in _WORDS.items():
        text = text.replace(word, sign)
    found = _EXPRESSION.search(re.sub(r"(?<=\d)\s*x\s*(?=\d)", " * ", text))
    if not found:
        return None
    expression = found[1].strip()
    try:
        tree = ast.parse(expression, mode="eval").body
        return f"{expression} = {_value(tree):,}" if isinstance(tree, ast.BinOp) else None
    except ZeroDivisionError:
        return f"{expression} cannot be worked out: it divides by zero."
    except (SyntaxError, ValueError, OverflowError):
        return None


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
    raise ValueError("not a sum of numbers")
