"""The forwarder: who may bind, who may connect, and whether it turns."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from local.bus.address import BusAddress, CurveKeys
from local.bus.proxy import Proxy, ProxyFailed, load_or_make_keys


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
    address = BusAddress(*where, keys=load_or_make_keys(tmp_path) if keys else None)
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


def test_keys_are_made_once_and_for_their_owner_alone(tmp_path: Path) -> None:
    keys = load_or_make_keys(tmp_path / "data")
    path = tmp_path / "data" / "bus.keys"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert load_or_make_keys(tmp_path / "data") == keys
    assert isinstance(keys, CurveKeys)
    assert len({keys.server_public, keys.server_secret, keys.client_public, keys.client_secret}) == 4


@pytest.mark.parametrize(
    "content", [b"", b"short\n" * 4, b"\xff" * 100, ("'" * 40 + "\n").encode() * 4, b"0" * 40 + b"\n"], ids=repr
)
def test_a_damaged_key_file_is_named_with_what_to_do(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bus.keys").write_bytes(content)
    with pytest.raises(ProxyFailed, match=r"bus\.keys does not hold four keys.*remove it"):
        load_or_make_keys(tmp_path)
