"""Watching the bus from outside, as an ordinary subscriber that never slows it down."""
