"""The connections to a search provider."""

import ssl

import pytest

from local.web.search import ProviderClient


@pytest.mark.parametrize(("address", "count"), [("http://localhost:8888", 0), ("https://api.search.test", 1)])
async def test_certificates_are_loaded_only_where_there_is_something_to_check(
    address: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[object] = []
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda context, *args, **kwargs: loaded.append(args))
    await ProviderClient("some", address, {}).close()
    assert len(loaded) == count
