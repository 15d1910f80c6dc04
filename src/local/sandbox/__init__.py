"""Runs a program so that it can do no more than it was given."""
