"""Looking how the memory is costs nothing, however much it holds: it is done each second."""

from typing import Any

from local.memory import service as status
from local.memory import vectors


async def test_counting_what_waits_reads_no_other_engram(service: Any) -> None:
    def plans(db: Any) -> list[str]:
        asked: list[str] = []
        db.set_trace_callback(asked.append)
        status.counts(db)
        vectors.is_any_wanted(db)
        db.set_trace_callback(None)
        return [row["detail"] for sql in asked for row in db.execute(f"EXPLAIN QUERY PLAN {sql}")]

    scans = [plan for plan in await service._store.read(plans) if "engrams" in plan]
    assert len(scans) == 4
    assert all("engrams_not_" in plan or "engrams_unparsed" in plan for plan in scans), scans
