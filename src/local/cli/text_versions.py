"""Versions and proposed changes of a text as lines for the terminal."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import pairwise

import typer

from local.cli.main import visible
from local.core.versioned_text import TextProposal, TextProposals, TextVersion


def history_lines(kept: Sequence[TextVersion]) -> Iterator[str]:
    """Return a line for each version, the latest first: time, author, and the numbers of added and removed lines."""
    before = {each.number: earlier.text for earlier, each in pairwise(kept)}
    for each in reversed(kept):
        changes = [line[0] for line in difflib.ndiff(before.get(each.number, "").splitlines(), each.text.splitlines())]
        lines = f"+{changes.count('+')} -{changes.count('-')}"
        yield f"{each.number:>4}  {each.changed_at}  {lines:>9}  {visible(each.by)}"


def proposal_lines(proposal: TextProposal) -> Iterator[str]:
    """Return the lines that would be removed and added, after the author of the proposal."""
    yield f"proposed by {visible(proposal.by)}, {proposal.proposed_at}"
    yield from map(visible, proposal.diff())


def approved(proposals: TextProposals, *, yes: bool) -> TextProposal:
    """Show the proposal that waits, and apply just that one if the owner confirms it. Raises `ConfigError`, and
    `typer.Exit` if the owner declines."""
    if (shown := proposals.waiting()) is not None:
        typer.echo("\n".join(proposal_lines(shown)))
        if not yes and not typer.confirm("Apply this change?"):
            raise typer.Exit(1)
    return proposals.approve(shown)
