"""What a process writes after its fork lies on pages of its own."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import gc, json, os, sys
from local.runtime.template import settle

PAGE = 4096
gc.disable()
kept = [bytes(n % 450) for n in range(80_000)]
del kept[::2]  # a hole beside each that is left
pages = {id(each) // PAGE for each in kept}
if sys.argv[1] == "settled":
    settle()
mine = [bytes(n % 450 + 1) for n in range(20_000)]
print(json.dumps({"among the old": sum(id(each) // PAGE in pages for each in mine), "frozen": gc.get_freeze_count()}))
"""


def found(state: str) -> dict[str, int]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, state], capture_output=True, text=True, check=True)
    seen: dict[str, int] = json.loads(done.stdout)
    return seen


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="it is about CPython's memory")
def test_new_objects_fill_no_holes_among_those_that_are_shared() -> None:
    plain, settled = found("as it is"), found("settled")
    assert plain["among the old"] > 10_000
    assert settled["among the old"] < 500
    assert settled["frozen"] > 0
