"""Shared code that every other folder may use: errors, settings, secrets, SQLite files, texts, addresses and dates."""
