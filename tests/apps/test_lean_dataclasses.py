"""Data classes whose functions are compiled when they are called are like all others."""

import subprocess
import sys

DEFINED = """
import dataclasses, sys
from dataclasses import FrozenInstanceError, dataclass, field

@dataclass(frozen=True, slots=True, order=True)
class Point:
    x: int
    y: list = field(default_factory=list, compare=False)

@dataclass(frozen=True, order=True)
class Further(Point):
    z: int = 0

@dataclass
class Node:
    children: list

def refused(call):
    try:
        call()
    except (FrozenInstanceError, TypeError) as error:
        return f"{type(error).__name__}: {error}"

node = Node([])
node.children.append(node)
a, b, c = Point(1, [2]), Point(1, [3]), Further(1, [2], 5)
print(a, c, node, a == b, a == c, a != Point(2), hash(a) == hash(b), a < Point(2), Point(2) <= a,)
print(sorted([c, Further(0)]))
print(refused(lambda: a < c), refused(lambda: a < 1), refused(lambda: hash(node)))
print(refused(lambda: setattr(a, "x", 3)), refused(lambda: delattr(c, "z")), refused(lambda: Point()))
print(dataclasses.replace(a, x=4), dataclasses.asdict(c), Point.__repr__.__name__, Point.__eq__.__qualname__, {a: 1}[b])
"""
COUNTED = """
import builtins, dataclasses
{}
executed = []
run, builtins.exec = exec, lambda text, *names: (executed.append(text), run(text, *names))
@dataclasses.dataclass(frozen=True, order=True)
class Point:
    x: int
made = len(executed)
assert Point(1) == Point(1) and Point(2) == Point(2)
print(made, len(executed))
"""
LEAN = "import local.apps.lean_dataclasses"


def test_they_compare_show_themselves_and_refuse_to_change_as_any_other() -> None:
    assert _said(LEAN + DEFINED) == _said(DEFINED)


def test_a_function_is_compiled_when_it_is_called_first() -> None:
    ours, others = _said(COUNTED.format(LEAN)).split(), _said(COUNTED.format("")).split()
    assert (ours, others) == (["1", "2"], ["10", "10"])


def _said(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
