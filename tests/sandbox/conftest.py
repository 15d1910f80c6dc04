"""Without what contains a command here there is no test of it."""

import pytest

from local.sandbox.sandbox import Sandbox


@pytest.fixture(autouse=True, scope="session")
def sandbox(machine_sandbox: Sandbox) -> Sandbox:
    return machine_sandbox
