"""The fixtures of the command line, for tests of commands that are still here."""

from tests.cli.conftest import found_by, run

__all__ = ["found_by", "run"]
