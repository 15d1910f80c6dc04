"""Plant known faults, one at a time, and report which of them the tests do not find.

    .venv/bin/python scripts/plant_faults.py [capability …] [--jobs N] [--tests PATH …]

Each file `tests/faults/<capability>.yaml` holds a list of faults: `file` (below `src/local`), `find` (text that occurs
there exactly once), `replace`, and `what` would go wrong for a user. A fault is planted in a copy of the source tree,
and the tests in `tests/<capability>` (or those of the entry's `tests`, or of `--tests`) run against the copy, the files
that import the faulty module first, until one fails, which is printed. The exit status is the number of faults that no
test found, at most 100. This takes a while, so it is run by hand: after tests were removed or merged, and never in CI.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
FAULTS, SOURCE = ROOT / "tests" / "faults", ROOT / "src" / "local"
SECONDS = 300
ALL_PASSED, NOTHING_COLLECTED = 0, 5


@dataclass(frozen=True)
class Fault:
    """One change to one source file that makes LoCAL2 misbehave as `what` says."""

    file: str
    find: str
    replace: str
    what: str
    tests: list[str] = field(default_factory=list)


def faults_of(capability: str, instead: Sequence[str]) -> list[Fault]:
    """The faults of one capability. Raises SystemExit naming the entry that does not fit the source."""
    entries = yaml.safe_load((FAULTS / f"{capability}.yaml").read_text("utf-8")) or []
    faults = []
    for number, entry in enumerate(entries, 1):
        fault = Fault(**{"tests": [f"tests/{capability}"], **entry, **({"tests": list(instead)} if instead else {})})
        count = (SOURCE / fault.file).read_text("utf-8").count(fault.find)
        if count != 1:
            sys.exit(f"{capability}.yaml, entry {number}: its text occurs {count} times in {fault.file}; expected once")
        faults.append(fault)
    return faults


def first_failure(fault: Fault) -> str:
    """The test that fails once the fault is planted, empty without one. A run that hangs counts as a failure."""
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        shutil.copytree(SOURCE, Path(folder) / "local")  # with compiled modules: only the faulty one is recompiled
        planted = Path(folder) / "local" / fault.file
        planted.write_text(planted.read_text("utf-8").replace(fault.find, fault.replace), "utf-8")
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        results = []
        for files in filter(None, near_and_far(fault)):
            results.append(first_failed(files, environment))
            if results[-1]:
                return results[-1]
    if not any(result == "" for result in results):
        sys.exit(f"there are no tests for {fault.what!r} at {', '.join(fault.tests)}")
    return ""


def first_failed(files: list[str], environment: dict[str, str]) -> str | None:
    """The first of the tests in some files that fails, empty without one; None where there are no tests."""
    command = [sys.executable, "-m", "pytest", "-xq", "-n", "0", "-p", "no:cacheprovider", *files]
    try:
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} s"
    if run.returncode == NOTHING_COLLECTED or "file or directory not found" in run.stderr:
        return None
    if run.returncode == ALL_PASSED:
        return ""
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    return failed[0] if failed else f"pytest ended with status {run.returncode}"


def near_and_far(fault: Fault) -> tuple[list[str], list[str]]:
    """The test files of a fault that import the faulty module, and the others."""
    if any("::" in name for name in fault.tests):
        return fault.tests, []
    module = ".".join(("local", *Path(fault.file).with_suffix("").parts))
    files = [
        path
        for name in fault.tests
        for path in (sorted((ROOT / name).rglob("test_*.py")) if (ROOT / name).is_dir() else [ROOT / name])
    ]
    near, far = list[str](), list[str]()
    for path in dict.fromkeys(files):
        imports_it = path.exists() and module in path.read_text("utf-8")
        (near if imports_it else far).append(str(path.relative_to(ROOT)))
    return near, far


def main() -> None:
    """Run the faults of the named capabilities, or of all."""
    known = sorted(path.stem for path in FAULTS.glob("*.yaml"))
    parser = argparse.ArgumentParser(description="Plant known faults and report which of them no test finds.")
    parser.add_argument("capabilities", nargs="*", default=known, help="all by default")
    parser.add_argument("--jobs", type=int, default=1, help="faults tried at the same time")
    parser.add_argument("--tests", nargs="+", default=[], help="tests to run instead of those of the capability")
    given = parser.parse_args()
    missed = 0
    for capability in given.capabilities:
        faults = faults_of(capability, given.tests)
        with ThreadPoolExecutor(given.jobs) as pool:
            for fault, failure in zip(faults, pool.map(first_failure, faults), strict=True):
                verdict = f"found   {capability}: {fault.what} ({failure})"
                if not failure:
                    verdict = f"MISSED  {capability}: {fault.what}"
                print(verdict, flush=True)
                missed += not failure
    print(f"{missed} not found")
    sys.exit(min(missed, 100))


if __name__ == "__main__":
    main()
