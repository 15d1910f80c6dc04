"""The tools for the git repository of the workspace."""
