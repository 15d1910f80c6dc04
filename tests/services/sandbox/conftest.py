"""What contains a command here, or else no test of it; in CI there is one."""

import os

import pytest

from local.errors import SandboxMissing
from local.services.sandbox.sandbox import sandbox_of_this_machine


@pytest.fixture(autouse=True, scope="session")
def sandbox() -> None:
    try:
        sandbox_of_this_machine()
    except SandboxMissing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))
