"""Values to bytes and back, structural sharing, diff: pure functions, no I/O."""
