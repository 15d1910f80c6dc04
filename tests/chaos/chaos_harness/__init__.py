"""Users who ask without pause, somebody who kills and freezes processes, and a judge who only knows what users saw."""
