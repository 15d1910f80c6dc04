"""A tool on a second machine: a network namespace with an address, a clock and a folder of its own, which sees nothing
of the data directory. The cable between the two is pulled for half a minute; nothing is lost or happens twice.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from local.bus.messages import Grant, ToolRequest, ToolResult, arguments_digest
from local.cli.temporary_system import write_settings
from local.core.data_dir import RunDirectory
from local.run.participant import bus_of
from local.tools.grants import FOLDER, SigningKey
from tests.warm.warm_system import WarmSystem

HERE, THERE = "10.213.7.1", "10.213.7.2"
CUT_SECONDS = 30.0
SECONDS = 150.0
LETTERS = 8 * 1024 * 1024
BEHIND_SECONDS = 3600.0
RECEIPT_SECONDS = 2.0  # until the journal has committed a message: by its clock the message was sent then
BELL = f'''
import time
from pathlib import Path

from local.tools.tool import Tool

_time = time.time
time.time = lambda: _time() - {BEHIND_SECONDS}  # the clock of this machine


class BellTool(Tool):
    """Ring a bell."""

    name = "bell"
    effect = "write"
    timeout_seconds = 120.0

    async def run(self, times: int, text: str = "") -> str:
        with Path(__file__).with_name("rung.txt").open("a") as file:
            file.write(f"{{self.request().call_id}}\\n")
        if text:
            return f"it rang {{len(text)}} times. "
        return f"it rang {{times}} times. " + "x" * ({LETTERS} if times == 8 else 0)
'''


class Cable:
    """The two machines and what connects them."""

    def __init__(self, data_dir: Path, stack: ExitStack) -> None:
        self.name = f"v{os.getpid()}"
        hold = f"mount -t tmpfs none {data_dir} && ip link set lo up && echo held && exec sleep 600"
        holder = subprocess.Popen(["unshare", "-n", "-m", "sh", "-c", hold], stdout=subprocess.PIPE, text=True)
        stack.callback(holder.communicate)
        stack.callback(holder.kill)
        assert holder.stdout is not None
        if shutil.which("ip") is None or holder.stdout.readline() != "held\n":
            pytest.skip("network namespaces need root and iproute2")
        self.inside = ["nsenter", "-t", str(holder.pid), "-n", "-m"]
        _ip("link", "add", self.name, "type", "veth", "peer", "name", f"{self.name}p")
        stack.callback(_ip, "link", "del", self.name)
        _ip("link", "set", f"{self.name}p", "netns", str(holder.pid))
        _ip("addr", "add", f"{HERE}/24", "dev", self.name)
        _ip("link", "set", self.name, "up")
        _ip("addr", "add", f"{THERE}/24", "dev", f"{self.name}p", inside=self.inside)
        _ip("link", "set", f"{self.name}p", "up", inside=self.inside)

    def pull(self) -> None:
        _ip("link", "set", self.name, "down")

    def plug(self) -> None:
        _ip("link", "set", self.name, "up")


def _ip(*words: str, inside: list[str] | None = None) -> None:
    subprocess.run([*(inside or ()), "ip", *words], check=True)


@pytest.mark.thorough
def test_a_tool_on_another_machine_loses_nothing_when_the_cable_is_pulled(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    here, there, settings = tmp_path / "here", tmp_path / "there", tmp_path / "settings"
    bus = {"bus_pub_address": f"tcp://{HERE}:47811", "bus_sub_address": f"tcp://{HERE}:47812", "bus_security": "curve"}
    write_settings(
        settings,
        {
            "system": {
                **bus,
                "participants": ["generator", "gatekeeper"],
                "bus_clients": {"bell": ["tool"], "asker": ["tool.request."]},
            },
            "gatekeeper": {"allowed_tools": ["bell"]},
        },
    )
    (there / "settings" / "my_tools").mkdir(parents=True)
    (there / "settings" / "my_tools" / "bell.py").write_text(BELL)
    (there / "data" / "keys").mkdir(parents=True)
    here.mkdir()
    with ExitStack() as stack:
        cable = Cable(here, stack)
        system = stack.enter_context(WarmSystem(here, config_dir=settings, flags=["--backend", "stand_in"]))
        shutil.copy(here / "keys" / "bell.keys", there / "data" / "keys")
        words = ["my_tools.bell:BellTool", "--bus", f"{bus['bus_pub_address']},{bus['bus_sub_address']}"]
        words += ["--data-dir", str(there / "data"), "--config-dir", str(there / "settings")]
        tool = subprocess.Popen([*cable.inside, sys.executable, "-m", "local.run.participant", *words])
        stack.callback(tool.wait)
        stack.callback(tool.terminate)
        pool = stack.enter_context(ThreadPoolExecutor(32))
        client = stack.enter_context(httpx.Client(base_url=system.api_url, timeout=SECONDS, trust_env=False))

        def ask(times: int) -> dict[str, Any]:
            response = client.post("/query", json={"query": f"Ring the bell {times} times"})
            assert response.status_code == 200, response.text
            answer: dict[str, Any] = response.json()
            return answer

        _wait_for(client, "bell")
        asked = [pool.submit(ask, times) for times in (1, 2, 8)]
        asked[0].result()
        forged = asyncio.run(_call(here, SigningKey.of(tmp_path / "other"), "forged", "x"))
        assert forged.error is not None and forged.error.kind == "not_granted"
        begun = threading.Event()
        large = pool.submit(asyncio.run, _call(here, SigningKey.of(here / FOLDER), "large", "x" * LETTERS, begun))
        assert begun.wait(SECONDS)
        cable.pull()  # in the middle of the ranges of a blob
        end = time.monotonic() + CUT_SECONDS
        asked += [pool.submit(ask, times) for times in range(10, 16)]
        time.sleep(CUT_SECONDS - 2)
        assert ask(17)["tool_calls"] == []  # a tool that has been silent for so long is not offered
        time.sleep(max(0.0, end - time.monotonic()))
        assert not any(each.done() for each in [large, *asked[3:]])
        cable.plug()
        _wait_for(client, "bell")
        asked += [pool.submit(ask, times) for times in (21, 8)]
        asked[-1].result()
        psutil.Process(_pid(client, "proxy")).kill()
        asked.append(pool.submit(ask, 8))
        assert large.result().result == f"it rang {LETTERS} times. "
        answers = [each.result() for each in asked]
        calls = [call for answer in answers for call in answer["tool_calls"]]
        assert [(call["tool"], call["error"]) for call in calls] == [("bell", None)] * len(asked)
        rung = (there / "settings" / "my_tools" / "rung.txt").read_text().split()
        assert sorted(rung) == sorted(["large", *(call["call_id"] for call in calls)])
        for answer in answers:
            (call,) = answer["tool_calls"]
            assert call["result"].startswith(f"it rang {call['args']['times']} times. ")
            if call["args"]["times"] == 8:
                whole = client.get(f"/query/{answer['query_id']}/results/{call['call_id']}")
                assert len(whole.text) == LETTERS + len("it rang 8 times. ")
            spans = client.get(f"/query/{answer['query_id']}/trace").json()["spans"]
            (span,) = [span for span in spans if span["kind"] == "tool"]
            assert spans[0]["started"] <= span["started"] <= span["ended"] <= spans[0]["ended"] + RECEIPT_SECONDS
        assert sorted(path.name for path in (there / "data").rglob("*.db")) == ["bell.db"]
        assert not (here / "effects").exists()


async def _call(
    data_dir: Path, key: SigningKey, call_id: str, text: str, begun: threading.Event | None = None
) -> ToolResult:
    """Call the bell from the first machine, with a grant signed with that key; `begun` is set once the tool gets its
    arguments in ranges.
    """
    args = {"times": 1, "text": text}
    fields = {"call_id": call_id, "respondent_id": "A", "tool": "bell", "args_sha256": arguments_digest(args)}
    grant = Grant(**fields, expires_at=time.time() + SECONDS, key_id=key.key_id)
    grant = grant.model_copy(update={"signature": key.sign(grant.statement())})
    request = ToolRequest(query_id="q", call_id=call_id, tool="bell", args=args, grant=grant)
    async with bus_of("asker", RunDirectory(data_dir).running_bus(), data_dir) as bus:
        if begun is not None:
            bus.subscribe("blob.part.bell", lambda _: begun.set())
            await bus.ready()
        return await bus.request(request, ToolResult, SECONDS)


def _pid(client: httpx.Client, name: str) -> int:
    children = client.get("/health").json()["participants"]
    return next(int(each["pid"]) for each in children if each["name"] == name)


def _wait_for(client: httpx.Client, name: str) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        known = {each["name"]: each["state"] for each in client.get("/health").json()["participants"]}
        if known.get(name) == "ready":
            return
        time.sleep(0.2)
    raise AssertionError(known)
