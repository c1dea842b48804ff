"""Seeded states to save: pure generators, no clock and no I/O."""
