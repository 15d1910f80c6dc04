"""Texts of the owner's in files, every version they have had, and changes that are proposed until the owner decides."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter

from local.core.errors import ConfigError
from local.core.files import MOST_OF_OWNERS_TEXT, locked_folder, write_private

VERSIONS_FILE = "versions.json"
BY_HAND = "by hand"
MOST_VERSIONS = 200
PROPOSAL_FILE = "proposal.json"  # beside the versions
MOST_CHARS = 8000
SOUL = "SOUL.md"
SOUL_FOLDER = "soul"  # in the data directory


@dataclass(frozen=True, slots=True)
class TextVersion:
    """One version of a text. `by` names the author: the owner by hand, a restored version, or a proposal."""

    number: int
    changed_at: str  # ISO 8601, UTC
    by: str
    text: str


@dataclass(frozen=True, slots=True)
class _Kept:
    """The content of the file of versions."""

    versions: list[TextVersion]


class TextHistory:
    """All versions of a text, in one file of a folder. `what` is the text's name in errors. Several processes may add
    versions; beyond a limit the oldest are removed.
    """

    def __init__(self, folder: Path, what: str) -> None:
        self.folder, self.what = folder, what
        self._path = folder / VERSIONS_FILE

    def versions(self) -> Sequence[TextVersion]:
        """All that are kept, the oldest first. Raises `ConfigError`."""
        try:
            return TypeAdapter(_Kept).validate_json(self._path.read_bytes(), strict=True).versions
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "its content is invalid"
            raise ConfigError(f"{self._path} cannot be read: {why}; move it away") from None

    def version(self, number: int) -> TextVersion:
        """The version of that number. Raises `ConfigError`."""
        kept = {version.number: version for version in self.versions()}
        if number not in kept:
            known = f"versions {min(kept)} to {max(kept)} are stored" if kept else "there are no versions yet"
            raise ConfigError(f"there is no version {number} of {self.what}; {known}")
        return kept[number]

    def note(self, text: str, by: str) -> None:
        """The text is this from now on; nothing where it was that already. Raises `ConfigError`."""
        if text or self.versions():
            self._keep(text, by)

    def begin(self) -> None:
        """Keep that there was none, where nothing is kept yet: then one can go back to that. Raises `ConfigError`."""
        if not self.versions():
            self._keep("", BY_HAND)

    def noted(self, text: str, by: str) -> str:
        """Why a version could not be noted; empty where it was."""
        if not text and not self._path.exists():
            return ""
        try:
            self.note(text, by)
        except ConfigError as error:
            return str(error)
        return ""

    def _keep(self, text: str, by: str) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked_folder(self.folder):
                kept = list(self.versions())
                if kept and text == kept[-1].text:
                    return
                number = kept[-1].number + 1 if kept else 1
                kept.append(TextVersion(number, datetime.now(UTC).isoformat(timespec="seconds"), by, text))
                told = {"versions": [asdict(each) for each in kept[-MOST_VERSIONS:]]}
                write_private(self._path, json.dumps(told, ensure_ascii=False, indent=1) + "\n")
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}") from None


def read_text(path: Path) -> tuple[str, str]:
    """A file's text, without space around it, empty where there is none; and why it cannot be read, if so."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_OF_OWNERS_TEXT + 1)
        if len(content) > MOST_OF_OWNERS_TEXT:
            return "", f"{path} has more than {MOST_OF_OWNERS_TEXT} bytes and is ignored"
        return content.decode("utf-8-sig").strip(), ""
    except FileNotFoundError:
        return "", ""
    except OSError as error:
        return "", f"{path} cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        return "", f"{path} is not UTF-8 text; save it in that encoding"


class VersionedText:
    """A text file of the owner, with its versions."""

    def __init__(self, path: Path, history: TextHistory) -> None:
        self.path, self.history = path, history

    def text(self) -> str:
        """Return the current text and store it as a version. Raises `ConfigError` if it cannot be read."""
        text, problem = read_text(self.path)
        if problem:
            raise ConfigError(problem)
        if text or self.history.versions():
            self.history.note(text, BY_HAND)
        return text

    def become(self, text: str, by: str) -> None:
        """Change the text; both the old and the new text are stored as versions. Raises `ConfigError`."""
        self.text()
        try:
            self.write(text)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error.strerror}") from None
        self.history.note(text, by)

    def revert(self, number: int) -> None:
        """Go back to a version, which becomes the latest one. Raises `ConfigError`."""
        self.become(self.history.version(number).text, f"back to {number}")

    def write(self, text: str) -> None:
        """Have the file hold that. Raises `OSError` and `ConfigError`."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self.path, f"{text}\n" if text else "")


def soul_history(data_dir: Path) -> TextHistory:
    """The versions of the soul."""
    return TextHistory(data_dir / SOUL_FOLDER, "the soul")


class Soul(VersionedText):
    """The assistant's soul, `SOUL.md` in the settings folder: the text that describes the assistant's character."""

    def __init__(self, settings: Path, data_dir: Path) -> None:
        super().__init__(settings / SOUL, soul_history(data_dir))


@dataclass(frozen=True, slots=True)
class TextProposal:
    """A proposed change of a text. `before` is the current text, `text` the proposed one; `by` names who
    proposes it."""

    proposed_at: str  # ISO 8601, UTC
    by: str
    before: str
    text: str

    def diff(self) -> list[str]:
        """The lines that would go and come, as `diff -u` shows them."""
        lines = difflib.unified_diff(self.before.splitlines(), self.text.splitlines(), "now", "proposed", lineterm="")
        return list(lines)

    @property
    def digest(self) -> str:
        """The hash of all of it, by which an approval names exactly the proposal that was shown."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()


class TextProposals:
    """The open proposal for a text, which waits for the owner; a later one replaces it. An approved proposal becomes a
    version like any other.
    """

    def __init__(self, text: VersionedText) -> None:
        self._text, self._what, self._path = text, text.history.what, text.history.folder / PROPOSAL_FILE

    def propose(self, text: str, by: str) -> bool:
        """Whether there was something to propose. Raises `ConfigError`."""
        before, wanted = self._text.text(), text.strip()[:MOST_CHARS]
        if not wanted or wanted == before:
            return False
        proposal = TextProposal(datetime.now(UTC).isoformat(timespec="seconds"), by, before, wanted)
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(self._path, json.dumps(asdict(proposal), ensure_ascii=False, indent=1) + "\n")
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}") from None
        return True

    def waiting(self) -> TextProposal | None:
        """The one that waits. Raises `ConfigError`."""
        try:
            return TypeAdapter(TextProposal).validate_json(self._path.read_bytes(), strict=True)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "its content is invalid"
            raise ConfigError(f"{self._path} cannot be read: {why}; delete it") from None

    def approve(self, shown: TextProposal | None) -> TextProposal:
        """Apply the proposal that was `shown` to the owner, as `waiting` gave it. Raises `ConfigError`, also if it is
        not the one that waits any more, or the text has changed since the proposal."""
        proposal = self._require()
        if proposal != shown:
            raise ConfigError(f"another change of {self._what} was proposed since this one was shown; look at it first")
        if self._text.text() != proposal.before:
            raise ConfigError(f"{self._what} has changed since the proposal; reject it and edit the text yourself")
        self._text.history.begin()
        self._text.become(proposal.text, f"proposed by {proposal.by}")
        self.reject()
        return proposal

    def reject(self) -> None:
        """Have a proposal wait no longer. Raises `ConfigError` where none does."""
        self._require()
        self._path.unlink(missing_ok=True)

    def _require(self) -> TextProposal:
        proposal = self.waiting()
        if proposal is None:
            raise ConfigError(f"no change of {self._what} is proposed")
        return proposal
