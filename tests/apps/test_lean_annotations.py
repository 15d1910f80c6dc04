"""Annotations that are compiled once mean what they meant."""

import subprocess
import sys

PROGRAM = """
import builtins, sys, typing
compiled = []
build, builtins.compile = compile, lambda text, *how, **more: (compiled.append(text), build(text, *how, **more))[1]
if "lean" in sys.argv:
    import local.apps.lean_annotations
class One:
    a: "Kept"
    b: "Kept | None"
class Other:
    a: "Kept"
compiled.clear()
hints = [typing.get_type_hints(One, {"Kept": int}), typing.get_type_hints(Other, {"Kept": str})]
print(hints, compiled.count("Kept"))
"""


def test_an_annotation_is_compiled_once_and_looked_up_where_it_stands() -> None:
    meaning = "[{'a': <class 'int'>, 'b': int | None}, {'a': <class 'str'>}]"
    said = [
        subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True).stdout
        for how in ("plain", "lean")
    ]
    assert said == [f"{meaning} 2\n", f"{meaning} 1\n"]
