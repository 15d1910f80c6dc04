"""Judging of answers: what a judge is asked, what is read from its reply, and what follows from it. No I/O."""
