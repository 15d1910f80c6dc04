"""Large fields travel as references, and nothing else can pass for one."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local.bus.blobs import BlobStore
from local.bus.envelope import FIELD_LIMIT, is_packed, needs_packing
from local.core.errors import BlobNotStored, MalformedFrame

LARGE = "x" * (FIELD_LIMIT + 1)


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def pack(store: BlobStore, value: dict[str, Any]) -> bytes:
    """A payload as it travels."""
    payload = json.dumps(value).encode()
    return store.pack(payload) if needs_packing(payload) else payload


def unpack(store: BlobStore, payload: bytes) -> Any:
    """What its reader sees."""
    return json.loads(store.unpack(payload) if is_packed(payload) else payload)


def files(tmp_path: Path) -> list[Path]:
    """Everything in the store."""
    return [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_large_field_leaves_a_small_payload_and_comes_back(store: BlobStore) -> None:
    value = {"answer": LARGE, "pages": ["ä" * FIELD_LIMIT], "small": 1}
    packed = pack(store, value)
    assert len(packed) < 400
    assert unpack(store, packed) == value


def test_a_small_payload_is_left_alone(store: BlobStore, tmp_path: Path) -> None:
    assert pack(store, {"answer": "short"}) == b'{"answer": "short"}'
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    "value",
    [
        {"a": '{"$blob":"0","size":1}'},
        {"a": "$blob"},
        {"a": {"$blob": "0" * 64, "size": 1}},
        {"a": {"$blob": "0" * 64}},
        {"a": {"deeper": {"$blob": "0" * 64, "size": 1}}},
        {"a": [{"$blob": "0" * 64, "size": 1}]},
        {"$blob": "0" * 64, "size": 1},
        {"a": LARGE, "b": {"$blob": "0" * 64, "size": 1}},
    ],
    ids=str,
)
def test_what_looks_like_a_reference_is_not_taken_for_one(store: BlobStore, value: dict[str, Any]) -> None:
    assert unpack(store, pack(store, value)) == value


json_values = st.recursive(
    st.none() | st.integers() | st.sampled_from(["$blob", "size", LARGE, "0" * 64]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["$blob", "size", "a"]), inner),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.dictionaries(st.sampled_from(["$blob", "size", "a", "b"]), json_values))
def test_every_payload_comes_back_as_it_was(store: BlobStore, value: dict[str, Any]) -> None:
    assert unpack(store, pack(store, value)) == value


@pytest.mark.parametrize(
    "reference", ["0" * 64, "../../../etc/passwd", "", "G" * 64, "0" * 63, 5, None, ["x"], "\0" * 64, "k" * 100_000]
)
def test_a_reference_that_leads_nowhere_is_refused(store: BlobStore, reference: object) -> None:
    payload = json.dumps({"answer": {"$blob": reference, "size": 1}}).encode()
    with pytest.raises(MalformedFrame, match="not in the store") as caught:
        store.unpack(payload)
    assert len(str(caught.value)) < 200


def test_a_damaged_blob_is_refused(store: BlobStore, tmp_path: Path) -> None:
    packed = pack(store, {"answer": LARGE})
    (blob,) = files(tmp_path)
    blob.write_bytes(blob.read_bytes()[:-1])
    with pytest.raises(MalformedFrame, match="is damaged"):
        store.unpack(packed)


@pytest.mark.parametrize("data", [b"\x89PNG", b"", b"[NaN]", b'"\xff"'])
def test_a_reference_to_an_attachment_is_refused(store: BlobStore, data: bytes) -> None:
    payload = json.dumps({"answer": {"$blob": store.put(data), "size": len(data)}}).encode()
    with pytest.raises(MalformedFrame, match="not a field's JSON"):
        store.unpack(payload)


def test_the_same_content_is_one_file_also_when_written_at_once(store: BlobStore, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(store.put, [b"same" * 50_000] * 32))
    assert len(names) == len(files(tmp_path)) == 1
    assert store.get(names.pop()) == b"same" * 50_000


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BlobNotStored, match=r"could not be stored in .*file"):
        BlobStore(tmp_path / "file").put(b"data")
