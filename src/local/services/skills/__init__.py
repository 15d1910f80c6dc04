"""Skills: folders with instructions for a task, in the open Agent Skills format."""
