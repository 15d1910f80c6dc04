"""A participant's settings as a form, made from their JSON Schema. They are read and changed over HTTP, so this part of
the window needs the API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import yaml
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from local.core.errors import LocalError
from local.desktop.bus_feed import BusFeed
from local.desktop.style import label, mono, named, prose, push_button, styled

Json = dict[str, Any]
MOST_NUMBERS = 100_000  # a longer range is typed


class SettingsSource(Protocol):
    """Where settings are read and changed. Each method blocks, and raises `LocalError` if the API is not there or
    refuses."""

    def files(self) -> list[Json]:
        """Every file with its `name` and the participants that read it (`read_by`)."""

    def show(self, name: str) -> Json:
        """One file: `schema`, `keys` with their texts, `values`, `defaults`, `file` and `restart_needed`."""

    def change(self, name: str, values: Mapping[str, Any], reset: Sequence[str]) -> Json:
        """Change some values; returns what `show` does."""


class Field(NamedTuple):
    """One setting on the screen: its editor, and the functions that read and set the editor's value."""

    editor: QWidget
    value: Callable[[], Any]  # raises `ValueError` with a sentence
    put: Callable[[Any], object]


class SettingsForm(QWidget):
    """The settings of one participant. They are read when they are first shown."""

    def __init__(self, participant: str, feed: BusFeed, source: SettingsSource, restart: Callable[[], object]) -> None:
        super().__init__()
        self.participant, self._feed, self._source = participant, feed, source
        self.fields: dict[str, Field] = {}
        self._name, self._shown = "", Json()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        self.area = named(QScrollArea(), f"Settings of {participant}")
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        column.addWidget(self.area, 1)
        foot = QHBoxLayout()
        foot.setContentsMargins(12, 4, 12, 10)
        self.note = named(label("", "soft", wraps=True), f"About the settings of {participant}")
        foot.addWidget(self.note, 1)
        self.restart = push_button("Restart", "", f"Restart {participant}, to use the changes", restart)
        self.restart.hide()
        self.again = push_button("Read again", "", f"Read the settings of {participant} again", self.load)
        self.save = push_button("Save", "accent", f"Save the settings of {participant}", self._save)
        self.save.setEnabled(False)
        for button in (self.restart, self.again, self.save):
            foot.addWidget(button)
        column.addLayout(foot)

    def load(self) -> None:
        """Read the settings again."""
        self.note.setText("reading …")
        self._feed.aside(self._read, self._receive)

    def changes(self) -> tuple[Json, list[str]]:
        """Return what differs from the settings in use: the new values, and the keys to reset to their default. Raises
        `ValueError` with a sentence.
        """
        values, reset, before = Json(), list[str](), self._shown.get("values") or {}
        for key, field in self.fields.items():
            value = field.value()
            if value != before.get(key):
                values[key] = value
        for key in [each for each in values if values[each] == self._shown["defaults"].get(each, ...)]:
            del values[key]
            reset.append(key)
        return values, reset

    def _read(self) -> Json:
        if not self._name:
            files = self._source.files()
            found = [each["name"] for each in files if self.participant in each["read_by"]]
            if not found:
                return {}
            self._name = found[0]
        return self._source.show(self._name)

    def _receive(self, shown: Json | LocalError) -> None:
        if isinstance(shown, LocalError):
            self.note.setText(f"Settings are changed over HTTP, and the API does not answer: {shown}")
        elif not shown:
            self.note.setText("There are no settings of its own.")
        else:
            self._show(shown)

    def _show(self, shown: Json, note: str = "") -> None:
        self._shown, self.fields = shown, {}
        page = styled(QWidget(), "sheet")
        column = QVBoxLayout(page)
        column.setContentsMargins(14, 12, 14, 12)
        column.setSpacing(4)
        for text in shown["about"]:
            column.addWidget(label(text, "soft", wraps=True))
        if shown.get("problem"):
            column.addWidget(label(f"The file is not valid, and not in use: {shown['problem']}", "bad", wraps=True))
        for key, property_ in shown["schema"].get("properties", {}).items():
            self._add(column, key, property_)
        column.addStretch(1)
        self.area.setWidget(page)
        self.note.setText(note or f"Changes are written to {shown['file']}.")
        self._changed()

    def _add(self, column: QVBoxLayout, key: str, property_: Json) -> None:
        values, defaults = self._shown.get("values") or {}, self._shown["defaults"]
        value, standard = values.get(key, property_.get("default")), defaults.get(key)
        title = f"{self.participant}: {key.replace('_', ' ')}"
        field = field_of(property_, value, self._changed)
        named(field.editor, title, " ".join(self._shown["keys"].get(key) or ()))
        head = QHBoxLayout()
        head.setContentsMargins(0, 10, 0, 0)
        font = prose(10.5)
        font.setWeight(font.Weight.DemiBold)
        head.addWidget(label(key.replace("_", " "), font=font))
        head.addStretch(1)
        source = (self._shown.get("sources") or {}).get(key)
        origin = "default" if source is None else f"from {source['name']}"
        head.addWidget(label(origin, "faint", font=mono(9)))
        column.addLayout(head)
        for text in (self._shown["keys"].get(key) or ())[:1]:
            column.addWidget(label(text, "faint", font=prose(9.5), wraps=True))
        column.addWidget(field.editor)
        if is_secret(property_):
            field.editor.setEnabled(False)
            column.addWidget(label("A secret: set it with `local2 secret set`, or on the page.", "faint"))
            return
        if value != standard:
            row = QHBoxLayout()
            reset = push_button("Reset", "quiet", f"{title}: reset to the default", partial(field.put, standard))
            row.addWidget(label(f"default: {in_line(standard)[:80]}", "faint", font=mono(9)))
            row.addStretch(1)
            row.addWidget(reset)
            column.addLayout(row)
        self.fields[key] = field

    def _changed(self) -> None:
        try:
            values, reset = self.changes()
        except ValueError as error:
            self.note.setText(str(error))
            self.save.setEnabled(False)
            return
        count = len(values) + len(reset)
        self.save.setEnabled(bool(count))
        self.save.setText(f"Save {count}" if count > 1 else "Save")

    def _save(self) -> None:
        values, reset = self.changes()
        self.save.setEnabled(False)
        self.note.setText("saving …")
        self._feed.aside(lambda: self._source.change(self._name, values, reset), self._saved)

    def _saved(self, shown: Json | LocalError) -> None:
        if isinstance(shown, LocalError):
            self.note.setText(f"Not saved: {shown}")
            self.save.setEnabled(True)
            return
        who = ", ".join(shown["restart_needed"])
        self._show({**self._shown, **shown}, f"Saved. The change takes effect at the next start of {who}.")
        self.restart.setVisible(self.participant in shown["restart_needed"])


def field_of(property_: Json, value: Any, changed: Callable[[], object]) -> Field:
    """Return the editor of one setting: a list of choices, a switch, a number in its range, a text, or for everything
    else a line of YAML.
    """
    kind, choices = property_.get("type"), property_.get("enum")
    if choices:
        return _choice([str(each) for each in choices], value, changed)
    if kind == "boolean":
        return _switch(value, changed)
    least, most = property_.get("minimum"), property_.get("maximum")
    if kind == "integer" and least is not None and most is not None and most - least <= MOST_NUMBERS:
        return _number(int(least), int(most), value, changed)
    line = QLineEdit(str(value) if kind == "string" else in_line(value))
    line.textChanged.connect(lambda: changed())
    if is_secret(property_):
        line.setEchoMode(QLineEdit.EchoMode.Password)
    if kind == "string":
        return Field(line, line.text, lambda new: line.setText(str(new)))
    line.setFont(mono(10))
    return Field(line, partial(_yaml_in, line), lambda new: line.setText(in_line(new)))


def _choice(choices: list[str], value: Any, changed: Callable[[], object]) -> Field:
    box = QComboBox()
    box.addItems(choices)
    box.setCurrentText(str(value))
    box.currentTextChanged.connect(lambda _: changed())
    return Field(box, box.currentText, lambda new: box.setCurrentText(str(new)))


def _switch(value: Any, changed: Callable[[], object]) -> Field:
    box = QCheckBox("on" if value else "off")
    box.setChecked(bool(value))
    box.toggled.connect(lambda is_on: box.setText("on" if is_on else "off"))
    box.toggled.connect(lambda _: changed())
    return Field(box, box.isChecked, lambda new: box.setChecked(bool(new)))


def _number(least: int, most: int, value: Any, changed: Callable[[], object]) -> Field:
    box = QSpinBox()
    box.setRange(least, most)
    box.setValue(int(value))
    box.valueChanged.connect(lambda _: changed())
    return Field(box, box.value, lambda new: box.setValue(int(new)))


def _yaml_in(line: QLineEdit) -> Any:
    try:
        return yaml.safe_load(line.text())
    except yaml.YAMLError:
        raise ValueError(f"{line.accessibleName()}: {line.text()[:60]} is not valid YAML") from None


def in_line(value: Any) -> str:
    """Return a value as one line of YAML."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**9, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def is_secret(property_: Json) -> bool:
    """Whether a schema is of a secret."""
    kinds = [property_, *property_.get("anyOf", ())]
    return any(each.get("writeOnly") or each.get("format") == "password" for each in kinds)
