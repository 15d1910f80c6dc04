"""Works out sums such as "what is 17 * 23"."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable

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
