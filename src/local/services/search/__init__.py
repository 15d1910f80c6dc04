"""Searching the web: providers that look, and a chain that asks them in turn. Start at `build.build_chain`."""
