"""The tools that look through the programs of the workspace."""
