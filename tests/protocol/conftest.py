"""Property tests that neither depend on how busy the machine is nor leave a database behind."""

from hypothesis import settings

settings.register_profile("local", deadline=None, database=None)
settings.load_profile("local")
