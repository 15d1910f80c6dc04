"""Files of the folder that the assistant works in: found beneath it and nowhere else, and every change undoable."""
