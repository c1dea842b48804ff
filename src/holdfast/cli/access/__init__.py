"""What commands work on: the store, the checkpoint, the session and the files that were meant."""
