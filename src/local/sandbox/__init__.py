"""Runs a program with restricted permissions."""
