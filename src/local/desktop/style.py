"""The look of the desktop window: the colours, spaces and typefaces of the page, for Qt's widgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from string import Template
from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget


@dataclass(frozen=True, slots=True)
class Colours:
    """The colours of one theme. `accent` acts or asks, `tool` is tools, `model` the model, `obs` everybody who only
    listens; a colour never stands alone."""

    paper: str
    sheet: str
    ink: str
    soft: str
    faint: str
    hair: str
    wash: str
    accent: str
    accent_ink: str
    accent_wash: str
    link: str
    model: str
    tool: str
    obs: str
    good: str
    warn: str
    bad: str
    bad_wash: str

    def colour(self, name: str) -> QColor:
        """Return one of them by its name."""
        return QColor(str(getattr(self, name)))


LIGHT = Colours(
    paper="#fbfaf7", sheet="#ffffff", ink="#1d1c1a", soft="#53504a", faint="#6b675f", hair="#e6e2d9", wash="#f3f0e9",
    accent="#a94c19", accent_ink="#ffffff", accent_wash="#f8ebe1", link="#8a3f14", model="#a8571f", tool="#3c6e69",
    obs="#6b675f", good="#33693f", warn="#855c00", bad="#a92f25", bad_wash="#fbecea",
)  # fmt: skip
DARK = Colours(
    paper="#171614", sheet="#1e1d1a", ink="#ece8df", soft="#b3aea3", faint="#9d978b", hair="#34312b", wash="#282621",
    accent="#e08a4f", accent_ink="#1b130c", accent_wash="#33241a", link="#eaa272", model="#d98850", tool="#7db5ae",
    obs="#9d978b", good="#86c596", warn="#dcb058", bad="#ec8a80", bad_wash="#38211e",
)  # fmt: skip

SMALL, BODY = 9.5, 11.0  # points

_SHEET = Template("""
QWidget { color: $ink; }
QMainWindow, QDialog, QFrame#rail, QSplitter, QDockWidget > QWidget { background: $paper; }
QFrame#rail { border-right: 1px solid $hair; }
QFrame#talk, QScrollArea, QWidget#sheet, QTextBrowser, QPlainTextEdit, QTableView, QTreeView, QListView {
  background: $sheet; border: 0; selection-background-color: $accent_wash; selection-color: $ink; }
QTableView, QTreeView { alternate-background-color: $sheet; gridline-color: $hair; outline: 0; }
QTableView::item, QTreeView::item { padding: 4px; }
QTableView::item:focus, QTreeView::item:focus { border: 1px solid $accent; }
QHeaderView { background: $paper; border: 0; }
QHeaderView::section { background: $paper; color: $faint; border: 0; border-bottom: 1px solid $hair;
  padding: 4px 8px; }
QLabel { background: transparent; } QLabel#head { color: $faint; font-weight: 600; }
QLabel[tone="faint"] { color: $faint; } QLabel[tone="soft"] { color: $soft; } QLabel[tone="tool"] { color: $tool; }
QLabel[tone="good"] { color: $good; } QLabel[tone="bad"] { color: $bad; } QLabel[tone="warn"] { color: $warn; }
QLabel[tone="model"] { color: $model; }
QLabel#notice { background: $bad_wash; color: $bad; padding: 6px 24px; }
QPushButton { background: $sheet; border: 1px solid $hair; border-radius: 6px; padding: 4px 12px; color: $soft; }
QPushButton:hover { background: $wash; color: $ink; }
QPushButton:disabled { color: $obs; background: transparent; }
QPushButton:checked { background: $accent_wash; color: $ink; border-color: $accent; }
QPushButton[flat="true"], QPushButton#rail, QPushButton#quiet { background: transparent; border-color: transparent; }
QPushButton#rail { text-align: left; padding: 5px 8px; } QPushButton#quiet { padding: 2px 6px; color: $faint; }
QPushButton#rail:hover, QPushButton#quiet:hover { background: $wash; color: $ink; }
QPushButton#quiet:checked { color: $link; background: $accent_wash; }
QPushButton#accent { background: $accent; color: $accent_ink; font-weight: 600; border-color: $accent; }
QPushButton#accent:disabled { background: $wash; color: $obs; border-color: $hair; }
QPushButton:focus, QLineEdit:focus, QPlainTextEdit:focus, QCheckBox:focus,
QTextBrowser:focus, QListView:focus, QTableView:focus, QTreeView:focus, QScrollArea:focus, QTabWidget:focus {
  border: 1px solid $accent; }
QTextBrowser, QPlainTextEdit, QListView, QTableView, QTreeView, QScrollArea { border: 1px solid transparent; }
QLineEdit { background: $paper; border: 1px solid $hair; border-radius: 6px; padding: 4px 8px;
  selection-background-color: $accent_wash; selection-color: $ink; }
QCheckBox { border: 1px solid transparent; border-radius: 4px; padding: 2px; }
QComboBox QAbstractItemView { background: $sheet; border: 1px solid $hair; }
QListWidget#people { background: transparent; color: $soft; }
QListWidget#people::item { padding: 4px 6px; border-radius: 6px; }
QListWidget#people::item:selected { background: $wash; color: $ink; }
QFrame#composer { background: $paper; border: 1px solid $hair; border-radius: 12px; }
QFrame#composer[active="true"] { border-color: $accent; }
QFrame#composer QPlainTextEdit { background: transparent; border: 0; }
QFrame#bar { background: $sheet; border-bottom: 1px solid $hair; }
QFrame#asked { background: $wash; border-radius: 12px; }
QFrame#call { background: $sheet; border: 1px solid $hair; border-radius: 8px; }
QFrame#approval { background: $accent_wash; border: 1px solid $accent; border-radius: 10px; }
QFrame#line { border-top: 1px solid $hair; }
QDockWidget { color: $soft; } QDockWidget::title { background: $paper; padding: 6px 12px;
  border-bottom: 1px solid $hair; }
QTabWidget::pane { border: 0; } QTabBar { background: $paper; }
QTabBar::tab { background: transparent; color: $soft; padding: 5px 12px; border: 0;
  border-bottom: 2px solid transparent; }
QTabBar::tab:selected { color: $ink; border-bottom: 2px solid $accent; }
QTabBar::tab:focus { background: $accent_wash; }
QScrollBar { background: transparent; } QScrollBar:vertical { width: 10px; } QScrollBar:horizontal { height: 10px; }
QScrollBar::handle { background: $hair; border-radius: 4px; min-height: 28px; min-width: 28px; margin: 1px; }
QScrollBar::add-line, QScrollBar::sub-line { height: 0; width: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: none; }
QSplitter::handle { background: $hair; } QMainWindow::separator { background: $hair; width: 1px; height: 1px; }
QProgressBar { background: $wash; border: 0; border-radius: 3px; max-height: 6px; }
QProgressBar::chunk { background: $model; border-radius: 3px; }
QMenu { background: $sheet; border: 1px solid $hair; } QMenu::item { padding: 5px 24px 5px 16px; }
QMenu::item:selected { background: $accent_wash; }
QToolTip { background: $sheet; color: $ink; border: 1px solid $hair; }
""")


def style_sheet(theme: Colours) -> str:
    """Return the style sheet of a theme."""
    return _SHEET.substitute(asdict(theme))


def system_colours() -> Colours:
    """Return the theme that the desktop is set to."""
    is_dark = QGuiApplication.styleHints().colorScheme() is Qt.ColorScheme.Dark
    return DARK if is_dark else LIGHT


_used = [LIGHT]


def colours() -> Colours:
    """Return the theme in use."""
    return _used[0]


def apply_style(application: QApplication, theme: Colours) -> None:
    """Give the whole application the look of a theme."""
    _used[0] = theme
    application.setStyle("Fusion")
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    font.setPointSizeF(10.5)
    application.setFont(font)
    palette = QPalette()
    for role, name in (
        (QPalette.ColorRole.Window, "paper"),
        (QPalette.ColorRole.WindowText, "ink"),
        (QPalette.ColorRole.Base, "sheet"),
        (QPalette.ColorRole.Text, "ink"),
        (QPalette.ColorRole.Button, "sheet"),
        (QPalette.ColorRole.ButtonText, "ink"),
        (QPalette.ColorRole.PlaceholderText, "faint"),
        (QPalette.ColorRole.Highlight, "accent_wash"),
        (QPalette.ColorRole.HighlightedText, "ink"),
        (QPalette.ColorRole.Accent, "accent"),
        (QPalette.ColorRole.Light, "wash"),
        (QPalette.ColorRole.Mid, "hair"),
        (QPalette.ColorRole.Dark, "faint"),
        (QPalette.ColorRole.Link, "link"),
        (QPalette.ColorRole.LinkVisited, "link"),
        (QPalette.ColorRole.ToolTipBase, "sheet"),
        (QPalette.ColorRole.ToolTipText, "ink"),
    ):
        palette.setColor(role, theme.colour(name))
    application.setPalette(palette)
    application.setStyleSheet(style_sheet(theme))


def mono(points: float = SMALL) -> QFont:
    """Return the typeface for facts of the machine."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(points)
    return font


def prose(points: float = BODY) -> QFont:
    """Return the typeface for words of people and the model."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    font.setPointSizeF(points)
    return font


def sign(emoji: str, plain: str) -> str:
    """Return an emoji, or where no typeface has any, a plain sign instead."""
    return emoji if any("emoji" in family.lower() for family in QFontDatabase.families()) else plain


W = TypeVar("W", bound=QWidget)


def named(widget: W, name: str, tip: str = "") -> W:
    """Give a widget the name that screen readers say, and a tip; returns it."""
    widget.setAccessibleName(name)
    widget.setToolTip(tip)
    return widget


def styled(widget: W, kind: str) -> W:
    """Give a widget the look that the style sheet has for its kind; returns it."""
    widget.setObjectName(kind)
    return widget


def label(text: str, tone: str = "", *, font: QFont | None = None, wraps: bool = False) -> QLabel:
    """Return a label for text of any origin: it is shown as it is, without markup."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setProperty("tone", tone)
    made.setWordWrap(wraps)
    if font is not None:
        made.setFont(font)
    return made


def push_button(text: str, kind: str, name: str, pressed: Callable[[], object], tip: str = "") -> QPushButton:
    """Return a button; `kind` is its look: accent, quiet, rail or empty."""
    button = named(styled(QPushButton(text), kind), name, tip)
    button.clicked.connect(lambda: pressed())
    return button


def stars(score: float | None) -> str:
    """Return a grade from 1 to 5 as stars and a number."""
    if score is None:
        return "–"
    return f"{'★' * round(score)}{'☆' * (5 - round(score))} {score:g}"


def tone_of(score: float | None) -> str:
    """Return the tone of a grade."""
    return "faint" if score is None else "good" if score >= 4 else "warn" if score >= 3 else "bad"
