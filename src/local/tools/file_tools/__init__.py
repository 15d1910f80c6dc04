"""The tools that look at and change files of the workspace; `tools/files.py` serves them in one process."""
