"""Looks at everything that LoCAL2 needs and says what to do about what is missing."""

from local.apps.doctor.checkup import run

__all__ = ["run"]
