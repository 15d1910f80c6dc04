"""Commands run where they can reach one folder, and nothing else of this machine."""
