"""`local2 model check`: both self-tests of a model, by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from local.critic.self_test import ITEMS
from local.memory.classifier_test import SENTENCES
from local.models.chat import ContentDelta, Delta, Done, Usage
from local.models.hub import ModelStock
from local.run import model_check
from local.run.model_check import check

DEFAULTS = Path(__file__).parents[2] / "config"


class GoodModel:
    """Knows the right answers, and says so in JSON."""

    def __init__(self) -> None:
        self.calls = 0

    async def chat(self, model: str, messages: list[dict[str, Any]], **more: Any) -> AsyncIterator[Delta]:
        self.calls += 1
        assert model == "tiny" and more["options"]["temperature"] == 0
        yield ContentDelta(json.dumps(self._reply(messages[-1]["content"])))
        yield Done(Usage(10, 5), model)

    async def close(self) -> None:
        pass

    def _reply(self, asked: str) -> dict[str, Any]:
        for sentence in SENTENCES:
            if asked == sentence.text:
                facts = [{"slot": f"my {value}", "value": value} for value in sentence.values]
                return {"intent": "other", "entities": [], "facts": facts}
        item = next(item for item in ITEMS if f"> {item.question}" in asked)
        at, wrong_at = (asked.find(f"> {answer}\n") for answer in (item.right, item.wrong))
        if item.compared:
            return {"feedback": "", "winner": "A" if at < wrong_at else "B"}
        return {"feedback": "", "score": 5 if at >= 0 else 1}


@pytest.fixture
def settings(tmp_path: Path) -> list[Path]:
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "models.yaml").write_text(
        "providers:\n  house: {kind: openai, url: 'http://127.0.0.1:1/v1'}\n"
    )
    return [DEFAULTS, tmp_path / "settings"]


async def test_a_model_is_asked_all_items_and_the_result_is_stored(
    settings: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, shown = GoodModel(), list[str]()
    monkeypatch.setattr(model_check, "connect", lambda routing, timeout_seconds: model)
    stock = ModelStock(tmp_path / "models", "", "http://127.0.0.1:1")
    await check(settings, tmp_path, stock, "house/tiny", shown.append)
    text = "\n".join(shown)
    assert "tiny as a judge" in text and "  ok   right 5.0  wrong 1.0      What is 17 + 25?" in text
    assert "passed: 20 of 20 right, mean difference 4.0 (needed: 80% of 20, and 1); 400 + 200 tokens" in text
    assert "tiny as a classifier" in text and "will not grade answers" not in text
    assert len(list((tmp_path / "self_tests").iterdir())) == 2
    asked = model.calls
    await check(settings, tmp_path, stock, "house/tiny", shown.append)
    assert model.calls == asked and "stored before" in shown[-1] + shown[-2]


async def test_without_a_server_the_error_says_so(settings: list[Path], tmp_path: Path) -> None:
    stock = ModelStock(tmp_path / "models", "", "http://127.0.0.1:1")
    with pytest.raises(Exception, match="is not here"):
        await check(settings, tmp_path, stock, "nonsense", lambda _: None)
