"""Three NATS servers on addresses of the loopback interface, as processes."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import httpx

HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
SERVER = Path(sys.executable).with_name("nats-server")
IS_POSSIBLE = SERVER.exists() and sys.platform.startswith("linux")


def free_ports(count: int) -> list[int]:
    """Ports that are free on every host."""
    found: list[int] = []
    while len(found) < count:
        with socket.create_server((HOSTS[0], 0)) as first:
            port = first.getsockname()[1]
            try:
                for host in HOSTS[1:]:
                    socket.create_server((host, port)).close()
            except OSError:
                continue
        found.append(port)
    return found


class Cluster:
    """Its servers are named by their number; each has its folder below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._port, self._routes, self._monitor = free_ports(3)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def address(self, name: str) -> str:
        hosts = ",".join(f"{host}:{self._port}" for host in HOSTS)
        return f"nats://{hosts}/{name}?monitor={self._monitor}"

    def start(self, number: int, *, syncs: bool = True) -> None:
        folder = self.folder / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        routes = ", ".join(f'"nats://{host}:{self._routes}"' for host in HOSTS)
        config = folder / "server.conf"
        config.write_text(
            f'server_name: "{number}"\nlisten: "{HOSTS[number]}:{self._port}"\n'
            f'http: "{HOSTS[number]}:{self._monitor}"\nmax_payload: 4MB\n'
            f'jetstream {{ store_dir: "{folder}", max_mem: 64M, max_file: 1G'
            f"{', sync_interval: always' if syncs else ''} }}\n"
            f'cluster {{ name: test, listen: "{HOSTS[number]}:{self._routes}", routes: [{routes}] }}\n'
        )
        with (folder / "log").open("ab") as log:
            self._processes[number] = subprocess.Popen([SERVER, "-c", config], stdout=log, stderr=log)

    def kill(self, number: int) -> None:
        self._processes[number].kill()
        self._processes[number].wait()

    async def leader(self, stream: str) -> int:
        """The server that leads a stream."""
        async with httpx.AsyncClient(trust_env=False) as http:
            while True:
                for host in HOSTS:
                    try:
                        answer = await http.get(f"http://{host}:{self._monitor}/jsz?streams=1&accounts=1")
                    except httpx.TransportError:
                        continue
                    for account in answer.json().get("account_details", []):
                        for found in account.get("stream_detail", []):
                            if found["name"] == stream and found["cluster"].get("leader"):
                                return int(found["cluster"]["leader"])
                await asyncio.sleep(0.05)

    async def ready(self, number: int = 0) -> None:
        """Returns when a server knows who was elected to manage the streams."""
        async with httpx.AsyncClient(trust_env=False) as http:
            while True:
                try:
                    answer = await http.get(f"http://{HOSTS[number]}:{self._monitor}/jsz")
                    if answer.json().get("meta_cluster", {}).get("leader"):
                        return
                except httpx.TransportError:
                    pass
                await asyncio.sleep(0.05)

    def stop(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
