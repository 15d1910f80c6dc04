"""What is on record: looked at, taken out, and played again."""

from local.apps.journal.commands import journal_app

__all__ = ["journal_app"]
