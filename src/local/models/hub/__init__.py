"""Models that are to be had: GGUF files of a hub and in a folder, and what Ollama has."""
