"""The git repository of a workspace, read and written by git without the settings that lie in it."""
