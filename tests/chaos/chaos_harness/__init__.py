"""Users who ask without pause, a driver that kills and freezes processes, and a judge who only knows what users saw."""
