"""The forwarder: who may bind, who may connect, and whether it turns."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from local.bus.proxy import Proxy, ProxyFailed
from local.core.bus_address import BusAddress


def test_the_sockets_belong_to_their_owner_alone(ipc: BusAddress, run_dir: Path) -> None:
    proxy = Proxy(ipc)
    assert {stat.S_IMODE(path.stat().st_mode) for path in run_dir.iterdir()} == {0o600}
    proxy.close()


def test_statistics_prove_that_the_loop_turns(ipc: BusAddress) -> None:
    proxy = Proxy(ipc)
    assert proxy.statistics() == {"frames_in": 0, "bytes_in": 0, "frames_out": 0, "bytes_out": 0}
    proxy.close()


@pytest.mark.parametrize("keys", [None, "with keys"])
def test_a_second_proxy_on_the_same_tcp_address_fails_by_name(
    keys: str | None, free_port: Callable[[], int], tmp_path: Path
) -> None:
    where = [f"tcp://127.0.0.1:{free_port()}" for _ in range(2)]
    address = BusAddress(*where, keyring=tmp_path if keys else None)
    proxy = Proxy(address)
    with pytest.raises(ProxyFailed, match=f"cannot bind the bus to {where[0]}: Address already in use"):
        Proxy(address)
    assert proxy.statistics()["frames_in"] == 0
    proxy.close()
    Proxy(address).close()


@pytest.mark.parametrize("where", ["nonsense", "tcp://127.0.0.1:99999", "ipc:///does/not/exist", "ipc://" + "x" * 200])
def test_an_address_that_cannot_be_bound_is_named(where: str) -> None:
    with pytest.raises(ProxyFailed, match="cannot bind the bus to"):
        Proxy(BusAddress(where, where))
