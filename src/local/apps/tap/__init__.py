"""Watching the bus from outside, as an ordinary subscriber that never slows it down."""

from local.apps.tap.commands import tap_app
from local.apps.tap.echo import echo
from local.apps.tap.hz import hz
from local.apps.tap.subject_list import list_subjects

__all__ = ["echo", "hz", "list_subjects", "tap_app"]
