"""Processes: the base class of participants, and the supervisor that keeps them alive."""
